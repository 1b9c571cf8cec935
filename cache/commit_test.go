package cache

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// async runs f and gives a channel that is closed when it has returned.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return done
}

func open(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// close and fsync return when the backend has the bytes, not before.
func TestCloseWaitsForTheBackend(t *testing.T) {
	for _, how := range []string{"close", "fsync"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			gate, reached := make(chan struct{}), make(chan struct{})
			w.faults.Queue(providers.MethodWrite, providertest.Fault{Gate: gate, Reached: reached})
			o := w.create("f")
			w.write(o, "hello", 0)
			done := async(func() {
				if how == "fsync" {
					w.is(o.File.Fsync(me, false), nil)
				} else {
					w.is(o.File.Flush(me), nil)
				}
			})
			<-reached
			if !open(done) {
				t.Errorf("%s returned before the backend did", how)
			}
			w.backend()
			close(gate)
			<-done
			w.backend("f: hello")
			o.File.Release()
		})
	}
}

// Each close with new bytes sends them; one without sends nothing.
func TestEveryClose(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c))
	o := w.create("f")
	w.ok(o.File.Flush(me))
	for i, s := range []string{"a", "ab", "abc"} {
		w.write(o, s[i:], int64(i))
		w.ok(o.File.Flush(me))
		w.ok(o.File.Flush(me)) // of a second descriptor
		w.backend("f: " + s)
	}
	o.File.Release()
	w.get("f")
	r := w.open("f", syscall.O_RDWR)
	w.ok(w.shut(r))
	if got := c.of(providers.MethodWrite); got != 4 {
		t.Errorf("%d writes at the backend, want 4", got)
	}
	w.noProblems()
}

// An answer that was lost is asked for again, and no conflict with oneself.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t, holding("f", "old"))
	w.faults.Queue(providers.MethodWrite,
		providertest.Fault{Before: providers.ErrUnavailable},
		providertest.Fault{After: providers.ErrUnavailable})
	w.ok(w.put("f", "new"))
	w.faults.Queue(providers.MethodWrite, providertest.Fault{After: providers.ErrUnavailable})
	w.ok(w.put("g", "made"))
	w.ok(w.put("f", "newer")) // the version is known
	w.backend("f: newer", "g: made")
	w.noProblems()
}

// forgetful knows no operation ids.
type forgetful struct{ *memory.Provider }

func (p forgetful) Capabilities() providers.Capabilities {
	c := p.Provider.Capabilities()
	c.OperationIDs = false
	return c
}

func (p forgetful) Write(ctx context.Context, l providers.Locator, b providers.Body, o providers.WriteOptions) (providers.Info, error) {
	o.Op = ""
	return p.Provider.Write(ctx, l, b, o)
}

func TestLostAnswerWithoutOperationIDs(t *testing.T) {
	w := newWorld(t)
	f := providertest.NewFaults(t)
	v, err := Open(context.Background(), f.Wrap(forgetful{w.p}), Options{StateDir: t.TempDir()})
	w.ok(err)
	defer v.Close()
	w.v = v
	f.Queue(providers.MethodWrite, providertest.Fault{After: providers.ErrUnavailable})
	w.ok(w.put("f", "hello"))
	w.ok(w.put("f", "again"))
	w.backend("f: again")
	w.noProblems()
}

// The file changes between an attempt whose answer was lost and the next.
func TestLostAnswerThenOtherBytes(t *testing.T) {
	w := newWorld(t)
	w.faults.Queue(providers.MethodWrite, providertest.Fault{After: context.Canceled})
	o := w.create("f")
	w.write(o, "first", 0)
	if err := o.File.Flush(me); err == nil {
		t.Fatal("close worked without an answer")
	}
	w.backend("f: first")
	w.write(o, "second", 0)
	w.ok(o.File.Flush(me))
	w.backend("f: second")
	w.write(o, "third!", 0)
	w.ok(w.shut(o))
	w.backend("f: third!")
}

