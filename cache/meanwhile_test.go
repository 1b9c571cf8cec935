package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A heldCall is the first call of a method that a script makes a drain send, and the
// path that it is about.
type heldCall struct {
	store   string // of stores, or "sets", or a clone, which is "pushed" or "pulled"
	call    providers.Method
	script  string
	path    string
	changes []string // scripts of what else changes while it is held
}

// What changes meanwhile: "%" is the path of the call, "@" its name in its directory.
var (
	changesBeside = []string{"put d/new 1", "mkdir d/new", "rmdir e", "sym b d/new", "chmod d 711", "mv d q", "put d/y other", "mv d/y z", "rm d/y"}
	changesOfFile = append([]string{"put % again", "append % more", "cut % 1", "rm %", "mv % z", "mv % a", "mv b %", "put n new,mv n %",
		"swap % b", "swap % d/y", "rm %,put % anew", "rm %,mkdir %,put %/f 1", "rm %,mv b %", "mv % z,put % anew", "mv % z,mv z %",
		"mv % z,append z more", "mv d q,append q/@ more", "chmod % 711", "chmod % 644", "tag % user.x=2", "touch %", "ln % n", "ln % n,rm %"}, changesBeside...)
	changesOfLink = append([]string{"rm %", "mv % z", "mv b %", "rm %,put % file", "rm %,sym a %", "swap % b"}, changesBeside...)
	changesOfDir  = append([]string{"put %/new 1", "mkdir %/new", "rm %/z,rmdir %", "mv % q", "mv % q,put q/new 1", "mv % q,mkdir %,put %/new 1",
		"mv % q,mv q %", "mv b %/b", "mv %/z z", "append %/z more", "swap % b", "swap % e", "chmod % 711", "tag % user.x=2"}, changesBeside...)
	changesOfEmptyDir = append([]string{"put %/new 1", "mkdir %/new", "rmdir %", "rmdir %,put % file", "mv % q", "mv % q,put q/new 1",
		"mv b %/b", "swap % b", "mv e %", "chmod % 711", "tag % user.x=2"}, changesBeside...)
	changesOfGone = append([]string{"put % anew", "mkdir %", "mkdir %,put %/f 1", "mv b %", "sym b %", "ln b %", "mv e %"}, changesBeside...)
)

// inManyParts is content that goes in parts where they are of smallPart bytes.
const (
	smallPart   = 8
	inManyParts = "0123456789abcdefghijklmnopqrstuvwxyz"
)

var heldCalls = []heldCall{
	{"rename", providers.MethodWrite, "put d/f mine", "d/f", changesOfFile},
	{"rename", providers.MethodWrite, "put d/x mine", "d/x", changesOfFile},
	{"flat", providers.MethodWrite, "put d/x mine", "d/x", changesOfFile},
	{"flat, no digest", providers.MethodWrite, "put d/x mine", "d/x", changesOfFile},
	{"rename", providers.MethodWrite, "sym b d/l", "d/l", changesOfLink},
	{"rename", providers.MethodDelete, "rm d/x", "d/x", changesOfGone},
	{"flat", providers.MethodDelete, "rm d/x", "d/x", changesOfGone},
	{"rename", providers.MethodDelete, "rmdir d/t", "d/t", changesOfGone},
	{"rename", providers.MethodMkdir, "mkdir d/n", "d/n", changesOfEmptyDir},
	{"rename", providers.MethodSetAttr, "chmod d/x 600", "d/x", changesOfFile},
	{"rename", providers.MethodSetAttr, "tag d/x user.x=1", "d/x", changesOfFile},
	{"rename", providers.MethodSetAttr, "chmod d/s 700", "d/s", changesOfDir},
	{"rename", providers.MethodMove, "mv d/x d/n", "d/n", changesOfFile},
	{"rename", providers.MethodMove, "mv d/x d/n", "d/x", changesOfGone},
	{"rename", providers.MethodMove, "mv d/x d/y", "d/y", changesOfFile},
	{"rename", providers.MethodMove, "mv d/s d/n", "d/n", changesOfDir},
	{"copy", providers.MethodCopy, "mv d/x d/n", "d/n", changesOfFile},
	{"copy", providers.MethodDelete, "mv d/x d/n", "d/n", changesOfFile},
	{"copy", providers.MethodCopy, "mv d/s d/n", "d/n", changesOfDir},
	{"rename", providers.MethodCopy, "ln d/x d/n", "d/n", changesOfFile},
	{"rename", providers.MethodStartParts, "put d/x " + inManyParts, "d/x", changesOfFile},
	{"rename", providers.MethodPart, "put d/x " + inManyParts, "d/x", changesOfFile},
	{"rename", providers.MethodCopyPart, "append d/x 1", "d/x", changesOfFile},
	{"rename", providers.MethodComplete, "put d/x " + inManyParts, "d/x", changesOfFile},
	{"rename", providers.MethodAbort, "put d/x " + inManyParts, "d/x", changesOfFile},
	{"sets", providers.MethodCommit, "put d/x mine", "d/x", changesOfFile},
	{"sets", providers.MethodCommit, "rm d/x", "d/x", changesOfGone},
	{"sets", providers.MethodCommit, "mv d/s d/n", "d/n", changesOfDir},
	{"pushed", providers.MethodCommit, "put d/x mine", "d/x", changesOfFile},
	{"pushed", providers.MethodCommit, "chmod d/x 755", "d/x", changesOfFile},
	{"pushed", providers.MethodCommit, "mv d/s d/n", "d/n", changesOfDir},
	{"pushed", providers.MethodPush, "put d/x mine", "d/x", changesOfFile},
	{"pulled", providers.MethodFetch, "put d/x mine", "d/x", changesOfFile},
	{"pulled", providers.MethodRebase, "put d/x mine", "d/x", changesOfFile},
	{"pulled", providers.MethodAdopt, "put d/x mine", "d/x", changesOfFile},
}

