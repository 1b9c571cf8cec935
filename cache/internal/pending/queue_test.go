package pending

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// scene is a queue over a tree in memory, whose clock, writers and sender are the test's.
type scene struct {
	*testing.T
	tree   *tree.Tree
	q      *Queue
	now    time.Time
	timers []func(*tree.View)
	open   map[table.Ino]bool // for writing; true: touched

	final, passing map[table.Link]error // failures
	sending        map[table.Link]bool
	elsewhere      map[table.Ino]bool // places that are not known
	asked, stopped bool
}

// newScene is a queue of nothing; a window of a minute, and a hundred bytes, unless o says
// otherwise.
func newScene(t *testing.T, change ...func(*Options)) *scene {
	t.Helper()
	tab := assert.Of(table.Open("/tree", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	s := &scene{T: t, now: time.Unix(1e9, 0), open: map[table.Ino]bool{}, final: map[table.Link]error{}, passing: map[table.Link]error{},
		sending: map[table.Link]bool{}, elsewhere: map[table.Ino]bool{}}
	s.tree = tree.New(tab, tree.Options{Now: s.clock})
	o := Options{Now: s.clock, After: func(_ *tree.View, _ time.Duration, f func(*tree.View)) { s.timers = append(s.timers, f) },
		OnChange: true, Window: time.Minute, MaxUnsaved: 100, MaxOpen: time.Hour, Writers: s, Sender: s}
	for _, f := range change {
		f(&o)
	}
	s.q = New(o)
	s.under(func(v *tree.View) { s.q.Resume(v, nil) })
	s.does(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true}) })
	return s
}

func (s *scene) clock() time.Time { return s.now }

func (s *scene) Writing(_ *tree.View, ino table.Ino) (open, touched bool) {
	touched, open = s.open[ino]
	return open, touched
}

func (s *scene) All(_ *tree.View, visit func(table.Ino)) {
	for ino := range s.open {
		visit(ino)
	}
}

func (s *scene) Failure(v *tree.View, l table.Link) (error, bool) {
	if err := s.final[l]; err != nil {
		return err, true
	}
	return s.passing[l], false
}

func (s *scene) IsSending(v *tree.View, l table.Link) bool { return s.sending[l] }

func (s *scene) IsPlaceKnown(v *tree.View, ino table.Ino) bool { return !s.elsewhere[ino] }

func (s *scene) IsAsked(*tree.View) bool { return s.asked }

func (s *scene) IsStopped(*tree.View) bool { return s.stopped }

// under has f hold the lock.
func (s *scene) under(f func(*tree.View)) {
	v := s.tree.Lock()
	defer s.tree.Unlock()
	f(v)
}

// does is a transaction that the queue follows; by is one of an operation.
func (s *scene) does(f func(*tree.Tx)) { s.Helper(); s.update(false, f) }

func (s *scene) by(f func(*tree.Tx)) { s.Helper(); s.update(true, f) }

func (s *scene) update(own bool, f func(*tree.Tx)) {
	s.Helper()
	err := s.tree.Update(func(tx *tree.Tx) error {
		f(tx)
		s.q.Committed(tx.View, own, tx.Changed(), tx.Unnamed())
		return nil
	}, nil)
	assert.OK(s, err)
}

func at(name string) table.Link { return table.Link{Dir: table.Root, Name: name} }

// makes gives a new file of a size a name.
func makes(ino table.Ino, name string, size int64) func(*tree.Tx) {
	return func(tx *tree.Tx) {
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFREG, Size: size, ContentVersion: 1})
		tx.SetLocal(at(name), ino, false, false)
		link(tx, ino, at(name))
	}
}

// link notes that an inode has a name.
func link(tx *tree.Tx, ino table.Ino, l table.Link) {
	n := tx.Edit(ino)
	if !slices.Contains(n.Links, l) {
		n.Links = append(n.Links, l)
	}
	tx.MarkInode(n)
}

