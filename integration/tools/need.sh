#!/bin/sh
# need.sh COMMAND:PACKAGE ... installs the Debian packages of the commands that
# are missing, and says so first. A COMMAND with a slash is a file to look for.
# Without root or sudo, or without apt, it says what to install and fails.
set -eu

PATH=$PATH:/usr/sbin:/sbin # where Debian keeps mkfs and losetup
packages=
for need in "$@"; do
	command=${need%%:*} package=${need#*:}
	case $command in
	*/*) [ -e "$command" ] || packages="$packages $package" ;;
	*) command -v "$command" >/dev/null || packages="$packages $package" ;;
	esac
done
[ -n "$packages" ] || exit 0

as=
if [ "$(id -u)" -ne 0 ]; then
	as=sudo
fi
if ! command -v apt-get >/dev/null || { [ -n "$as" ] && ! command -v sudo >/dev/null; }; then
	echo "need: these packages are missing, by their Debian names:$packages" >&2
	exit 1
fi
echo "installing missing packages:$packages"
$as apt-get update -q >/dev/null
$as env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages >/dev/null
echo "installed:$packages"
