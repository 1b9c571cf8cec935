// Package model compares a mounted tree with a plain directory, operation by
// operation, under random operations.
//
// It knows nothing of wsmount: the same operations go to both trees, each must
// give the same answer (errno, bytes, names) on both, and now and then all that
// can be seen of the two is compared: kinds, modes, links, sizes, contents,
// attributes, targets. It promises that a failure is found again: it prints the
// seed and the shortest list of operations that it could find.
//
//	model.Run(t, model.Subject{
//		Dir:     mountpoint,                // what is tried
//		Behind:  "/srv/acme",               // the directory that the mount shows
//		Remount: func() error { ... },
//	}, model.Options{Ops: 20_000})
package model

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A Subject is the mounted tree that is compared with a plain directory.
type Subject struct {
	Dir string

	// Behind is the directory that Dir shows, where others make changes that
	// the mount does not see happen. Empty: no such changes are made.
	Behind string

	// Remount unmounts and mounts again. Nil: it is not done. No file of the
	// tree is open when it is called.
	Remount func() error
}

// Options choose how much is done.
type Options struct {
	// Ops is the number of operations; 0 means some in make test, and many in
	// make soak.
	Ops int
}

// rounds is how many trees the operations are spread over.
const rounds = 100

// Run does the operations and fails the test at the first difference.
func Run(t *testing.T, s Subject, o Options) {
	t.Helper()
	if o.Ops == 0 {
		o.Ops = tier.Pick(2000, 100_000)
	}
	reference := t.TempDir()
	kinds := kindsFor(s)
	round := 0
	tier.Check(t, func(rt *rapid.T) {
		round++
		name := fmt.Sprintf("round-%d", round)
		r := newRun(rt, s, o, filepath.Join(reference, name), name)
		defer r.end()
		for i, op := range rapid.SliceOfN(operation(kinds), o.Ops/rounds, o.Ops/rounds).Draw(rt, "operations") {
			r.step(op)
			if i%50 == 49 {
				r.compare()
			}
		}
		r.compare()
	})
}

// A run is one pair of trees.
type run struct {
	rt      *rapid.T
	s       Subject
	o       Options
	name    string
	subject *tree
	model   *tree
}

func newRun(rt *rapid.T, s Subject, o Options, reference, name string) *run {
	r := &run{rt: rt, s: s, o: o, name: name,
		subject: &tree{root: filepath.Join(s.Dir, name)}, model: &tree{root: reference}}
	for _, dir := range []string{r.subject.root, r.model.root} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			rt.Fatalf("start: %v", err)
		}
	}
	return r
}

func (r *run) end() {
	for _, t := range []*tree{r.subject, r.model} {
		t.closeAll()
		if err := removeAll(t.root); err != nil {
			r.rt.Errorf("end: %v", err)
		}
	}
}

// step does one operation on both trees and compares the answers.
func (r *run) step(op op) {
	switch op.Kind {
	case nothing:
		return
	case remount:
		r.remount()
		return
	case behind:
		r.behind(op)
		return
	}
	op = r.aim(op)
	got, want := r.subject.do(op), r.model.do(op)
	r.rt.Logf("%v: %s", op, want)
	if got != want {
		r.rt.Fatalf("%v: got %s, want %s", op, got, want)
	}
}

// aim turns three of four operations that need something to work on to what is
// there, by the model: a blind choice mostly hits nothing.
func (r *run) aim(op op) op {
	if op.Byte%4 == 0 {
		return op
	}
	for i := 0; i < slots && r.model.open[op.FD] == 0; i++ {
		op.FD = (op.FD + 1) % slots
	}
	if there := r.model.existing(wantedType(op)); len(there) > 0 && needsName[op.Kind] {
		op.A = there[int(op.Off)%len(there)]
	}
	return op
}

func (r *run) remount() {
	r.rt.Logf("remount")
	r.subject.closeAll()
	r.model.closeAll()
	if err := r.s.Remount(); err != nil {
		r.rt.Fatalf("remount: %v", err)
	}
	r.compare()
}

// behind makes a change in the directory that the mount shows, and waits until
// the mount shows it too: by name, and of the files that are open, which may
// have lost theirs.
func (r *run) behind(op op) {
	op.Kind = op.Behind
	if r.model.isFifo(op.A) || r.model.isFifo(op.B) {
		// A fifo's readers here and behind the mount do not meet, and a mount is
		// not told that one is open: when its last name goes behind it, it is gone.
		return
	}
	other := tree{root: filepath.Join(r.s.Behind, r.name)}
	got, want := other.do(op), r.model.do(op)
	r.rt.Logf("behind: %v: %s", op, want)
	if got != want {
		r.rt.Fatalf("behind: %v: got %s, want %s", op, got, want)
	}
	expected := r.model.snapshot()
	var diff string
	if !assert.Await(func() bool {
		diff = cmp.Or(difference(r.subject.snapshot(), expected), r.openDifference())
		return diff == ""
	}) {
		r.rt.Fatalf("%v after a change behind the mount: %s", assert.Hangs, diff)
	}
}

// openDifference compares what fstat says of the open files.
func (r *run) openDifference() string {
	for fd := range slots {
		look := op{Kind: statFile, FD: fd}
		if got, want := r.subject.do(look), r.model.do(look); got != want {
			return fmt.Sprintf("%v: got %s, want %s", look, got, want)
		}
	}
	return ""
}

func (r *run) compare() {
	if diff := difference(r.subject.snapshot(), r.model.snapshot()); diff != "" {
		r.rt.Fatalf("trees differ: %s", diff)
	}
}
