#!/bin/sh
# install.sh WSMOUNT puts a program where it is used from, with its manual pages, its
# completions, the unit for systemd and what mount(8) calls. It is told by variables:
#
#   PREFIX   where all but the last goes, /usr/local
#   DESTDIR  goes before every path, for who packs it
#
# mount(8) looks in /sbin only. Without the right to write there, nobody but mount(8)
# and fstab misses it, and the rest is installed. REMOVE=1 takes all of it away again.
set -eu

program=$1 prefix=${PREFIX:-/usr/local} dest=${DESTDIR:-}
case $prefix in
/*) ;;
*) echo "install: PREFIX=$prefix is no absolute path" >&2; exit 1 ;;
esac
share=$prefix/share
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
put() { # MODE FILE PATH
	if [ -n "${REMOVE:-}" ]; then
		rm -f "$dest$3"
		return
	fi
	install -D -m "$1" "$2" "$dest$3"
	echo "$dest$3"
}

sources=$(cd "$(dirname "$0")/../.." && pwd)
[ -n "${REMOVE:-}" ] || "$sources/integration/tools/documents.sh" "$program" "$stage"
put 755 "$program" "$prefix/bin/wsmount"
put 644 "$stage/wsmount.1.gz" "$share/man/man1/wsmount.1.gz"
for page in wsmount.yaml wsmount-manifest; do
	put 644 "$stage/$page.5.gz" "$share/man/man5/$page.5.gz"
	put 644 "$stage/$page.html" "$share/doc/wsmount/$page.html"
done
put 644 "$stage/completions/wsmount.bash" "$share/bash-completion/completions/wsmount"
put 644 "$stage/completions/_wsmount" "$share/zsh/site-functions/_wsmount"
put 644 "$stage/completions/wsmount.fish" "$share/fish/vendor_completions.d/wsmount.fish"
put 644 "$sources/integration/example/wsmount@.service" "$prefix/lib/systemd/system/wsmount@.service"
for example in bwrap.sh podman.sh; do
	put 755 "$sources/integration/example/$example" "$share/doc/wsmount/examples/$example"
done
put 644 "$sources/integration/example/compose.yaml" "$share/doc/wsmount/examples/compose.yaml"
for file in "$sources/integration/example/monitoring/"*; do
	put 644 "$file" "$share/doc/wsmount/monitoring/${file##*/}"
done

# The names are for types in fstab, and for that in /proc/mounts.
if [ -z "$dest" ] && [ ! -w /sbin ]; then
	echo "install: /sbin cannot be written, so mount(8) and fstab do not know wsmount: root does 'make install'" >&2
	exit 0
fi
for name in mount.wsmount mount.fuse.wsmount umount.wsmount umount.fuse.wsmount; do
	if [ -n "${REMOVE:-}" ]; then
		# Only ours: a package may have its own.
		[ "$(readlink "$dest/sbin/$name")" != "$prefix/bin/wsmount" ] || rm -f "$dest/sbin/$name"
		continue
	fi
	mkdir -p "$dest/sbin"
	ln -sf "$prefix/bin/wsmount" "$dest/sbin/$name"
	echo "$dest/sbin/$name"
done
