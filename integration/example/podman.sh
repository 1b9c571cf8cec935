#!/usr/bin/env bash
# Runs a command in a container of podman that shows a directory, with every
# workspace that is mounted in it, at /workspace, and the programs of this host. The
# command has no network, no capabilities and nothing else of the host.
#
#   podman.sh TREE CMD [ARG ...]
#
# TREE is best the directory that has the mount points, and no mount itself: what is
# mounted there later, as after a restart of wsmount, appears inside by itself. Of a
# TREE that is a mount, the container keeps what it was started with. When wsmount
# has ended, that answers ENOTCONN for ever, and the container must be started anew.
#
# TREE must lie in a mount that is shared. systemd makes all of them so; elsewhere
# root does it once, before anything is mounted there:
#
#   mount --bind TREE TREE && mount --make-shared TREE
#
# The command runs as who starts it, by root also as AS=UID:GID. Whoever did not
# mount a workspace himself sees it with --allow-other only. Others than root need a
# kernel that lets them make user namespaces; since nobody else is in the container,
# neither ranges in /etc/subuid nor newuidmap, whatever podman says of them. Podman
# keeps a process of theirs that has mounts of its own. Where it is older than the
# shared mount, nothing in that is seen until `podman system migrate` has ended it.
#
# Unlike bwrap.sh, programs inside may make user namespaces. Limits are not podman's
# here (--cgroups=disabled needs crun): `systemd-run --scope -p MemoryMax=2G podman.sh ...`.
set -euo pipefail
tree=$(realpath -- "$1")
shift
case $(findmnt -no PROPAGATION -T "$tree" | tail -n 1) in
*shared*) ;;
*) echo "podman.sh: $tree lies in no shared mount, so that nothing that is mounted there later would be seen" >&2; exit 1 ;;
esac

as=$(id -u):$(id -g)
mapped=()
if [ "$(id -u)" -eq 0 ]; then
	as=${AS:-$as}
elif [ "${AS:-$as}" != "$as" ]; then
	echo "podman.sh: only root can run a command as somebody else" >&2; exit 1
elif ! unshare --user true; then
	echo "podman.sh: this host lets only root make user namespaces, and so containers" >&2; exit 1
else
	mapped=(--uidmap="${as%:*}:0:1" --gidmap="${as#*:}:0:1")
fi

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
mkdir "$root"/{dev,etc,etc/alternatives,proc,run,sys,tmp,usr,workspace}
shown=(-v /usr:/usr:ro)
[ ! -d /etc/alternatives ] || shown+=(-v /etc/alternatives:/etc/alternatives:ro)
for dir in bin sbin lib lib32 lib64; do
	if [ -L "/$dir" ]; then
		ln -s "$(readlink "/$dir")" "$root/$dir"
	elif [ -d "/$dir" ]; then
		mkdir "$root/$dir"
		shown+=(-v "/$dir:/$dir:ro")
	fi
done
podman run --rm --interactive --cgroups=disabled --network=none --log-driver=none \
	--read-only --cap-drop=all --security-opt=no-new-privileges --user="$as" "${mapped[@]}" \
	"${shown[@]}" -v "$tree:/workspace:rslave" --workdir=/workspace --env=HOME=/tmp \
	--rootfs "$root" "$@"
