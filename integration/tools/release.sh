#!/usr/bin/env bash
# release.sh VERSION DIR [ARCH ...] makes what is released of a version, in DIR:
# an archive and a Debian package for each architecture (amd64 and arm64), and
# the sums of all. It must run in the repository, with bin/nfpm built. Two runs
# at one commit make the same bytes.
set -euo pipefail

version=$1 dir=$2
shift 2
[ $# -gt 0 ] || set -- amd64 arm64
umask 022
export LC_ALL=C CGO_ENABLED=0 GOOS=linux SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)

# Debian sorts ~ before everything, and takes - for its own: v1.2.0-rc.1 comes
# before 1.2.0, and a commit after a tag after it. Without a tag there is no number.
case $version in
v[0-9]*) deb=${version#v} ;;
[0-9]*.*) deb=$version ;;
*) deb=0.0~$(git log -1 --format=%cd --date=format:%Y%m%d).$version ;;
esac
deb=$(sed -E 's/-dirty$/+dirty/; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/-/~/g' <<<"$deb")

build() { # ARCH FILE
	GOARCH=$1 "${GO:-go}" build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" -o "$2" ./cmd/wsmount
}

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# One program says what its manual and its completions are, for all.
host=$("${GO:-go}" env GOHOSTARCH)
build "$host" "$stage/host"
integration/tools/documents.sh "$stage/host" "$stage/common"
install -m 644 README.md LICENSE "$stage/common"
install -D -m 644 -t "$stage/common/examples" integration/example/{compose.yaml,wsmount@.service}
install -m 755 -t "$stage/common/examples" integration/example/{bwrap,podman}.sh
install -D -m 644 -t "$stage/common/monitoring" integration/example/monitoring/*

made=()
config=$PWD/integration/tools/nfpm/nfpm.yaml nfpm=$PWD/bin/nfpm
for arch; do
	name=wsmount-$version-linux-$arch
	cp -r "$stage/common" "$stage/$name"
	if [ "$arch" = "$host" ]; then
		cp "$stage/host" "$stage/$name/wsmount"
	else
		build "$arch" "$stage/$name/wsmount"
	fi
	find "$stage/$name" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
	(cd "$stage/$name" && VERSION=$deb ARCH=$arch "$nfpm" package --config "$config" --packager deb --target "$dir/wsmount_${deb}_$arch.deb" >/dev/null)
	made+=("$name.tar.gz" "wsmount_${deb}_$arch.deb")
done
cd "$dir"
sha256sum "${made[@]}" >SHA256SUMS
ls -l "${made[@]}" SHA256SUMS
