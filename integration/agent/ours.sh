# I write what others, whom I do not see, have written too.
set -eu
echo ours >f
