# The conflict is over: nothing lists it, nothing waits.
set -eu
[ -z "$(ls .wsmount/conflicts)" ]
[ ! -s .wsmount/unsent ]
grep -qx theirs f
