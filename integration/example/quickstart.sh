#!/bin/sh
# quickstart.sh WSMOUNT [DIRECTORY] copies the example workspaces to a directory
# (~/wsmount-quickstart), registers them, mounts @example/handbook and lists it.
# Run again, it keeps what was changed.
set -eu

example=$(cd "$(dirname "$0")" && pwd)
wsmount=$1
dir=${2:-$HOME/wsmount-quickstart}

umask 022
mkdir -p "$dir/workspaces" "$dir/mnt"
for workspace in handbook style; do
	[ ! -e "$dir/workspaces/$workspace" ] || continue
	cp -R "$example/$workspace" "$dir/workspaces/"
	# AIP-35 wants absolute paths, which an example cannot have.
	sed -i "s|mount_path: \"|&$dir/workspaces/$workspace/|" "$dir/workspaces/$workspace/WORKSPACE.md"
done
# A configuration of its own, so that nothing of this host's is touched. To
# register a workspace is to say that its manifest may be believed.
export WSMOUNT_CONFIG="$dir/config.yaml"
if [ ! -e "$WSMOUNT_CONFIG" ]; then
	echo '{}' >"$WSMOUNT_CONFIG"
	"$wsmount" registry add "$dir/workspaces/style"
	"$wsmount" registry add "$dir/workspaces/handbook"
fi

"$wsmount" --if-not-mounted @example/handbook "$dir/mnt"

cat <<END
@example/handbook is mounted at $dir/mnt:

END
(cd "$dir/mnt" && find . | sort | sed 's/^/    /')
cat <<END

Change something and look at it from the other side:

    echo hello >$dir/mnt/note
    cat $dir/workspaces/handbook/pages/note
    $wsmount status $dir/mnt

style/ is another workspace, mounted read-only: nothing there can be changed.
When you are done:

    $wsmount umount $dir/mnt
    rm -r $dir
END