// arrives has the remote have what a name stands for.
func arrives(name string) func(*tree.Tx) {
	return func(tx *tree.Tx) {
		rec := tx.Record(at(name))
		if rec.Ino == 0 {
			tx.SetRemote(at(name), nil)
			return
		}
		n := tx.Inode(rec.Ino)
		tx.SetRemote(at(name), &table.Remote{Ino: rec.Ino, Kind: providers.KindFile, ContentVersion: n.ContentVersion})
	}
}

// writes gives content a new state.
func writes(ino table.Ino, size int64) func(*tree.Tx) {
	return func(tx *tree.Tx) { tx.ContentChanged(ino, size, table.Time{}) }
}

// removes takes a name away.
func removes(name string) func(*tree.Tx) {
	return func(tx *tree.Tx) { tx.SetLocal(at(name), 0, false, false) }
}

// isKicked reports, once, whether the sender is to look.
func (s *scene) isKicked() bool {
	select {
	case <-s.q.Kicked():
		return true
	default:
		return false
	}
}

// wantDue wants just these names to be due.
func (s *scene) wantDue(want ...string) {
	s.Helper()
	var names []string
	s.under(func(v *tree.View) {
		s.q.EachDue(v, func(l table.Link) bool {
			names = append(names, l.Name)
			return true
		})
	})
	assert.Slice(s, names, want, "due")
}

func (s *scene) wantUnsaved(files int, size int64) {
	s.Helper()
	s.under(func(v *tree.View) {
		gotFiles, gotSize := s.q.Unsaved(v)
		assert.Equal(s, gotFiles, files, "files with content that the remote lacks")
		assert.Equal(s, gotSize, size, "bytes of it")
	})
}

// ring ends the oldest window.
func (s *scene) ring() {
	s.Helper()
	assert.Must(s, len(s.timers) > 0, "no window is open")
	f := s.timers[0]
	s.timers = s.timers[1:]
	s.under(f)
}

// Content counts once, however many names it has, from its first difference until the remote
// has it under one of them or none is left.
func TestUnsaved(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 7))
	s.wantUnsaved(1, 7)
	s.does(func(tx *tree.Tx) { tx.SetLocal(at("b"), 10, false, false); link(tx, 10, at("b")) })
	s.wantUnsaved(1, 7)
	s.does(writes(10, 9))
	s.wantUnsaved(1, 9)
	s.does(makes(11, "c", 5))
	s.wantUnsaved(2, 14)
	s.does(arrives("a"))
	s.wantUnsaved(1, 5) // "b" is a matter of names now
	s.under(func(v *tree.View) {
		assert.True(t, !s.q.IsUnsaved(v, 10) && s.q.IsUnsaved(v, 11), "11 alone is unsaved")
	})
	s.does(func(tx *tree.Tx) {
		tx.Edit(11).Links = nil
		tx.SetName(at("c"), table.Name{})
		tx.Mark(at("c"))
	})
	s.wantUnsaved(0, 0)
	s.does(writes(10, 1))
	s.wantUnsaved(1, 1)
}

// The first change opens a window; all that differs when it is over is due.
func TestWindow(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 1))
	s.does(makes(11, "b", 1))
	assert.Equal(t, len(s.timers), 1, "windows")
	s.wantDue()
	assert.False(t, s.isKicked(), "the sender was to look")
	s.ring()
	s.wantDue("a", "b")
	assert.True(t, s.isKicked(), "the sender was not to look")
	s.does(makes(12, "c", 1))
	s.wantDue("a", "b")
	assert.Equal(t, len(s.timers), 1, "windows")
	s.does(makes(13, "d", 100)) // too much to wait for the window
	s.wantDue("a", "b", "c", "d")
	assert.True(t, s.isKicked(), "the sender was not to look")
	s.does(arrives("a"))
	s.wantDue("b", "c", "d")
}

