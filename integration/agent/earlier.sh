# What was in this file before? I bring it back, also after it was removed.
set -eu
grep -q '^EARLIER VERSIONS$' .wsmount/README
mkdir -p notes
echo "the first text" >notes/plan
echo "another text" >notes/plan
version=$(grep -lx "the first text" .wsmount/history/notes/plan/* | tail -n 1)
cp "$version" notes/plan
grep -qx "the first text" notes/plan
rm notes/plan
cp "$(ls .wsmount/history/notes/plan/* | tail -n 1)" notes/plan
grep -qx "the first text" notes/plan
