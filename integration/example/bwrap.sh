#!/usr/bin/env bash
# Runs a command in a sandbox that shows a mounted workspace at /workspace and the
# programs of this host, and nothing else: what `wsmount exec` does, by hand and
# without root. The command has no network.
#
#   bwrap.sh MOUNTPOINT CMD [ARG ...]
set -euo pipefail
tree=$1
shift

# Keys belong to a session, not to a namespace. This program for seccomp(2) lacks
# the three calls that reach them, and those of every other architecture.
case $(uname -m) in
x86_64) arch='\076\0\0\300' first='\370\0\0\0' last='\372\0\0\0' ;;
aarch64) arch='\267\0\0\300' first='\331\0\0\0' last='\333\0\0\0' ;;
*) echo "bwrap.sh: no filter of system calls for this machine" >&2; exit 1 ;;
esac
no_keys() {
	printf '\040\0\0\0\004\0\0\0\025\0\001\0%b\006\0\0\0\0\0\0\200' "$arch"
	printf '\040\0\0\0\0\0\0\0\065\0\002\0\0\0\0\100\065\0\0\002%b\045\0\001\0%b' "$first" "$last"
	printf '\006\0\0\0\046\0\005\0\006\0\0\0\0\0\377\177'
}

# A descriptor leads to what it was opened for, and of a regular file to all of it.
for fd in "/proc/$$/fd/"*; do
	n=${fd##*/}
	if [ "$n" -gt 2 ] && [ "$n" -ne 255 ]; then eval "exec $n>&-"; fi
done
[ ! -d /dev/stdin ] || exec </dev/null
[ ! -f /dev/stdin ] || exec < <(exec cat)
copies=()
[ ! -f /dev/stdout ] || { exec > >(exec cat); copies+=($!); }
[ ! -f /dev/stderr ] || { exec 2> >(exec cat >&2); copies+=($!); }

links=()
for dir in /bin /sbin /lib /lib32 /lib64; do
	[ ! -L "$dir" ] || links+=(--symlink "$(readlink "$dir")" "$dir")
	[ -L "$dir" ] || [ ! -d "$dir" ] || links+=(--ro-bind "$dir" "$dir")
done
exec 3< <(no_keys)
code=0
env -i PATH="$PATH" bwrap --unshare-all --unshare-user --disable-userns --cap-drop ALL --new-session --die-with-parent \
	--ro-bind /usr /usr "${links[@]}" --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache \
	--ro-bind-try /etc/alternatives /etc/alternatives --ro-bind-try /etc/ssl/certs /etc/ssl/certs \
	--proc /proc --remount-ro /proc --dev /dev --perms 1777 --tmpfs /tmp --bind "$tree" /workspace --chdir /workspace \
	--remount-ro / --clearenv --setenv PATH /usr/bin:/bin --setenv HOME /tmp \
	--seccomp 3 -- "$@" || code=$?
exec >&- 2>&- 3<&-
for pid in "${copies[@]}"; do wait "$pid" || true; done
exit "$code"
