#!/usr/bin/env bash
# test.sh TIER runs the tests of a tier (test, or soak: see integration/tier), stage
# after stage, and fails at the end if one has failed. Each stage prints a line for a
# package as it ends and the output of what failed; the end tells the slowest tests, how
# long each stage took, what failed, and the command that runs each of that once more.
# Nothing is run again by itself.
#   JUNIT=DIR        a JUnit report of each stage in DIR
#   RUN=REGEXP       only the tests with such a name
#   SOAK=10m         how long each seeded test of the soak tier goes on with new seeds
#   WSMOUNT_SEED=N   that seed alone, in either tier
#   BEGUN=SECONDS    when what came before the tests has begun, since 1970
set -euo pipefail

tier=$1
go=${GO:-go}
begun=${BEGUN:-$EPOCHSECONDS}
# What a run left that was killed ends, and is named: see integration/testrun. This run is
# one too, with all temporary files below its directory, which is in use while its lock
# is held, and with a watcher, which learns by the end of its input that it has ended. What
# it starts gets neither the lock nor the watcher's input.
run=$(mktemp -d "${WSMOUNT_TEST_DIR:-/var/tmp}/wsmount-test-XXXXXX")
exec 9>"$run/in-use"
flock -n 9
chmod 755 "$run" # other users run what is tested
"$go" test -vet=off -c -o "$run/testrun" ./integration/testrun
"$run/testrun" -test.run '^$' 2>&1 | grep '^testrun:' || true
exec 8> >(exec 9>&- && WSMOUNT_TEST_WATCH=$run exec setsid "$run/testrun")
watcher=$!
# To remove what is mounted there would be to remove what is in it: the watcher ends that.
end() {
	local code=$?
	grep -qF " $run/" /proc/self/mountinfo || rm -rf "$run"
	exec 8>&-
	# After Ctrl-C bash calls it no child, and says so.
	wait $watcher 2>/dev/null || { code=1 && tail --pid=$watcher -f /dev/null; }
	exit $code
}
trap end EXIT
mkdir "$run/logs"
install -d -m 1777 "$run/tmp"
export TMPDIR=$run/tmp
logs=$run/logs
failed=0
times=()

# The race detector makes collecting garbage dear, and there is memory; and without the
# second setting each process that ends sleeps for a second.
export GOGC=400 GOMEMLIMIT=4GiB GORACE=atexit_sleep_ms=0

# failures LOG names each test that failed, or was under way when its program ended, and
# each package that failed without one.
failures() {
	sed -nE 's/.*"Action":"(run|pause|cont|pass|fail|skip)","Package":"([^"]*)"(,"Test":"([^"]*)")?.*/\1 \2 \4/p' "$1" | awk '
		{ test = $2 " " $3; delete running[test] }
		$1 == "run" || $1 == "cont" { running[test] = 1 }
		$1 == "fail" && !$3 { for (t in running) if (index(t, $2 " ") == 1) { print t; named[$2] = 1 } }
		$1 == "fail" && ($3 || !named[$2]) { print $2, $3; named[$2] = 1 }'
}

# seed LOG PACKAGE TEST is the last seed that a test has announced.
seed() {
	sed -nE "s|.*\"Package\":\"$2\"(,\"Test\":\"([^\"]*)\")?,\"Output\":\"tier: ([^ ]*) (WSMOUNT_SEED=[0-9]+).*|\3 \2 \4|p" "$1" |
		awk -v test="$3" '{ split($1, name, "/") } name[1] == test { last = $NF } END { print last }'
}

# again NAME FLAG... prints for each test that failed in a stage with these flags the command
# that repeats it: its own, where it has a seed and came to its end.
again() {
	local name=$1 package test own seed
	shift
	failures "$logs/$name.json" | grep -v ' .*/' | while read -r package test; do
		own=$(sed -n 's/.*to repeat it: //p' "$logs/$name.out" | grep -F " -run '^$test\$" | grep "[ ]$package\$" | sort -u || true)
		seed=$(seed "$logs/$name.json" "$package" "$test")
		[ -n "$own" ] || own="${seed:+$seed }${GOMAXPROCS:+GOMAXPROCS=$GOMAXPROCS }${SOAK:+SOAK=$SOAK }go test $* -count=1 ${test:+-run '^$test\$' }$package"
		printf '%s\n' "$own"
	done || true # grep fails where nothing did
}

# stage NAME FLAG... runs go test with the flags.
stage() {
	local name=$1 begin=$SECONDS report=() flags=() skipped
	shift
	for flag; do
		case $flag in -p | ./*) break ;; esac
		flags+=("$flag")
	done
	[ -z "${JUNIT:-}" ] || { mkdir -p "$JUNIT" && report=(--junitfile "$JUNIT/${name// /-}.xml"); }
	[ -z "${RUN:-}" ] || set -- -run "$RUN" "$@"
	echo "== $name"
	# Lint has run go vet already. The time limit is a guard against hanging, far beyond
	# what a package takes on a machine that does much else.
	bin/gotestsum --format pkgname --format-icons text --format-hide-empty-pkg --hide-summary skipped \
		--jsonfile "$logs/$name.json" "${report[@]}" -- -vet=off -count=1 "$@" 8>&- 9>&- | tee "$logs/$name.out" || failed=1
	skipped=$(grep '"Action":"skip"' "$logs/$name.json" | grep -o '"Test":"[^"]*"' || true)
	if [ "${WSMOUNT_REQUIRE:-}" = all ] && [ -n "$skipped" ]; then
		printf '%s\n' 'skipped, where nothing may be:' "$skipped" | tee "$logs/$name.failed"
		failed=1
	fi
	failures "$logs/$name.json" | sed "s|^|$name: |" >>"$logs/$name.failed"
	again "$name" "${flags[@]}" >>"$logs/again"
	took "$name" $((SECONDS - begin))
}

# took NAME SECONDS
took() { times+=("$(printf '%5d s  %s' "$2" "$1")"); }

# What takes longest begins first.
packages=(./cache ./cmd/wsmount ./providers/git ./providers/s3 $("$go" list ./... | grep -v '/integration'))

if [ "$tier" = soak ]; then
	took 'tools' $((EPOCHSECONDS - begun))
	export CGO_ENABLED=1 # the race detector needs it
	stage packages -tags soak -race -timeout 24h -p 2 "${packages[@]}"
	stage 'mounted program' -tags soak -race -timeout 24h -p 1 -parallel 3 ./integration/...
else
	# Built once for all of them, as testrun builds it.
	patient=$(sed -n 's/^const Patient = "\(.*\)"$/\1/p' integration/testrun/run.go)
	"$go" build -trimpath "$patient" -o "$run/wsmount" ./cmd/wsmount
	export WSMOUNT_TEST_BINARY=$run/wsmount
	took 'lint, tools and the program' $((EPOCHSECONDS - begun))
	CGO_ENABLED=1 stage packages -race -timeout 90m -p 4 "${packages[@]}" # they wait for the disk as much as they compute
	CGO_ENABLED=1 GOMAXPROCS=1 stage 'fs on one processor' -race -timeout 90m ./fs/...
	stage 'mounted program' -timeout 90m -p 2 -parallel 6 ./integration/... # they wait as well
fi

echo '== the slowest tests'
cat "$logs"/*.json | bin/gotestsum tool slowest --threshold 1s --num 20
took 'in all' $((EPOCHSECONDS - begun))
printf '%s\n' '== stages' "${times[@]}"
[ $failed = 0 ] || { echo '== failed' && cat "$logs"/*.failed && echo '== to repeat each' && cat "$logs/again"; }
exit $failed
