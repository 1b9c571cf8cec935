#!/bin/sh
# documents.sh WSMOUNT DIR writes what a program says of itself to DIR: manual pages,
# the references as HTML, and the completions of each shell. SOURCE_DATE_EPOCH is
# their date.
set -eu

wsmount=$1 dir=$2
mkdir -p "$dir/completions"
"$wsmount" help --man >"$dir/wsmount.1"
for page in config:wsmount.yaml manifest:wsmount-manifest; do
	"$wsmount" help --man "${page%%:*}" >"$dir/${page#*:}.5"
	"$wsmount" help --html "${page%%:*}" >"$dir/${page#*:}.html"
done
gzip -9nf "$dir/wsmount.1" "$dir/wsmount.yaml.5" "$dir/wsmount-manifest.5"
"$wsmount" completion bash >"$dir/completions/wsmount.bash"
"$wsmount" completion zsh >"$dir/completions/_wsmount"
"$wsmount" completion fish >"$dir/completions/wsmount.fish"
