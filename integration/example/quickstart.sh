#!/bin/sh
# quickstart.sh WSMOUNT [DIRECTORY] copies the example workspaces to a directory
# (~/wsmount-quickstart), registers them, mounts @example/handbook and lists it.
# Run again, it keeps what was changed. All that it writes is in the directory.
set -eu

example=$(cd "$(dirname "$0")" && pwd)
wsmount=$1
dir=${2:-$HOME/wsmount-quickstart}

umask 022
mkdir -p "$dir/workspaces" "$dir/mnt"
dir=$(cd "$dir" && pwd)
for workspace in handbook style; do
	[ ! -e "$dir/workspaces/$workspace" ] || continue
	cp -R "$example/$workspace" "$dir/workspaces/"
	# AIP-35 wants absolute paths, which an example cannot have.
	sed -i "s|mount_path: \"|&$dir/workspaces/$workspace/|" "$dir/workspaces/$workspace/WORKSPACE.md"
done
# A configuration and a state of its own, so that nothing of this host's is touched and
# nothing stays. To register a workspace is to say that its manifest may be believed.
cat >"$dir/wsmount" <<END
#!/bin/sh
WSMOUNT_CONFIG="$dir/config.yaml" WSMOUNT_STATE_DIR="$dir/state" exec "$wsmount" "\$@"
END
chmod 755 "$dir/wsmount"
if [ ! -e "$dir/config.yaml" ]; then
	echo '{}' >"$dir/config.yaml"
	"$dir/wsmount" registry add "$dir/workspaces/style"
	"$dir/wsmount" registry add "$dir/workspaces/handbook"
fi

"$dir/wsmount" --if-not-mounted @example/handbook "$dir/mnt"

cat <<END
@example/handbook is mounted at $dir/mnt:

END
(cd "$dir/mnt" && find . | sort | sed 's/^/    /')
cat <<END

Change something and look at it from the other side:

    echo hello >$dir/mnt/note
    cat $dir/workspaces/handbook/pages/note
    $dir/wsmount status $dir/mnt

style/ is another workspace, mounted read-only: nothing there can be changed.
When you are done, this leaves nothing of it:

    $dir/wsmount umount $dir/mnt && rm -r $dir
END
