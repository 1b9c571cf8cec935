package cache

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// torn takes from the content of an inode what was written last, as a loss of power may:
// size and record stay.
func (w *world) torn(dir string, ino fs.Ino) {
	w.Helper()
	f := assert.Of(os.OpenFile(dataFile(w.T, dir, ino), os.O_WRONLY, 0)).OK(w)
	w.ok(assert.ErrOf(f.WriteAt([]byte("TORN"), 1)))
	w.ok(f.Close())
}

// powerLostAt commits, loses power when the backend has done a change whose answer does not
// come any more, and goes on with a copy of the state, which change may take from. What
// became of the change nobody knows before first has returned.
func (w *world) powerLostAt(change func(dir string), first func()) {
	w.Helper()
	cut := make(chan string, 1)
	var once sync.Once
	dead := w.dead
	w.intercept(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if c.Method == providers.MethodAbort && dead.Load() {
			return context.Canceled // at once: that is tried for a while
		}
		err := next(ctx)
		if c.Method == providers.MethodWrite || c.Method == providers.MethodCommit || c.Method == providers.MethodComplete {
			once.Do(func() {
				dead.Store(true)
				cut <- copyState(w.T, w.v)
			})
			<-ctx.Done()
			return context.Canceled
		}
		return err
	})
	old := w.v
	ended := async(func() { _, _ = old.Commit(context.Background(), CommitOptions{}) })
	select {
	case w.o.StateDir = <-cut:
	case <-ended:
		w.Fatal("the commit has ended without a change")
	}
	change(w.o.StateDir)
	old.stop()
	w.Cleanup(func() { old.Close() })
	answers := make(chan struct{})
	defer close(answers)
	w.wrap = func(p providers.Provider) providers.Provider {
		return providers.Wrap(p, providers.WrapOptions{Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			if c.Method == providers.MethodBranches { // which asks nobody
				return next(ctx)
			}
			select {
			case <-answers:
				return next(ctx)
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
	}
	w.o.boot = "another"
	w.start()
	first()
}

// has is backend for whatever the working copy stands on.
func (w *world) has(want ...string) {
	w.Helper()
	assert.Slice(w, sorted(listBackend(w.remote())), want, "the backend has")
}

// What was on its way when the power was lost, and arrived, is fetched again where the disk
// has lost some of it: what is torn is neither clean nor what the next change is made of.
func TestRecoverFetchesWhatHadArrived(t *testing.T) {
	for what, before := range map[string]string{"new": "", "changed": "put f before"} {
		t.Run(what, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store func(*world, *Options)) {
				w := newWorld(t, store, onlyAsked)
				w.do("put other 1")
				if before != "" {
					w.do(before)
				}
				w.upload()
				w.do("put f precious")
				ino := w.walk("f")
				w.powerLostAt(func(dir string) { w.torn(dir, ino) }, func() {})
				w.upload()
				n := w.record("f")
				assert.False(t, n.Suspect, "clean, and suspect:", n)
				assert.Equal(t, w.get("f"), "precious")
				o := w.open("f", syscall.O_WRONLY)
				w.write(o, "PRE", 0)
				w.ok(w.shut(o))
				w.upload()
				w.has("f: PREcious", "other: 1")
				w.noProblems()
			})
		})
	}
}

// Content of which nothing came to the disk is as long as what had arrived of it.
func TestRecoverOfLostContentThatHadArrived(t *testing.T) {
	for what, before := range map[string]string{"new": "", "changed": "put f 1"} {
		t.Run(what, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store func(*world, *Options)) {
				w := newWorld(t, store, onlyAsked)
				if before != "" {
					w.do(before)
					w.upload()
				}
				w.do("put f precious")
				ino := w.walk("f")
				w.powerLostAt(func(dir string) { w.ok(os.Remove(dataFile(t, dir, ino))) }, func() {})
				w.upload()
				assert.Equal(t, w.get("f"), "precious")
				assert.False(t, w.record("f").Suspect, "suspect")
				w.has("f: precious")
			})
		})
	}
}

// What a program wrote behind what had arrived is not fetched over, and what it has open is
// not taken away under it: both wait for a person.
func TestRecoverKeepsWhatIsNewerThanWhatHadArrived(t *testing.T) {
	for what, use := range map[string]func(w *world) (want string, end func()){
		"written": func(w *world) (string, func()) {
			o := w.open("f", syscall.O_WRONLY)
			w.write(o, "XX", 6)
			w.ok(w.shut(o))
			return "pTORNoXX", func() {}
		},
		"open": func(w *world) (string, func()) {
			o := w.open("f", syscall.O_RDONLY)
			return "pTORNous", func() { w.ok(w.shut(o)) }
		},
		"written anew": func(w *world) (string, func()) {
			o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
			w.write(o, "anew", 0)
			w.ok(w.shut(o))
			return "anew", func() {}
		},
	} {
		t.Run(what, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store func(*world, *Options)) {
				w := newWorld(t, store, onlyAsked)
				w.do("put f precious")
				ino := w.walk("f")
				var want string
				var end func()
				w.powerLostAt(func(dir string) { w.torn(dir, ino) }, func() { want, end = use(w) })
				w.ok(w.sendAll()) // which finds out what had arrived
				r := assert.Of(w.v.Commit(context.Background(), CommitOptions{})).OK(w)
				assert.Equal(t, w.get("f"), want)
				if want == "anew" {
					w.has("f: anew")
				} else {
					assert.Equal(t, len(r.HeldBack), 1, "held back")
					w.has("f: precious")
				}
				end()
				w.ok(assert.ErrOf(w.v.Accept()))
				w.upload()
				w.has("f: " + want)
			})
		})
	}
}

// What a person takes for good is sent, though the state before the loss of power had
// arrived.
func TestAcceptBeforeTheAnswer(t *testing.T) {
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		w := newWorld(t, store, onlyAsked)
		w.do("put f precious")
		ino := w.walk("f")
		w.powerLostAt(func(dir string) { w.torn(dir, ino) }, func() { w.ok(assert.ErrOf(w.v.Accept())) })
		w.upload()
		got := w.get("f")
		assert.True(t, strings.Contains(got, "TORN"), "it is", got)
		w.has("f: " + got)
	})
}

// Content that was synced and written again in place, of which the table on the disk does
// not know, is not taken for what the backend has.
func TestRecoverOfSyncedContentThatWasWrittenAgain(t *testing.T) {
	t.Run("clean", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, onlyAsked, onOneDisk)
			w.putSynced("f", "precious")
			w.ok(w.sendAll())
			w.ok(w.v.tree.Sync())
			n := w.record("f")
			assert.Equal(t, n.Synced, n.ContentVersion, "synced")
			o := w.open("f", syscall.O_WRONLY)
			w.write(o, "TORN", 1)
			w.powerLostBetween()
			assert.Equal(t, w.get("f"), "precious")
		})
	})
	t.Run("on its way", func(t *testing.T) {
		eachStore(t, func(t *testing.T, store func(*world, *Options)) {
			w := newWorld(t, store, onlyAsked)
			w.putSynced("f", "precious")
			ino := w.walk("f")
			n := w.inode(ino)
			assert.Equal(t, n.Synced, n.ContentVersion, "synced")
			w.powerLostAt(func(dir string) { w.torn(dir, ino) }, func() {
				n = w.inode(ino)
				assert.True(t, !n.Suspect && n.Synced == n.ContentVersion && n.State == table.Whole, "it is", n)
			})
			got := w.get("f")
			w.upload()
			assert.Equal(t, w.get("f"), got, "content")
			w.has("f: " + got)
		})
	})
}
