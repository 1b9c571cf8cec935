# Which files are in conflict, and what are the sides? I take theirs. f is one, with
# the line "ours" here and "theirs" there.
set -eu
grep -q 'cp .wsmount/conflicts/PATH/theirs PATH' .wsmount/README
found=$(cd .wsmount/conflicts && find . -name theirs)
[ "$found" = ./f/theirs ]
grep -qx ours .wsmount/conflicts/f/ours
grep -qx theirs .wsmount/conflicts/f/theirs
grep -qx ours f
grep '^changed "f": ' .wsmount/unsent
cp .wsmount/conflicts/f/theirs f
