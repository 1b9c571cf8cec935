package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A Shared is a tree in a store that others change at the same time, seen through
// one or more mounts. There is no second tree to compare it with, because who wins
// is decided by chance; what must hold instead is that no content is lost: each
// that a writer was told is written is in the tree in the end, unless a writer who
// had seen it replaced or removed it.
type Shared struct {
	Mounts []Mount
	Other  Other

	// Stored lists what the store has below the mounts' Dir: Digest of each file's
	// content, and DirMark for directories.
	Stored func() (map[string]string, error)

	// Apart: no directory has a name that a file has at another time. Some stores
	// hide one of both where two writers make them at once.
	Apart bool

	// Disturb makes the store misbehave for a moment, and may be nil.
	Disturb func(n int) error
}

// A Mount is where programs work on a Shared.
type Mount struct {
	Dir string // in the mount, empty at the start

	// Settle returns when the store has what was changed in Dir, and Dir shows
	// what the store has.
	Settle func() error
	// Kept reports whether the history has content of this Digest for a path
	// below Dir. Nil: there is no history to look into.
	Kept func(path, digest string) bool

	// Each may be nil, and is called now and then. Remount gets no open file to
	// wait for. Kill ends the mount's process at once and mounts again: files
	// that are open are lost to their programs. Pull asks the mount to look at
	// the store.
	Remount, Kill, Pull func() error
}

// Other is another writer at the store. It changes only what it has seen: both
// answer which content they replaced or removed (nil: there was none), and done
// is false if nothing was changed because somebody was quicker.
type Other interface {
	Put(path string, content []byte) (replaced []byte, done bool, err error)
	Remove(path string) (removed []byte, done bool, err error)
}

// SharedOptions choose how much is done.
type SharedOptions struct {
	Ops    int
	Settle int // operations between two comparisons
	Seed   uint64
}

// RunShared does random operations in the mount and at the store behind it. At
// a failure it prints the seed, and what was done to the paths that matter. The
// same seed makes the same choices, but the two sides do not meet in the same
// moments again.
func RunShared(t *testing.T, s Shared, o SharedOptions) {
	t.Helper()
	r := &sharing{t: t, s: s, seed: o.Seed, rand: rand.New(rand.NewPCG(o.Seed, 0)), ledger: newLedger(), counts: map[string]int{}}
	for range s.Mounts {
		r.unseen = append(r.unseen, map[string]bool{})
	}
	defer r.closeAll()
	for i := range o.Ops {
		r.step()
		if (i+1)%o.Settle == 0 || i+1 == o.Ops {
			r.verify()
		}
	}
	if n := r.counts["unlucky"]; tier.Soak && n > o.Ops/200+1 { // of few it is luck
		t.Errorf("%d of %d operations failed because others were quicker twice", n, o.Ops)
	}
	t.Logf("seed %d: %d contents written, %d doubtful; %v", o.Seed, len(r.ledger.known), r.ledger.doubts, r.counts)
}

// sharing is one run.
type sharing struct {
	t      *testing.T
	s      Shared
	seed   uint64
	rand   *rand.Rand
	ledger *ledger
	open   [slots]*handle
	at     int               // the mount that is worked in
	unseen []map[string]bool // of each mount, what another put since all were the same
	asides int               // names that were made by take
	log    []string
	counts map[string]int
}

// note remembers what was done.
func (r *sharing) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%s %5d %d ", time.Now().Format("05.000"), r.ledger.next, r.at)+fmt.Sprintf(format, args...))
	if len(r.log) > 20_000 {
		r.log = r.log[10_000:]
	}
}

// fail ends the run with what was done to some paths, and last of all.
func (r *sharing) fail(about []string, format string, args ...any) {
	r.t.Helper()
	var lines []string
	for i, line := range r.log {
		related := i >= len(r.log)-25
		for _, a := range about {
			related = related || strings.Contains(line, a)
		}
		if related {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-120):]
	r.t.Fatalf("WSMOUNT_MODEL_SEED=%d: %s\n%s", r.seed, fmt.Sprintf(format, args...), strings.Join(lines, "\n"))
}

// must fails unless an operation went well, or as a local tree may answer when
// the other side changes it meanwhile.
func (r *sharing) must(what string, err error, allowed ...unix.Errno) bool {
	r.t.Helper()
	if err == nil {
		return true
	}
	if unlucky(what, err) && (len(r.s.Mounts) > 1 || errors.Is(err, unix.ESTALE)) {
		r.counts["unlucky"]++
		return false
	}
	for _, a := range append(allowed, unix.ENOENT, unix.ENOTDIR) {
		if result(err) == unix.ErrnoName(a) {
			return false
		}
	}
	r.fail(strings.Fields(what)[1:], "%s: %v", what, err)
	return false
}

// unlucky: the kernel asks again once, and the name was given to others twice; or
// content that is not here yet was removed by others before it came.
func unlucky(what string, err error) bool {
	verb, _, _ := strings.Cut(what, " ")
	return errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EIO) && (verb == "open" || verb == "hold" || verb == "read")
}

func (r *sharing) path(p string) string { return filepath.Join(r.s.Mounts[r.at].Dir, p) }