// Without a window a change is due at once, and where nothing is due by itself it waits for
// Ask; what could not go waits for the next reason.
func TestDueAtOnceAndAsked(t *testing.T) {
	s := newScene(t, func(o *Options) { o.Window = 0 })
	s.does(makes(10, "a", 1))
	s.wantDue("a")
	assert.Equal(t, len(s.timers), 0, "windows")

	s = newScene(t, func(o *Options) { o.OnChange = false })
	s.does(makes(10, "a", 1000))
	s.wantDue()
	assert.Equal(t, len(s.timers), 0, "windows")
	s.under(func(v *tree.View) {
		before := s.q.Stirs(v)
		s.q.Ask(v)
		assert.True(t, s.q.Stirs(v) > before, "what was asked for is nothing new")
	})
	s.wantDue("a")
	s.does(makes(11, "b", 1))
	s.wantDue("a")
	s.under(s.q.Defer)
	s.wantDue()
	s.under(s.q.Ask)
	s.wantDue("a", "b")
}

// What differs because of an operation is due with it, and whoever waits for names waits for
// that too, until it agrees.
func TestBecauseOfAnOperation(t *testing.T) {
	s := newScene(t, func(o *Options) { o.OnChange = false })
	s.does(makes(10, "a", 1))
	s.does(makes(11, "b", 1))
	w := s.waits(&Waiter{Names: map[table.Link]uint64{at("b"): 2}})
	s.isKicked()
	s.by(makes(12, "copy", 1))
	s.wantDue("copy")
	assert.True(t, s.isKicked(), "the sender was not to look")
	var upTo []string
	s.under(func(v *tree.View) {
		assert.Equal(t, len(s.q.Because(v)), 1, "names that differ because of an operation")
		s.q.EachUpTo(v, 1, func(seq uint64, l table.Link) bool {
			assert.Equal(t, v.Record(l).Seq, seq, "the place of", l.Name)
			upTo = append(upTo, l.Name)
			return true
		})
	})
	assert.Slice(t, upTo, []string{"a", "copy"}, "up to the first place") // the operation may be of "a"
	s.does(arrives("b"))
	s.wantWaits(w)
	s.by(arrives("copy"))
	s.wantOver(w, nil)
	s.wantDue()
	s.under(func(v *tree.View) {
		assert.Equal(t, len(s.q.Because(v)), 0, "names that differ because of an operation")
	})
}

// A change is of interest before it is due when it is another state of what is due, or
// something is waited for.
func TestMarked(t *testing.T) {
	s := newScene(t, func(o *Options) { o.OnChange = false })
	s.does(makes(10, "a", 1))
	s.under(s.q.Ask)
	s.does(makes(11, "b", 1))
	var due uint64
	s.under(func(v *tree.View) { due = s.q.Due(v) })
	for _, c := range []struct {
		what           string
		was, now       uint64
		hurried, wakes bool
	}{
		{"it agrees, as before", 0, 0, false, false},
		{"it agrees now", due, 0, false, true},
		{"it differs now", 0, due + 2, false, false},
		{"another state of what is due", due, due, false, true},
		{"another state of what is not", due + 1, due + 1, false, false},
		{"it differs now, while a commit is asked for", 0, due + 2, true, true},
		{"another state of what is not due, while one is", due + 1, due + 1, true, true},
	} {
		s.asked = c.hurried
		s.under(func(v *tree.View) { assert.Equal(t, s.q.Marked(v, c.was, c.now), c.wakes, c.what) })
	}
	s.asked = false
	s.waits(&Waiter{Names: map[table.Link]uint64{at("b"): due + 1}})
	s.under(func(v *tree.View) { assert.True(t, s.q.Marked(v, 0, due+2), "it differs now, while a close waits") })
}