// An ending is what becomes of a call that was held.
type ending struct {
	name              string
	carriedOut, fails bool // before it is held, and with or without an answer
}

var endings = []ending{{"before", false, false}, {"after", true, false}, {"fails", false, true}, {"answer lost", true, true}}

// What changes while any call of a provider is under way reaches the store as well, be
// the call answered, refused or its answer lost, before or after what it asks for is done;
// and nothing is said to be sent that is not. In make test each call meets every eighth
// change, with one of the endings.
func TestChangesWhileACallIsHeld(t *testing.T) {
	of := map[string][]heldCall{}
	for _, c := range heldCalls {
		of[c.store] = append(of[c.store], c)
	}
	for store, calls := range of {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			h := newMeanwhile(t, store)
			for row, c := range calls {
				t.Run(fmt.Sprintf("%s %s %s", c.call, c.script, c.path), func(t *testing.T) { h.run(t, row, c) })
			}
			h.T = t
		})
	}
}

// run holds one call, in a directory of its own for each change.
func (h *meanwhile) run(t *testing.T, row int, c heldCall) {
	h.T, h.c = t, c
	for i, change := range c.changes {
		for k, end := range endings {
			if tier.Soak || (row+i)%8 == 0 && k == (row+i/8)%len(endings) {
				h.check(fmt.Sprintf("c%d-%d-%d", row, i, k), change, end)
			}
		}
	}
}

// meanwhile is a world in which calls of one method can be held.
type meanwhile struct {
	*world
	store  string
	remote *memoryrepo.Remote // of a clone
	c      heldCall
	gate   atomic.Pointer[heldGate]
	dir    string // guarded by the volume's lock, as want is
	want   string // what the store has to have in dir; "": nothing is checked
}

// A heldGate holds all calls that come before it is open; the first has the ending.
type heldGate struct {
	call          providers.Method
	end           ending
	first         atomic.Bool
	reached, open chan struct{}
}

func newMeanwhile(t *testing.T, store string) *meanwhile {
	h := &meanwhile{store: store}
	h.world = newWorld(t, h.place, lazily, func(w *world, o *Options) {
		h.world = w
		o.Policy.Push, o.part, o.within, w.wrap = store == "pushed", smallPart, func(v *Tx) { h.sent(v.View) }, around(h.hold)
	})
	return h
}

// place makes the store.
func (h *meanwhile) place(w *world, o *Options) {
	switch h.store {
	case "pushed", "pulled":
		h.remote = memoryrepo.NewRemote(nil)
		remoteWith(h.remote, "base", "1")(w, o)
	case "sets":
		o.Policy.Atomic = true
	default:
		over(stores[h.store])(w, o)
	}
}

// shown is where others see what was sent.
func (h *meanwhile) shown() providers.Provider {
	if h.remote != nil {
		return memoryrepo.NewRepository(h.remote, "", memory.Options{})
	}
	return h.p
}

