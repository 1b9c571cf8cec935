# hidden.sh WORD ...: nothing of this directory has one of the words in it.
set -eu
for file in README status.json errors.log; do cat ".wsmount/$file" >/dev/null; done
for word; do
	if grep -rF -- "$word" .wsmount; then exit 1; fi
done
