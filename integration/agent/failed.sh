# failed.sh FILE REASON: my write to FILE fails. Why? Is what I wrote lost?
set -eu
if said=$(cp .wsmount/README "$1" 2>&1); then
	echo "the write did not fail" >&2
	exit 1
fi
errno=${said##*: } # as cp says it
last=$(grep "\"/*$1\"" .wsmount/errors.log | grep -i "$errno" | tail -n 1)
case $last in
*"$2"*) ;;
*) echo "cp says $said; the last line about it is $last, without $2" >&2; exit 1 ;;
esac
cmp "$1" .wsmount/README
grep "\"$1\"" .wsmount/unsent
