# waiting.sh EVENT: what is waiting to be sent, and for what? In f and old there is
# something that the store has.
set -eu
grep -F "at \"$1\", of which the program that runs you" .wsmount/README
[ ! -s .wsmount/unsent ]
mkdir -p d
echo mine >d/new
echo more >>f
rm old
for line in 'created "d"' 'created "d/new"' 'changed "f"' 'deleted "old"'; do
	grep -qx "$line" .wsmount/unsent || { echo "no line says $line in" >&2; cat .wsmount/unsent >&2; exit 1; }
done
[ "$(grep -c . .wsmount/unsent)" = 4 ]
