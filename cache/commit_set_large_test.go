package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// watched are the steps of commits, at each of which a test may do something, the
// most names that one update concerned, and how often a set was made anew.
type watched struct {
	mu   sync.Mutex // guards all
	seen []Progress
	most int
	log  *logged
	at   func(Progress) // nil: nothing is done
}

// largest is how many names one update concerned at most.
func (x *watched) largest() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.most
}

// again is how often a set was made anew.
func (x *watched) again() int { return x.log.of("a commit is made anew") }

func (x *watched) options(_ *world, o *Options) {
	x.log = logging(o)
	o.onward = func(p Progress) {
		x.mu.Lock()
		x.seen = append(x.seen, p)
		at := x.at
		x.mu.Unlock()
		if at != nil {
			at(p)
		}
	}
	o.within = func(v *Tx) {
		x.mu.Lock()
		defer x.mu.Unlock()
		distinct := map[table.Link]struct{}{}
		for _, l := range v.Changed() {
			distinct[l] = struct{}{}
		}
		x.most = max(x.most, len(distinct))
	}
}

// during has something done at each step from now on, and forgets those before.
func (x *watched) during(at func(Progress)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at, x.seen, x.most = at, nil, 0
	x.log.forget()
}

// count is how many steps there were of what was to be done that went so far.
func (x *watched) count(what string, is func(Progress) bool) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.seen {
		if p.What == what && is(p) {
			n++
		}
	}
	return n
}

func isMiddle(p Progress) bool { return 0 < p.Done && p.Done < p.Total }
func isEnd(p Progress) bool    { return p.Done == p.Total }

// largeDirs times largeFiles are several pieces.
const largeDirs, largeFiles = 8, 24

// large makes many new names.
func (w *world) large() {
	w.Helper()
	for d := range largeDirs {
		w.do(fmt.Sprintf("mkdir d%d", d))
		for f := range largeFiles {
			w.do(fmt.Sprintf("put d%d/f%d %d", d, f, f))
		}
	}
}

// Names do not wait for a commit, however much there is in it: all along it, on the
// way to the backend and back, they are made, looked up and listed. What was made
// meanwhile is not in the commit. Each name is a step while a set is collected and
// sent, and one is like the next: some of these do, beside each end of a piece.
func TestNamesGoOnDuringALargeSet(t *testing.T) {
	t.Parallel()
	changes := map[string]func(w *world){
		"new": func(w *world) { w.large() },
		"changed": func(w *world) {
			w.large()
			w.upload()
			for d := range largeDirs {
				for f := range largeFiles {
					w.do(fmt.Sprintf("put d%d/f%d other", d, f))
				}
			}
		},
		"deleted": func(w *world) {
			w.large()
			w.do("put stays 1", "mkdir k")
			for f := range largeDirs*(largeFiles+1) + 80 { // most of all stays: it is no mass delete
				w.do(fmt.Sprintf("put k/f%d 1", f))
			}
			w.upload()
			for d := range largeDirs {
				for f := range largeFiles {
					w.do(fmt.Sprintf("rm d%d/f%d", d, f))
				}
				w.do(fmt.Sprintf("rmdir d%d", d))
			}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var x watched
			w := newWorld(t, repository, onlyAsked, x.options)
			change(w)
			steps := 0
			x.during(func(p Progress) {
				if p.Done%(commit.PieceSize/4) != 0 && !isEnd(p) {
					return
				}
				steps++
				made := fmt.Sprintf("made-%d", steps)
				goes := async(func() {
					w.do("mkdir "+made, "put "+made+"/a 1")
					w.list("")
				})
				select {
				case <-goes:
				case <-time.After(guard):
					t.Errorf("%s %d of %d: names stand still", p.What, p.Done, p.Total)
				}
			})
			w.upload()
			x.during(nil)
			at := listBackend(w.repo)
			for _, line := range at {
				// The first steps are of the time before anything was looked at.
				assert.False(t, strings.HasPrefix(line, "made-"), line, "was made during the commit, and is in it")
			}
			assert.True(t, steps >= 3*largeDirs*largeFiles/commit.PieceSize, steps, "steps")
			w.upload()
			w.same()
			w.noProblems()
		})
	}
}