func (h *meanwhile) hold(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	gate := h.gate.Load()
	if gate == nil || c.Method != gate.call {
		return next(ctx)
	}
	if gate.first.Swap(true) {
		<-gate.open
		return next(ctx)
	}
	var err error
	if gate.end.carriedOut {
		err = next(ctx)
	}
	close(gate.reached)
	<-gate.open
	switch {
	case gate.end.fails:
		return fmt.Errorf("%w: held", providers.ErrUnavailable)
	case gate.end.carriedOut:
		return err
	}
	return next(ctx)
}

// watch has all that is noted from now on checked.
func (h *meanwhile) watch(dir, want string) {
	locked := h.v.lock()
	defer locked.unlock()
	h.dir, h.want = dir, want
	h.sent(locked)
}

// sent checks what is said to be sent, under the volume's lock.
func (h *meanwhile) sent(v *View) {
	if h.want == "" || v.DirtyCount() > 0 || revision.UnpushedOf(v) != nil {
		return
	}
	assert.Equal(h, h.there(h.dir), h.want, h.dir, "nothing is said to be unsent, but the store has")
}

// check makes a change in a directory while the call is held, and drains.
func (h *meanwhile) check(dir, change string, end ending) {
	gate := &heldGate{call: h.c.call, end: end, reached: make(chan struct{}), open: make(chan struct{})}
	h.prepare(dir)
	h.do(inDir(dir, []string{h.c.script})...)
	h.gate.Store(gate)
	open := sync.OnceFunc(func() { close(gate.open) })
	defer open()
	done := async(h.send)
	select {
	case <-gate.reached:
	case <-done:
		h.Fatalf("%s: the call was never made", dir)
	}
	change = strings.NewReplacer("%", h.c.path, "@", at(h.c.path).Name()).Replace(change)
	h.do(inDir(dir, strings.Split(change, ","))...)
	want := h.here(dir)
	h.watch(dir, want)
	h.gate.Store(nil)
	open()
	if <-done; h.store == "pulled" {
		h.send()
	}
	h.watch("", "")
	assert.Equal(h, h.here(dir), want, dir, end.name, change, "programs see")
	assert.Equal(h, h.there(dir), want, dir, end.name, change, "the store has")
	s := h.v.Status()
	assert.True(h, s.Queued == 0 && s.Unpushed == nil, dir, end.name, change, "unsent are", s.Queued, "names", s.Unpushed)
}

// prepare makes what a script and a change are about, and has others push where only
// that leads to the call.
func (h *meanwhile) prepare(dir string) {
	h.do("mkdir " + dir)
	h.do(inDir(dir, []string{"put a A", "put b B", "mkdir e", "mkdir d", "put d/x " + inManyParts, "put d/y Y", "mkdir d/s", "put d/s/z Z", "mkdir d/t"})...)
	h.send()
	switch {
	case h.c.call == providers.MethodAbort:
		h.faults.Queue(providers.MethodComplete, providertest.Fault{Before: providers.ErrUnavailable})
	case h.store == "pulled":
		h.ok(h.remote.Tamper("", at("theirs/"+dir), []byte("theirs")))
	}
}

// send drains. To pull there is one that pushes, at a time that is known.
func (h *meanwhile) send() {
	h.ok(h.v.Drain(h.Context(), nil))
	if h.store == "pulled" {
		h.ok(h.push())
	}
}

// here and there list a directory as programs see it and as the store has it, with what
// attributes that keeps.
func (h *meanwhile) here(dir string) string {
	return h.described(h.localBelow(dir), func(path string) providers.Attr {
		n := h.inode(h.walk(path))
		return h.v.attrs().Of(&n).Keep(h.v.caps.Attributes)
	})
}

func (h *meanwhile) there(dir string) string {
	p := h.shown()
	return h.described(listBackendBelow(p, at(dir)), func(path string) providers.Attr {
		info := assert.Of(p.Stat(context.Background(), at(path))).OK(h)
		return info.Attr
	})
}

func (h *meanwhile) described(lines []string, attr func(path string) providers.Attr) string {
	var all []string
	for _, line := range lines {
		path, isDir := strings.CutSuffix(line, "/")
		path, _, isFile := strings.Cut(path, ": ")
		switch {
		case isDir && !h.v.caps.EmptyDirs:
			continue
		case isDir && (h.v.sets != nil || !h.v.exec.TellsDirAttrs()):
		case isDir:
			a := attr(path)
			line += fmt.Sprintf(" %o %q", a.Mode, a.Xattrs)
		case isFile:
			a := attr(path)
			line += fmt.Sprintf(" %v %o %d %q", a.Valid, a.Mode, a.ModTime.UnixNano(), a.Xattrs)
		}
		all = append(all, line)
	}
	return strings.Join(sorted(all), "\n\t")
}