// The oldest change is as old as it was when it began, to the second, whatever came since
// or went before.
func TestOldest(t *testing.T) {
	s := newScene(t)
	oldest := func() (age time.Duration, any bool) {
		s.under(func(v *tree.View) {
			var since time.Time
			since, any = s.q.Oldest(v)
			age = s.now.Sub(since)
		})
		return age, any
	}
	_, any := oldest()
	assert.False(t, any, "there is an oldest change")
	s.does(makes(10, "a", 1))
	s.now = s.now.Add(time.Minute)
	s.does(makes(11, "b", 1))
	s.now = s.now.Add(time.Minute)
	age, _ := oldest()
	assert.Equal(t, age, 2*time.Minute, "the oldest change")
	s.does(writes(10, 2)) // keeps its place
	s.does(arrives("a"))
	age, _ = oldest()
	assert.Equal(t, age, time.Minute, "the oldest change")
	for i := range mostAges + 10 {
		s.now = s.now.Add(time.Second)
		s.under(func(v *tree.View) { s.q.aged(v, uint64(100+i)) })
	}
	assert.True(t, len(s.q.ages) <= mostAges, "as many ages as there are changes")
	age, _ = oldest()
	assert.Equal(t, age, time.Minute+(mostAges+10)*time.Second, "the oldest change")
}

// A run begins with what the last one left: it is due where changes are due by themselves,
// since how long it has waited is not known.
func TestResume(t *testing.T) {
	for _, byItself := range []bool{true, false} {
		s := newScene(t)
		s.does(makes(10, "a", 3))
		s.does(makes(11, "b", 4))
		o := s.q.o
		o.OnChange = byItself
		s.q = New(o)
		s.does(makes(12, "early", 1)) // no queue follows that yet
		s.wantUnsaved(0, 0)
		var seen []string
		s.under(func(v *tree.View) {
			s.q.Resume(v, func(l table.Link, rec table.Name) {
				assert.True(t, rec.Seq > 0, "the record of", l.Name)
				seen = append(seen, l.Name)
			})
			assert.Equal(t, s.q.Newest(v), 3, "the newest place")
		})
		assert.Slice(t, seen, []string{"a", "b", "early"}, "names of the last run")
		s.wantUnsaved(3, 8)
		if byItself {
			s.wantDue("a", "b", "early")
		} else {
			s.wantDue()
		}
	}
}

// What is held is not due, whatever made it so, and is when it is held no more.
func TestHeld(t *testing.T) {
	held := true
	s := newScene(t, func(o *Options) { o.Window, o.Held = 0, func(*tree.View) bool { return held } })
	s.does(makes(10, "a", 1))
	s.wantDue()
	s.under(s.q.Ask)
	s.wantDue()
	s.under(func(v *tree.View) { assert.Equal(t, s.q.Due(v), 0, "due") })
	held = false
	s.wantDue("a")
}

// Whoever makes more waits when twice as much is unsaved as there should be, or much that is
// too old; not where waiting would not help.
func TestIsFull(t *testing.T) {
	for _, c := range []struct {
		what   string
		size   int64
		age    time.Duration
		change func(*scene)
		full   bool
	}{
		{"little", 10, 0, nil, false},
		{"as much as may be", 200, 0, nil, false},
		{"too much", 201, 0, nil, true},
		{"too much, and nothing is sent by itself", 201, 0, func(s *scene) { s.q.o.OnChange = false }, false},
		{"too much, and nothing is sent at all", 201, 0, func(s *scene) { s.stopped = true }, false},
		{"some, old", 13, 15 * time.Minute, nil, false},
		{"some, too old", 13, 15*time.Minute + 1, nil, true},
		{"little, too old", 12, time.Hour, nil, false},
		{"too much, and nothing may go", 250, 0, func(s *scene) { s.q.o.Held = func(*tree.View) bool { return true } }, false},
		{"some, too old, and there is no window", 13, time.Hour, func(s *scene) { s.q.o.Window = 0 }, false},
		{"some, too old but for the longest window", 13, 10*time.Hour + 5*time.Minute, func(s *scene) { s.q.o.Window = 24 * time.Hour }, false},
		{"some, too old for the longest window", 13, 10*time.Hour + 5*time.Minute + 1, func(s *scene) { s.q.o.Window = 24 * time.Hour }, true},
	} {
		s := newScene(t)
		s.does(makes(10, "a", c.size))
		s.now = s.now.Add(c.age)
		if c.change != nil {
			c.change(s)
		}
		s.under(func(v *tree.View) { assert.Equal(t, s.q.IsFull(v), c.full, c.what) })
	}
}