// No update of a large commit concerns more names than a piece has.
func TestLargeSetGoesInPieces(t *testing.T) {
	t.Parallel()
	var x watched
	w := newWorld(t, repository, onlyAsked, x.options)
	w.large()
	x.during(nil)
	w.upload()
	most := x.largest()
	assert.True(t, most <= commit.PieceSize, "an update concerned", most, "names, and a piece has", commit.PieceSize)
	for _, what := range []string{commit.Collecting, commit.Recording, commit.Noting} {
		if x.count(what, isMiddle) < largeDirs*largeFiles/commit.PieceSize-1 {
			t.Errorf("%s goes in %d steps", what, x.count(what, isMiddle))
		}
	}
	for d := range largeDirs { // a move among them takes no more
		w.do(fmt.Sprintf("mv d%d/f0 m%d", d, d))
		for f := range largeFiles - 1 {
			w.do(fmt.Sprintf("put d%d/f%d other", d, f+1))
		}
	}
	x.during(nil)
	w.upload()
	most = x.largest()
	assert.True(t, most <= commit.PieceSize, "an update concerned", most, "names, and a piece has", commit.PieceSize)
	w.same()
}

// Killed at any step of a large commit, a working copy goes on where it was:
// programs see what they saw, and the backend gets it once.
func TestKilledDuringALargeSet(t *testing.T) {
	t.Parallel()
	for _, what := range []string{commit.Collecting, commit.Recording, commit.Noting} {
		for step := range tier.Pick(1, 3) {
			t.Run(fmt.Sprint(what, " ", step), func(t *testing.T) {
				t.Parallel()
				var x watched
				w := newWorld(t, repository, onlyAsked, x.options)
				w.do("mkdir o", "put o/a 1", "put o/b 1", "put o/c 1")
				w.upload()
				w.large()
				w.do("mv o p", "rm p/a", "mv p/b d1/b", "put p/c 2")
				w.killAt(&x, func(p Progress) bool { return p.What == what && isMiddle(p) && x.count(what, isMiddle) > step })
				want := w.local()
				w.do("put later 1", "rm d3/f3", "mv d4/f4 d4/g")
				for _, line := range []string{"d3/f3", "d4/f4"} {
					want = slices.DeleteFunc(want, func(l string) bool { return strings.HasPrefix(l, line+":") })
				}
				want = append(want, "later: 1", "d4/g: 4")
				w.upload()
				w.same()
				assert.Slice(t, sorted(w.local()), sorted(want), "programs see")
				w.noProblems()
				w.again()
				w.same()
			})
		}
	}
}

// killAt commits, is killed at an operation, and goes on as the process after that.
func (w *world) killAt(x *watched, when func(Progress) bool) {
	w.Helper()
	cut := make(chan string, 1)
	var once sync.Once
	x.during(func(p Progress) {
		if when(p) {
			once.Do(func() {
				w.dead.Store(true)
				cut <- copyState(w.T, w.v)
			})
		}
	})
	old := w.v
	ended := async(func() { _, _ = old.Commit(context.Background(), CommitOptions{}) })
	select {
	case w.o.StateDir = <-cut:
	case <-ended:
		w.Fatal("the commit has ended without a step of this kind")
	}
	x.during(nil)
	old.stop()
	w.Cleanup(func() { old.Close() })
	w.start()
}

// vanish has something be removed of which the kernel knows nothing any more.
func (w *world) vanish(op, path string) {
	w.Helper()
	ino := w.walk(path)
	w.do(op + " " + path)
	w.v.Forget(ino, 1<<20)
}

// What a pull brings while a commit is made is not overwritten by it: the commit is
// made anew, of what is there then.
func TestPullDuringALargeSet(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, during, path string }{
		{"of what it is made of", commit.Collecting, "d1/f1"},
		{"of something else, which drops what was recorded", commit.Recording, "d2/theirs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var x watched
			w := newClone(t, seeded(t, "d1/f1", "1", "other", "1"), onlyAsked, x.options)
			w.local()
			for d := range largeDirs {
				if d != 1 {
					w.do(fmt.Sprintf("mkdir d%d", d))
				}
				for f := range largeFiles {
					w.do(fmt.Sprintf("put d%d/f%d %d", d, f, f+10))
				}
			}
			w.there(test.path, "theirs")
			var once sync.Once
			x.during(func(p Progress) {
				if p.What == test.during && isMiddle(p) {
					once.Do(func() { w.pull() })
				}
			})
			w.upload()
			assert.False(t, x.again() == 0, "the set was not made anew")
			w.upload()
			w.same()
			all := strings.Join(w.local(), "\n")
			assert.True(t, strings.Contains(all, ": theirs") && strings.Contains(all, ": 11"), "programs see", all)
		})
	}
}

// The first set of a new working copy is made once.
func TestFirstSetIsMadeOnce(t *testing.T) {
	var x watched
	w := newClone(t, seeded(t, "a", "1"), onlyAsked, x.options)
	w.do("put b 1")
	x.during(nil)
	w.upload()
	assert.Equal(t, x.count(commit.Recording, isEnd), 1, "it was made, times")
	w.same()
}

