# May I write here? The README says so before anything is tried, and why not.
set -eu
grep -q '^  READ-ONLY: ' .wsmount/README
if (echo x >new) 2>/dev/null; then
	echo "a file was made" >&2
	exit 1
fi
grep '"readOnly"' .wsmount/status.json
