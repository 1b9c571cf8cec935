# Does the store have all that I wrote? I look until it does.
set -eu
tries=0
while [ -s .wsmount/unsent ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 1200 ] || { cat .wsmount/unsent; exit 1; }
	sleep 0.1
done