// A set that a version before has left, with all names in its record, is settled.
func TestOpenSetOfAVersionBefore(t *testing.T) {
	w := newWorld(t, repository, onlyAsked, func(_ *world, o *Options) { o.pause = newManual().pause })
	w.do("mkdir d", "put d/a 1", "put b 2")
	w.faults.Queue(providers.MethodCommit, providertest.Fault{After: providers.ErrUnavailable}, providertest.Fault{Before: providers.ErrUnavailable})
	committed := w.committing()
	w.until(func() bool { return w.v.Status().LastError != "" })
	locked := w.v.lock()
	p, ok, err := commit.ReadUnresolved(locked.Get)
	locked.unlock()
	w.ok(err)
	assert.True(t, ok && len(p.Names) == 3, "open is", p.Names)
	w.ok(w.v.update(func(v *Tx) error {
		commit.Forget(uploadTx(v))
		data, err := json.Marshal(p)
		v.Set("engine/set", data)
		return err
	}))
	w.o.pause = atOnce
	w.killed()
	assert.False(t, <-committed == nil, "the first run has committed it")
	w.upload()
	w.same()
}

// A set is of one moment: what programs do after that, before it has read their
// files, keeps it from nothing and is no part of it.
func TestSetIsOfOneMoment(t *testing.T) {
	t.Parallel()
	write := func(w *world, path string, flags uint32, content string, off int64) fs.Opened {
		_, o, err := w.v.Create(me, fs.RootIno, path, flags, 0o666)
		w.ok(err)
		w.write(o, content, off)
		return o
	}
	const holder = "by who has it open"
	var held *fs.Opened
	for name, change := range map[string]func(w *world) (after string, end func()){
		"shorter": func(w *world) (string, func()) { w.do("put a 1"); return "1", nil },
		"as long": func(w *world) (string, func()) { w.do("put a secnd"); return "secnd", nil },
		"longer":  func(w *world) (string, func()) { w.do("append a -and-more"); return "first-and-more", nil },
		"removed": func(w *world) (string, func()) { w.vanish("rm", "a"); return "", nil },
		"replaced": func(w *world) (string, func()) {
			w.do("put new second", "mv new a")
			return "second", nil
		},
		"cut": func(w *world) (string, func()) {
			size := uint64(2)
			w.ok(assert.ErrOf(w.v.SetAttr(me, w.walk("a"), nil, &fs.SetAttr{Size: &size})))
			return "fi", nil
		},
		"being written": func(w *world) (string, func()) {
			o := write(w, "a", syscall.O_WRONLY|syscall.O_TRUNC, "ha", 0)
			return "half", func() { w.write(o, "lf", 2); w.ok(w.shut(o)) }
		},
		holder: func(w *world) (string, func()) {
			w.write(*held, "FI", 0)
			return "FIrst", func() { w.ok(w.shut(*held)) }
		},
		"twice": func(w *world) (string, func()) { w.do("put a 1", "put a second-time"); return "second-time", nil },
	} {
		for _, step := range []string{commit.Collecting, commit.Recording} {
			t.Run(name+", "+step, func(t *testing.T) {
				var x watched
				w := newWorld(t, repository, onlyAsked, x.options)
				w.do("put a first", "put b first", "ln a c")
				if name == holder {
					o := w.open("a", syscall.O_RDWR)
					held = &o
				}
				var once sync.Once
				var after string
				var end func()
				x.during(func(p Progress) {
					if p.What == step && isEnd(p) {
						once.Do(func() { after, end = change(w) })
					}
				})
				w.upload()
				at := func(path string) string {
					lines := listBackend(w.repo)
					i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, path+": ") })
					if i < 0 {
						return ""
					}
					return strings.TrimPrefix(lines[i], path+": ")
				}
				if a, c := at("a"), at("c"); a != "first" || c != "first" {
					t.Errorf("the set has %q and %q, and not what was there when it was made", a, c)
				}
				assert.Equal(t, x.again(), 0, "times it was made anew")
				if end != nil {
					w.upload()
					assert.Equal(t, at("a"), "first", "what was sent of what is being written")
					end()
				}
				w.upload()
				assert.Equal(t, at("a"), after, "what is there after that")
				w.same()
				w.noProblems()
				locked := w.v.lock()
				defer locked.unlock()
				assert.Equal(t, len(w.v.open.Inos(locked.View)), 0, "what is open still")
			})
		}
	}
}