// Content is left alone while a program writes a state that none has closed, until it is
// waited for or has been open for too long.
func TestIsOpen(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 3))
	isOpen := func() (open bool) {
		s.under(func(v *tree.View) {
			open = s.q.IsOpen(v, 10, v.Inode(10))
			assert.Equal(t, s.q.IsBeingWritten(v, v.Record(at("a"))), open, "the name is being written")
			assert.Equal(t, s.q.IsLeftAlone(v, at("a")), open, "the name is left alone")
		})
		return open
	}
	closed := func(ino table.Ino) {
		s.under(func(v *tree.View) { s.q.Closed(v, ino, v.Inode(ino)) })
	}
	assert.False(t, isOpen(), "no program has it open")
	s.open[10] = false
	assert.True(t, isOpen(), "a program writes it")
	closed(10)
	assert.False(t, isOpen(), "it was closed, by another")
	s.open[10] = true
	assert.True(t, isOpen(), "it is written once more")
	s.does(writes(10, 4))
	s.open[10] = false
	assert.True(t, isOpen(), "that is not closed")
	w := s.waits(&Waiter{Ino: 10, Version: 2})
	assert.False(t, isOpen(), "it is waited for")
	s.under(func(v *tree.View) { s.q.Remove(v, w) })
	assert.True(t, isOpen(), "it is waited for no more")
	s.under(func(v *tree.View) { s.q.SendOpen(v, 10, v.Inode(10)) })
	s.open[10] = true
	s.does(writes(10, 5))
	assert.False(t, isOpen(), "it has been open for too long")
	s.does(arrives("a"))
	s.does(writes(10, 6))
	assert.True(t, isOpen(), "the remote had all of it meanwhile")
	s.under(func(v *tree.View) {
		s.sending[at("a")] = true
		assert.False(t, s.q.IsLeftAlone(v, at("a")), "it is on its way")
	})
	s.does(func(tx *tree.Tx) { tx.SetAttempt(at("a"), &table.Attempt{Kind: 1}) })
	s.under(func(v *tree.View) {
		assert.False(t, s.q.IsBeingWritten(v, v.Record(at("a"))), "an answer about it is lost")
	})
	closed(11) // of which there is nothing
	assert.Equal(t, len(s.q.closed), 0, "content that was closed, and is not unsaved")
}

// A file that stays open is told of once in each Options.MaxOpen.
func TestLingering(t *testing.T) {
	s := newScene(t)
	lingering := func() (files []table.Ino) {
		s.under(func(v *tree.View) { files = s.q.Lingering(v) })
		return files
	}
	s.open[10] = false
	assert.Slice(t, lingering(), nil, "open for too long")
	s.now = s.now.Add(time.Hour - 1)
	s.open[11] = false
	assert.Slice(t, lingering(), nil, "open for too long")
	s.now = s.now.Add(1)
	assert.Slice(t, lingering(), []table.Ino{10}, "open for too long")
	assert.Slice(t, lingering(), nil, "open for too long")
	delete(s.open, 11)
	assert.Slice(t, lingering(), nil, "open for too long")
	s.open[11] = false
	s.now = s.now.Add(time.Hour)
	assert.Slice(t, lingering(), []table.Ino{10}, "open for too long") // 11 was closed in between
}

// Who asked is told of each arrival until he stops, and waits for one that is under way.
func TestOnArrival(t *testing.T) {
	s, told := newScene(t), 0
	s.q.Arrived()
	stop := s.q.OnArrival(func() { told++ })
	s.q.Arrived()
	s.q.Arrived()
	stop()
	s.q.Arrived()
	assert.Equal(t, told, 2, "told")
}

var errFinal, errPassing = errors.New("refused"), errors.New("away")
