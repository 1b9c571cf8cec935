# commits.sh FILE TEXT: FILE had TEXT in an earlier commit, and I bring it back.
set -eu
grep -q 'history/COMMIT/PATH' .wsmount/README
for commit in $(ls .wsmount/history); do
	if grep -qx "$2" ".wsmount/history/$commit/$1" 2>/dev/null; then
		cp ".wsmount/history/$commit/$1" "$1"
		grep -qx "$2" "$1"
		exit 0
	fi
done
echo "no commit has it" >&2
exit 1