// Another writer was first: the close says so, nothing of theirs is
// overwritten, nothing of ours is gone.
func TestConflict(t *testing.T) {
	for _, c := range []struct {
		name   string
		theirs []byte
		want   []string
	}{
		{"changed", []byte("theirs"), []string{"f: theirs"}},
		{"deleted", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, holding("f", "base"))
			o := w.open("f", syscall.O_RDWR)
			w.write(o, "ours", 0)
			w.ok(w.p.Tamper(at("f"), c.theirs))
			for range 2 {
				err := o.File.Flush(me)
				w.is(err, fs.ErrConflict)
				if got := fs.Errno(err); got != syscall.EIO {
					t.Errorf("errno %v", got)
				}
			}
			o.File.Release()
			w.settle()
			w.backend(c.want...)
			if got := w.get("f"); got != "ours" {
				t.Errorf("the working copy has %q", got)
			}
			if got, _ := w.v.Describe(me, w.walk("f"), "state"); got != "conflict" {
				t.Errorf("state %q", got)
			}
			if s := w.v.Status(); s.Unsaved != 1 || len(s.Problems) == 0 {
				t.Errorf("status %+v", s)
			}
			ino := w.walk("f")
			if err := w.v.Close(); err == nil {
				t.Error("close of the volume says that all is safe")
			}
			if got, err := os.ReadFile(w.v.store.path(ino)); string(got) != "ours" {
				t.Errorf("the state directory has %q, %v", got, err)
			}
		})
	}
}

// A name that is new here and there is a conflict too.
func TestConflictOfNewFiles(t *testing.T) {
	w := newWorld(t)
	o := w.create("f")
	w.write(o, "ours", 0)
	w.tamper("f", "theirs")
	w.is(w.shut(o), fs.ErrConflict)
	w.settle()
	w.backend("f: theirs")
}

// The same change on both sides is none.
func TestSameChange(t *testing.T) {
	w := newWorld(t, holding("f", "base"))
	o := w.open("f", syscall.O_RDWR)
	w.write(o, "same", 0)
	w.tamper("f", "same")
	w.ok(w.shut(o))
	w.ok(w.put("f", "more"))
	w.backend("f: more")
	w.noProblems()
}

// A backend that does not answer fails the close in time; the bytes are kept
// and get there when it is back.
func TestUnreachable(t *testing.T) {
	w := newWorld(t, impatient)
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodWrite, providertest.Fault{Gate: gate}, providertest.Fault{Gate: gate, Reached: reached})
	o := w.create("f")
	w.write(o, "hello", 0)
	w.is(o.File.Flush(me), fs.ErrUnavailable)
	<-reached // in the background
	if got := w.get("f"); got != "hello" {
		t.Errorf("the working copy has %q", got)
	}
	if s := w.v.Status(); s.Unsaved != 1 || len(s.Problems) != 1 {
		t.Errorf("status %+v", s)
	}
	w.patient()
	close(gate)
	o.File.Release()
	w.ok(w.v.Close())
	w.backend("f: hello")
}

// Signals that do not kill do not cut a close short; one that kills does.
func TestInterrupts(t *testing.T) {
	interrupted := make(chan struct{})
	close(interrupted)
	alive := &fs.Op{Cancel: interrupted, PID: uint32(os.Getpid())}
	dead := &fs.Op{Cancel: interrupted, PID: 1 << 30}
	w := newWorld(t)
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodWrite, providertest.Fault{Gate: gate, Reached: reached})
	o := w.create("f")
	w.write(o, "hello", 0)
	err := make(chan error, 1)
	go func() { err <- o.File.Flush(alive) }()
	<-reached
	w.is(o.File.Flush(dead), syscall.EINTR)
	select {
	case e := <-err:
		t.Errorf("close was interrupted: %v", e)
	default:
	}
	close(gate)
	w.ok(<-err)
	o.File.Release()
}

// A full backend is told at once.
func TestQuota(t *testing.T) {
	w := newWorld(t)
	w.faults.Queue(providers.MethodWrite, providertest.Fault{Before: providers.ErrQuota})
	err := w.put("f", "x")
	if got := fs.Errno(err); got != syscall.EDQUOT {
		t.Errorf("errno %v of %v", got, err)
	}
	if got := w.get("f"); got != "x" {
		t.Errorf("the working copy has %q", got)
	}
}

// Bytes that no close announced go too: truncate(2), a mapping, mknod.
func TestChangesWithoutClose(t *testing.T) {
	w := newWorld(t, holding("f", "hello"))
	two := uint64(2)
	_, err := w.v.SetAttr(me, w.walk("f"), nil, &fs.SetAttr{Size: &two})
	w.ok(err)
	_, err = w.v.Mknod(me, fs.RootIno, "g", syscall.S_IFREG|0o644, 0)
	w.ok(err)
	o := w.create("h")
	w.ok(o.File.Flush(me))
	w.write(o, "late", 0)
	o.File.Release()
	w.settle()
	w.backend("f: he", "g: ", "h: late")
}