// others notes what comes to a path from elsewhere, for all mounts but one; -1:
// for all.
func (r *sharing) others(than int, path string) {
	for i := range r.unseen {
		if i != than {
			r.unseen[i][path] = true
		}
	}
}

// surprising: what is at a path here may have come from elsewhere unseen.
func (r *sharing) surprising(path string) bool {
	for p := range r.unseen[r.at] {
		if p == path || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// Names of the shared tree: few, so that the two sides meet.
func (r *sharing) dirName() string {
	return []string{"", "", "d1/", "d2/", "d1/e/"}[r.rand.IntN(5)]
}

func (r *sharing) name() string {
	if r.rand.IntN(30) == 0 && !r.s.Apart {
		return "d2" // a directory, as a rule
	}
	return r.dirName() + []string{"a", "b", "c", "f.txt", "g.tar.gz"}[r.rand.IntN(5)]
}

// step does one operation, in one of the mounts.
func (r *sharing) step() {
	r.at = r.rand.IntN(len(r.s.Mounts))
	m := r.s.Mounts[r.at]
	kinds := []struct {
		weight int
		name   string
		do     func()
	}{
		{14, "write", r.write}, {8, "save", r.save}, {6, "unlink", r.unlink}, {6, "rename", r.rename},
		{4, "mkdir", r.mkdir}, {3, "rmdir", r.rmdir}, {3, "rename dir", r.renameDir}, {12, "read", r.read},
		{5, "hold", r.hold}, {8, "write held", r.writeHeld}, {4, "let go", r.letGo}, {3, "list", r.list},
		{12, "other put", r.otherPut}, {5, "other remove", r.otherRemove},
		{3, "pull", r.pull}, {1, "disturb", r.disturb},
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := r.rand.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			r.counts[k.name]++
			k.do()
			break
		}
	}
	if r.rand.IntN(1500) == 0 {
		r.again("remount", m.Remount)
	}
	if r.rand.IntN(1500) == 0 {
		r.again("kill", m.Kill)
	}
}

func (r *sharing) pull() {
	pull := r.s.Mounts[r.at].Pull
	if pull == nil {
		return
	}
	r.note("pull")
	if err := pull(); err != nil {
		r.fail(nil, "pull: %v", err)
	}
}

func (r *sharing) disturb() {
	if r.s.Disturb == nil {
		return
	}
	n := r.rand.IntN(1000)
	r.note("disturb %d", n)
	if err := r.s.Disturb(n); err != nil {
		r.fail(nil, "disturb: %v", err)
	}
}

func (r *sharing) again(what string, mount func() error) {
	if mount == nil {
		return
	}
	r.note("%s", what)
	r.counts[what]++
	r.closeHere()
	if err := mount(); err != nil {
		r.fail(nil, "%s: %v", what, err)
	}
}

// verify lets the two sides come to rest, and compares.
func (r *sharing) verify() {
	r.t.Helper()
	r.note("settle")
	if r.rand.IntN(3) > 0 {
		r.closeAll()
	} else {
		r.closeWriters()
	}
	here := r.compare()
	r.note("settled")
	for _, unseen := range r.unseen {
		clear(unseen)
	}
	for path, digest := range here {
		if digest != DirMark && !r.ledger.has(digest) {
			r.fail([]string{path}, "%s has content that nobody wrote", path)
		}
	}
	for _, lost := range r.ledger.missing(here) {
		if !r.kept(lost) {
			r.fail([]string{lost.path, lost.digest}, "lost: content %s, written as %s", lost.digest, lost.path)
		}
	}
}

// compare waits until all mounts and the store are the same.
func (r *sharing) compare() (tree map[string]string) {
	r.t.Helper()
	var diff string
	var err error
	if !assert.Await(func() bool {
		tree, diff, err = r.trees()
		return err == nil && diff == ""
	}) {
		r.fail([]string{strings.Split(diff, " ")[0]}, "not settled: %v, %s", err, diff)
	}
	return tree
}

// trees lets each mount settle, and lists what the last of them has. diff is where
// one of them differs from the store.
func (r *sharing) trees() (here map[string]string, diff string, err error) {
	for _, m := range r.s.Mounts {
		if err := m.Settle(); err != nil {
			return nil, "", err
		}
	}
	there, err := r.s.Stored()
	for i := 0; i < len(r.s.Mounts) && err == nil && diff == ""; i++ {
		if here, err = Digests(r.s.Mounts[i].Dir); err == nil {
			diff = firstDifference(here, there)
		}
	}
	return here, diff, err
}

func (r *sharing) kept(e entry) bool {
	for _, m := range r.s.Mounts {
		if m.Kept != nil && m.Kept(e.path, e.digest) {
			return true
		}
	}
	return false
}

// firstDifference names the first path that is not the same on both sides.
func firstDifference(here, there map[string]string) string {
	for _, m := range []map[string]string{here, there} {
		for path := range m {
			if here[path] != there[path] {
				return fmt.Sprintf("%s is %q in the mount and %q in the store", path, here[path], there[path])
			}
		}
	}
	return ""
}
