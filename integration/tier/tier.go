// Package tier tells tests which of the two tiers they run in.
//
// `make test` is deterministic: fixed seeds, small sizes, every promise once. `make
// soak` (build tag soak) looks for the unknown: new seeds for as long as $SOAK says,
// long models, kills by the dozen, servers that take minutes to build. A whole test of
// the soak tier stands in a file *_soak_test.go with that build tag, and its comment
// says why it is there; a test that only differs in size asks this package. Nothing of
// the soak tier is skipped in make test: it is not built.
//
// Importing the package is enough to give pgregory.net/rapid a fixed seed in make test;
// -rapid.seed on the command line still wins.
package tier

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "pgregory.net/rapid" // its flags are defined before they are set below
)

func init() {
	if Soak {
		return
	}
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err) // rapid has no such flag any more
		}
	}
}

// Pick is test in make test, and soak in make soak.
func Pick[T any](test, soak T) T {
	if Soak {
		return soak
	}
	return test
}

// seedEnv names one seed that Seeds runs alone, in either tier.
const seedEnv = "WSMOUNT_SEED"

// Seeds runs body as a subtest for each of the seeds 1 to n and the ones named after
// them, which once failed. In make soak it goes on with new seeds until $SOAK (a
// duration, 1m unless set) has passed or one has failed. A failure prints the command
// that repeats it; $WSMOUNT_SEED runs that seed alone.
func Seeds(t *testing.T, n int, body func(t *testing.T, seed uint64), failedBefore ...uint64) {
	t.Helper()
	run := func(seed uint64) bool {
		return t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat it: %s=%d go test -count=1 %s -run '^%s$' %s", seedEnv, seed, Pick("-race", "-tags soak"),
						strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^"), testedPackage())
				}
			})
			body(t, seed)
		})
	}
	if only := os.Getenv(seedEnv); only != "" {
		seed, err := strconv.ParseUint(only, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
		run(seed)
		return
	}
	for seed := uint64(1); seed <= uint64(n); seed++ {
		run(seed)
	}
	for _, seed := range failedBefore {
		run(seed)
	}
	for end := time.Now().Add(budget(t)); Soak && !t.Failed() && time.Now().Before(end); {
		run(uint64(time.Now().UnixNano()))
	}
}

// testedPackage is the one whose tests this program is.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return strings.TrimSuffix(info.Path, ".test")
	}
	return "."
}

// budget is how long each test of the soak tier goes on with new seeds.
func budget(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	return d
}
