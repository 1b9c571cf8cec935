// Package tier tells tests which of the two tiers they run in.
//
// `make test` is deterministic: fixed seeds, small sizes, every promise once. `make
// soak` (build tag soak) looks for the unknown: new seeds for as long as $SOAK says,
// long models, kills by the dozen, servers that take minutes to build. A whole test of
// the soak tier stands in a file *_soak_test.go with that build tag, and its comment
// says why it is there; a test that only differs in size asks this package. Nothing of
// the soak tier is skipped in make test: it is not built.
//
// What only make soak can find, since make test has it once, small, with one seed, or not
// at all (there, every promise has a test all the same):
//
//   - what depends on the order or the moment: kills by the dozen at every point of each
//     service and at any time (integration/crash, providers/git), losses of power by the
//     dozen, under load too, a signal at each moment of a command, a kill after each step of
//     a commit or an upload;
//   - what depends on what is drawn: models of the mount, of the working copy, its table,
//     its history and the providers with new seeds and long runs, two writers, rules and
//     merges compared with git's own, by the ten thousand;
//   - what depends on size: 200 mounts of one machine, 100,000 open files, 10,000 files to
//     recover, disks that fill up later, secrets and manifests of 100 MiB;
//   - pairs where make test has a diagonal: each flag with each other, each change with
//     each that comes meanwhile, each escape alone, each outage of each service, each tool
//     on each kind of workspace;
//   - what a real server does otherwise: MinIO, Azurite, fake-gcs-server, Gitea with its
//     pull requests, and GitHub's description of its API;
//   - what costs more than before: exact numbers of requests, and how soon a watch tells;
//   - how the pages of `wsmount ui` look, and behave, in a browser; PICTURES=DIR keeps a
//     picture of each;
//   - packages as they are installed, their manual pages and completions in each shell, and
//     the program of the other architecture.
//
// Each seed of the soak tier is new, and a failure prints the command that repeats it,
// with the seed in $WSMOUNT_SEED, also when the whole program ended. Importing the package
// is enough to give pgregory.net/rapid its seed too; -rapid.seed on the command line still
// wins.
package tier

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid" // its flags are defined before they are set below
)

func init() {
	// The seed is enough; files of failures do not belong in the tree.
	set("rapid.seed", strconv.FormatUint(newSeed(), 10))
	set("rapid.nofailfile", "true")
	Checks(100, 100)
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err) // rapid has no such flag any more
	}
}

// Checks is how many cases rapid draws for each property: in make soak so many for each
// minute of $SOAK. A TestMain calls it before flags are read, so that -rapid.checks on the
// command line wins.
func Checks(test, soak int) {
	set("rapid.checks", strconv.Itoa(Pick(test, max(soak, int(float64(soak)*budget().Minutes())))))
}

// Pick is test in make test, and soak in make soak.
func Pick[T any](test, soak T) T {
	if Soak {
		return soak
	}
	return test
}

// seedEnv names the one seed that tests use, in either tier.
const seedEnv = "WSMOUNT_SEED"

// named is the seed that $WSMOUNT_SEED names.
func named() (seed uint64, is bool) {
	text := os.Getenv(seedEnv)
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(seedEnv + ": " + err.Error())
	}
	return seed, true
}

// NewSeed is the seed that $WSMOUNT_SEED names, or 1 in make test and a new one in make
// soak. Who fails with it says which it was: Seed does.
func NewSeed() uint64 {
	seed := newSeed()
	announce("", seed)
	return seed
}

func newSeed() uint64 {
	if seed, is := named(); is {
		return seed
	}
	if Soak {
		return rand.Uint64()
	}
	return 1
}

// Seed is NewSeed of a test that has one for all that it does. A failure prints the
// command that repeats it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := newSeed()
	repeats(t, seed)
	return seed
}

// Check is rapid.Check, of which a failure prints the command that repeats it.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	seed, err := strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	repeats(t, seed)
	rapid.Check(t, property)
}

// announce says which seed is used, in make soak: when another goroutine panics, or time is
// over, the program ends before any test can. integration/tools/test.sh reads it.
func announce(test string, seed uint64) {
	if Soak {
		fmt.Fprintf(os.Stderr, "tier: %s %s=%d\n", test, seedEnv, seed)
	}
}

// repeats has a failure of the test print the command that repeats it.
func repeats(t testing.TB, seed uint64) {
	announce(t.Name(), seed)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		soak := ""
		if Soak {
			soak = "SOAK=" + budget().String() + " "
		}
		flags, path := built()
		t.Logf("to repeat it: %s%s=%d go test -count=1%s -run '^%s$' %s", soak, seedEnv, seed, flags,
			strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^"), path)
	})
}

// Seeds runs body as a subtest for each of the seeds 1 to n and the ones named after
// them, which once failed. In make soak it goes on with new seeds until $SOAK (a
// duration, 1m unless set) has passed or one has failed. A failure prints the command
// that repeats it; $WSMOUNT_SEED runs that seed alone.
func Seeds(t *testing.T, n int, body func(t *testing.T, seed uint64), failedBefore ...uint64) {
	t.Helper()
	run := func(seed uint64) bool {
		return t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			repeats(t, seed)
			body(t, seed)
		})
	}
	if seed, is := named(); is {
		run(seed)
		return
	}
	for seed := uint64(1); seed <= uint64(n); seed++ {
		run(seed)
	}
	for _, seed := range failedBefore {
		run(seed)
	}
	for end := time.Now().Add(budget()); Soak && !t.Failed() && time.Now().Before(end); {
		run(rand.Uint64())
	}
}

// built are the flags of go test that this program was built with, and the package whose
// tests it is.
func built() (flags, path string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", "."
	}
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-tags" {
			flags += " " + s.Key + "=" + s.Value
		}
	}
	return flags, strings.TrimSuffix(info.Path, ".test")
}

// Rounds counts the rounds of a test that has one seed for all of them: n, and in make
// soak as many more as begin before $SOAK has passed.
func Rounds(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		end := time.Now().Add(budget())
		for i := 0; i < n || Soak && time.Now().Before(end); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// budget is how long each test of the soak tier goes on with new seeds.
func budget() time.Duration {
	text := os.Getenv("SOAK")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("SOAK: " + err.Error())
	}
	return d
}
