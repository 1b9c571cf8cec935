#!/usr/bin/env bash
# build.sh OUTPUT VERSION builds wsmount, and says meanwhile what is downloaded and
# compiled, and how far that is. Where all of it is there, it says nothing.
set -euo pipefail
out=$1 version=$2 go=${GO:-go}
packages=$(mktemp)
trap 'rm -f "$packages"' EXIT

# counted says how many of TOTAL lines have come that are about one of what is counted,
# and passes the others on. A terminal has one line for all.
counted() { # WHAT TOTAL
	awk -v what="$1" -v total="$2" -v packages="$packages" -v columns="$(stty size <&2 2>/dev/null | cut -d' ' -f2)" '
		BEGIN { while ((getline line < packages) > 0) is[line] = 1 }
		/^go: downloading / { $0 = $3 " " $4; is[$0] = 1 }
		!($0 in is) { print; next }
		{ n++ }
		columns { printf "\r\033[K%s", substr(what ", " n " of at most " total ": " $0, 1, columns - 1) }
		!columns && (n == 1 || n % 50 == 0) { print what ", " n " of at most " total }
		{ fflush() }
		END { if (columns && n) printf "\r\033[K"; if (n) print what ": " n }' >&2
}

modules=$("$go" env GOMODCACHE)
missing=$("$go" mod edit -json | awk '
	/"Path":/ { gsub(/[",]/, "", $2); path = $2 }
	/"Version":/ { gsub(/[",]/, "", $2); print path "@" $2 }' | sed -E 's/[A-Z]/!\l&/g' | while read -r module; do [ -d "$modules/$module" ] || echo; done | wc -l)
"$go" list -deps ./cmd/wsmount 2>&1 >"$packages" | counted 'downloading Go modules' "$missing"
CGO_ENABLED=0 "$go" build -v -ldflags "-s -w -X main.version=$version" -o "$out" ./cmd/wsmount 2>&1 |
	counted 'compiling packages' "$(wc -l <"$packages")"
