package files

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A desk is a scene on which the file can be opened, and what was told of it.
type desk struct {
	*scene
	t         *testing.T
	store     *content.Store
	opener    *Opener
	set       *OpenSet
	written   []uint64 // content versions that were told of
	unwritten int
	light     int
	closed    int
	kept      int // times that the state before a change was kept
	stale     int // times that there is another set by then
	fails     error
	before    func()        // once, when something is about to be changed
	gate      chan struct{} // what runs in the background waits for it
	work      sync.WaitGroup
	ended     bool
	abandoned []table.Ino
}

// deskTx is a transaction of a desk.
type deskTx struct {
	d *desk
	t *tree.Tx
}

func (t deskTx) Tree() *tree.Tx { return t.t }
func (t deskTx) Light()         { t.d.light++ }

func (t deskTx) Written(_ table.Ino, n *table.Inode) {
	t.d.written = append(t.d.written, n.ContentVersion)
}

func (t deskTx) Unwritten(table.Ino, *table.Inode) { t.d.unwritten++ }

func (d *desk) Update(do func(Tx) error) error {
	if f := d.before; f != nil {
		d.before = nil
		f()
	}
	return d.tree.Update(func(t *tree.Tx) error {
		if err := do(deskTx{d, t}); err != nil {
			return err
		}
		return d.fails
	}, nil)
}

func (d *desk) Closed(*tree.View, table.Ino) { d.closed++ }
func (d *desk) Abandon(ino table.Ino)        { d.abandoned = append(d.abandoned, ino) }

func (d *desk) KeepForSet(LockedInode) func(*tree.View) bool {
	return func(*tree.View) bool { d.stale--; return d.stale < 0 }
}

func (d *desk) KeepBefore(oi LockedInode) {
	assert.False(d.t, d.inode().Writing, "the intent came before what it is kept from")
	d.kept++
}

// newDesk makes a desk of a file of which "one" is local.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{scene: newScene(t, answer{content: "one"}), t: t, set: NewOpenSet(), gate: make(chan struct{})}
	store := assert.Of(content.Open(t.TempDir(), content.Options{Ballast: -1, Floor: -1})).OK(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		d.work.Wait()
		assert.OK(t, store.Close())
	})
	unlinks := NewDeferredUnlinks(UnlinkOptions{Tree: d.tree, Remove: store.Remove})
	eviction := &Eviction{Tree: d.tree, Store: store, Open: d.set, Update: func(do func(*tree.Tx) error) error { return d.tree.Update(do, nil) }}
	d.store = store
	d.opener = NewOpener(OpenerOptions{
		Tree: d.tree, Set: d.set, Store: store, Hydrator: d.Hydrator, Eviction: eviction, Unlinks: unlinks,
		Syncs: &TableSync{Tree: d.tree}, Volume: d, Keeper: d, Now: func() time.Time { return d.now },
		Context: ctx, Log: slog.New(slog.DiscardHandler),
		Go: func(_ *tree.View, f func()) bool {
			if !d.ended {
				d.work.Go(f)
			}
			return !d.ended
		},
		Pause: func(ctx context.Context, _ time.Duration) error {
			select {
			case <-d.gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	oi := d.open(ForUs)
	assert.OK(t, oi.f.FetchAll(ctx))
	d.close(oi, false)
	return d
}

func (d *desk) open(use Use) *OpenInode {
	d.t.Helper()
	oi := assert.Of(d.opener.Open(d.x, use)).OK(d.t)
	return oi
}

func (d *desk) close(oi *OpenInode, writer bool) {
	d.t.Helper()
	assert.OK(d.t, d.opener.Close(oi, writer))
}

func (d *desk) write(oi *OpenInode, data string, off int64) {
	d.t.Helper()
	assert.OK(d.t, d.opener.Change(oi, func() error {
		assert.True(d.t, d.inode().Writing, "a byte changes without the intent on record")
		_, err := oi.f.WriteAt(context.Background(), []byte(data), off)
		return err
	}))
}

func (d *desk) flush(oi *OpenInode) {
	d.t.Helper()
	assert.OK(d.t, d.opener.Flush(oi, false))
}

func (d *desk) inode() table.Inode {
	v := d.tree.Lock()
	defer d.tree.Unlock()
	return *v.Inode(d.x)
}

// What was not local is so when the last user leaves, and one that finds nothing to open
// gets an error.
func TestOpen(t *testing.T) {
	d := newDesk(t)
	assert.Equal(t, d.inode().State, table.Whole, "what was fetched")
	assert.Equal(t, len(d.set.all), 0, "open inodes")
	assert.Equal(t, d.opener.o.Store.Usage().Files, 1, "files that were weighed")
	for ino, want := range map[table.Ino]error{table.Root: syscall.EISDIR, 999: ErrNoInode} {
		assert.Is(t, assert.ErrOf(d.opener.Open(ino, ForUs)), want)
	}
	assert.True(t, d.opener.IfOpen(d.x) == nil, "what is not open is")
	oi := d.open(ForUs)
	assert.True(t, d.open(ForReading) == oi && d.opener.IfOpen(d.x) == oi, "one inode is open twice")
	for range 3 {
		d.opener.Release(oi)
	}
	assert.Equal(t, len(d.set.all), 0, "open inodes")
}

// Content that is missing where the remote has it was given up, and is fetched; what was to
// go before the inode gets other content goes first.
func TestOpenOfWhatIsMissing(t *testing.T) {
	d := newDesk(t)
	d.opener.o.Store.Remove(d.x)
	d.answers = []answer{{content: "one"}}
	oi := d.open(ForReading)
	assert.OK(t, oi.f.FetchAll(context.Background()))
	d.close(oi, false)
	assert.Equal(t, d.inode().State, table.Whole, "it was fetched again")

	assert.True(t, d.opener.o.Eviction.MayEvict(d.x), "it is evicted")
	to := &shelved{}
	d.opener.o.Unlinks = to.unlinks(d.scene)
	d.opener.o.Unlinks.Add(d.x, DeferredUnlink{})
	d.close(d.open(ForReading), false)
	assert.Slice(t, to.log, []string{"remove", "forget"}, "what was to go")
}

// A file whose opens wait for the first bytes becomes another version, until one of them has
// read, or one is not a reader.
func TestOpenIsOutdated(t *testing.T) {
	for name, c := range map[string]struct {
		use      Use
		read     bool
		outdated bool
	}{
		"waiting to read": {ForReading, false, true},
		"fetched ahead":   {ForPrefetch, false, true},
		"read":            {ForReading, true, false},
		"by us":           {ForUs, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			assert.True(t, d.opener.o.Eviction.MayEvict(d.x), "it is evicted")
			oi := d.open(c.use)
			assert.True(t, !c.read || d.opener.MarkRead(oi), "it is outdated at once")
			d.place("f", version+1)
			assert.Equal(t, !d.opener.MarkRead(oi), c.outdated, "outdated")
			again := d.open(ForReading)
			assert.Equal(t, again != oi, c.outdated, "the next open begins anew")
			d.close(again, false)
			d.close(oi, false)
			assert.Equal(t, len(d.set.all), 0, "open inodes")
		})
	}
}

// The dirty intent is on record when an open for writing returns and before each byte
// changes, and ends with the commit that takes what was written, at the latest with the last
// writer.
func TestIntent(t *testing.T) {
	d := newDesk(t)
	is := func(what string, writing bool, versions uint64, size int64) {
		t.Helper()
		n := d.inode()
		assert.Equal(t, [3]any{n.Writing, n.ContentVersion - version, n.Size}, [3]any{writing, versions, size}, what, "intent, versions more, size")
		v := d.tree.Lock()
		defer d.tree.Unlock()
		assert.Equal(t, len(DirtyIntents(v)) == 1, writing, what, "for the next start")
	}
	reader := d.open(ForReading)
	is("reader", false, 0, 3)
	one, other := d.open(ForWriting), d.open(ForWriting)
	is("writers", true, 0, 3)
	d.close(one, true)
	is("one writer left, and nothing written", true, 0, 3)
	d.write(other, "more", 3)
	is("written", true, 0, 3)
	d.flush(other)
	is("flushed", false, 1, 7)
	d.flush(other)
	is("nothing new", false, 1, 7)
	d.write(other, "m", 3)
	is("written again", true, 1, 7)
	d.close(other, true)
	is("closed", false, 2, 7)
	assert.Equal(t, d.closed, 1, "last closes")
	assert.OK(t, d.opener.BecomeWriter(reader))
	is("a reader that became a writer", true, 2, 7)
	d.close(reader, true)
	is("which wrote nothing", false, 2, 7)
	assert.Equal(t, d.unwritten, 1, "intents that nothing came of")
	assert.Slice(t, d.written, []uint64{version + 1, version + 2}, "told")
	assert.Equal(t, d.light, 1, "flushes of what was known to differ")
	assert.Equal(t, d.kept, 3, "states kept before a change")
}

// An intent that cannot be committed lets no byte change.
func TestIntentFails(t *testing.T) {
	d := newDesk(t)
	d.fails = errors.New("full")
	assert.Is(t, assert.ErrOf(d.opener.Open(d.x, ForWriting)), d.fails)
	assert.Equal(t, len(d.set.all), 0, "open inodes")
	reader := d.open(ForReading)
	assert.Is(t, d.opener.Change(reader, func() error { t.Error("it changed"); return nil }), d.fails)
	d.fails = nil
	d.write(reader, "t", 0)
	d.fails = errors.New("full")
	assert.Is(t, d.opener.Flush(reader, false), d.fails)
	d.fails = nil
	d.flush(reader)
	assert.Equal(t, d.inode().ContentVersion, version+1, "what a flush could not take the next does")
	d.close(reader, false)
}

// A change that finds another change set under way than its state was kept for has it kept
// for that.
func TestIntentMeetsAnotherSet(t *testing.T) {
	d := newDesk(t)
	d.stale = 2
	oi := d.open(ForWriting)
	assert.Equal(t, d.stale, -1, "looks")
	assert.Equal(t, d.kept, 1, "intents")
	d.close(oi, true)
}

// A flush does not end the intent while a change is under way, nor when it is to stay.
func TestIntentStays(t *testing.T) {
	d := newDesk(t)
	oi := d.open(ForWriting)
	assert.OK(t, d.opener.Change(oi, func() error {
		assert.OK(t, assert.ErrOf(oi.f.WriteAt(context.Background(), []byte("t"), 0)))
		d.flush(oi)
		assert.True(t, d.inode().Writing, "it ended in the middle of a change")
		return nil
	}))
	assert.OK(t, d.opener.Flush(oi, true))
	assert.True(t, d.inode().Writing, "it was to stay")
	d.close(oi, true)
	assert.False(t, d.inode().Writing, "it outlives the last writer")
}

// A set that begins ends the intent of what no program is just changing, so that it
// hears of the next change. A flush or a note that finds nothing new does not begin it
// again: it may have looked before the set began.
func TestNothingNewBeginsNoIntent(t *testing.T) {
	for name, end := range map[string]func(d *desk, oi *OpenInode) error{
		"flush": func(d *desk, _ *OpenInode) error { return d.opener.FlushIfOpen(d.x) },
		"rest": func(d *desk, oi *OpenInode) error {
			oi.unseen.Store(true) // a program may change it through a mapping
			defer oi.unseen.Store(false)
			return d.opener.rest(d.x)
		},
		"set": func(d *desk, _ *OpenInode) error {
			v := d.tree.Lock()
			defer d.tree.Unlock()
			assert.Equal(d.t, len(d.set.EndIntents(v)), 0, "just changing")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			oi := d.open(ForWriting)
			assert.True(t, oi.intent.Load(), "a writer has no intent")
			assert.OK(t, end(d, oi))
			assert.False(t, oi.intent.Load(), "the next change would not be heard of")
			d.write(oi, "t", 0)
			v := d.tree.Lock()
			assert.Equal(t, len(d.set.EndIntents(v)), 1, "with what the table does not have")
			d.tree.Unlock()
			d.close(oi, true)
		})
	}
}

// stat of open content shows what was written, at the time of the write, and so does the
// table after the flush.
func TestStatOfOpenContent(t *testing.T) {
	d := newDesk(t)
	oi := d.open(ForWriting)
	stat := func() (size, changed int64) {
		v := d.tree.Lock()
		defer d.tree.Unlock()
		size, changed, _ = oi.Stat(v)
		return size, changed
	}
	d.write(oi, "more", 3)
	wrote := d.now.UnixNano()
	d.now = d.now.Add(time.Hour)
	size, changed := stat()
	assert.Equal(t, size, 7, "size")
	assert.Equal(t, changed, wrote, "time")
	d.flush(oi)
	_, changed = stat()
	assert.Equal(t, changed, 0, "what the table has")
	n := d.inode()
	assert.True(t, n.Mtime == table.Stamp(wrote) && n.Ctime == table.Stamp(wrote), "the table has", n.Mtime, n.Ctime)
	d.close(oi, true)
}

// Content that is open is not given up, and one without a name goes with its last user.
func TestOpenContentIsKept(t *testing.T) {
	d := newDesk(t)
	oi := d.open(ForReading)
	assert.False(t, d.opener.o.Eviction.MayEvict(d.x), "it was evicted")
	d.update(func(tx *tree.Tx) { tx.SetName(table.Link{Dir: table.Root, Name: "f"}, table.Name{}) })
	assert.Equal(t, len(d.abandoned), 0, "abandoned while it is open")
	d.close(oi, false)
	assert.Slice(t, d.abandoned, []table.Ino{d.x}, "abandoned")
}

// Content for a new file is open once it is entered, with an intent, or gone.
func TestMake(t *testing.T) {
	d := newDesk(t)
	const x = 77
	oi := assert.Of(d.opener.Make(x)).OK(t)
	d.opener.Discard(oi)
	assert.Is(t, assert.ErrOf(d.opener.o.Store.Open(x)), os.ErrNotExist)
	oi = assert.Of(d.opener.Make(x)).OK(t)
	by := Caller{true, 5, 6}
	d.update(func(tx *tree.Tx) {
		n := &table.Inode{Mode: syscall.S_IFREG, State: table.Whole, ContentVersion: 1}
		SetDirtyIntent(tx, x, n, true)
		tx.Put(x, n)
		d.opener.Enter(tx, oi, true, by)
		assert.Equal(t, d.set.Of(tx.View, x).Writer(tx.View), by, "the writer")
		assert.True(t, d.set.IsWritten(tx.View, x), "it has no writer")
	})
	d.close(oi, true)
	assert.Equal(t, d.unwritten, 1, "intents that nothing came of")
	assert.Slice(t, d.abandoned, []table.Ino{x}, "abandoned")
}

// An fsync has the disk keep content and names; when the content is still being written, it
// is noted later, and once, that the disk has it, and the intent ends if nothing came since.
func TestSync(t *testing.T) {
	d := newDesk(t)
	oi := d.open(ForWriting)
	for _, data := range []string{"a", "b"} {
		d.write(oi, data, 0)
		assert.OK(t, d.opener.Flush(oi, true))
		assert.OK(t, d.opener.Sync(oi))
		assert.True(t, d.opener.o.Syncs.HasNames(), "the disk lacks names")
	}
	n := d.inode()
	assert.True(t, n.Synced < n.ContentVersion && n.Writing, "it was noted at once")
	close(d.gate)
	d.work.Wait()
	n = d.inode()
	assert.Equal(t, n.Synced, n.ContentVersion, "noted")
	assert.False(t, n.Writing, "the intent stays although nothing changes")
	d.write(oi, "c", 0)
	assert.True(t, d.inode().Writing, "the change after the rest is not on record")
	d.close(oi, true)
	reader := d.open(ForReading)
	assert.OK(t, d.opener.Sync(reader))
	n = d.inode()
	assert.Equal(t, n.Synced, n.ContentVersion, "of what is closed, noted")
	d.close(reader, false)
}

// A close before the note takes the note along, and a working copy that has ended begins
// none.
func TestSyncThenClose(t *testing.T) {
	for _, ended := range []bool{false, true} {
		d := newDesk(t)
		d.ended = ended
		oi := d.open(ForWriting)
		d.write(oi, "a", 0)
		assert.OK(t, d.opener.Flush(oi, true))
		assert.OK(t, d.opener.Sync(oi))
		d.close(oi, true)
		n := d.inode()
		assert.Equal(t, n.Synced == n.ContentVersion, !ended, "noted by the close")
		close(d.gate)
	}
}

// A close while the note is under way takes it along too: at no time says the table that what
// was synced is neither changing nor on the disk.
func TestCloseWhileASyncIsNoted(t *testing.T) {
	d := newDesk(t)
	oi := d.open(ForWriting)
	d.write(oi, "a", 0)
	assert.OK(t, d.opener.Flush(oi, true))
	assert.OK(t, d.opener.Sync(oi))
	d.before = func() {
		d.close(oi, true)
		n := d.inode()
		assert.Equal(t, n.Synced, n.ContentVersion, "noted by the close")
	}
	close(d.gate)
	d.work.Wait()
	assert.True(t, d.before == nil, "the note changed nothing")
}

// A change of names since the last sync of the table brings the table to the disk.
func TestTableSync(t *testing.T) {
	s := newScene(t)
	syncs := TableSync{Tree: s.tree}
	syncs.Committed(s.tree.Lock())
	s.tree.Unlock()
	assert.False(t, syncs.HasNames(), "before a sync")
	assert.OK(t, syncs.SyncNames())
	assert.True(t, syncs.HasNames(), "after one")
}

// What a program stores through a mapping of content that the kernel reads itself is taken:
// by a close, when it is over before the close asks whether there is one, and after the
// close, while it lasts and when it ends.
func TestStoresThroughAMapping(t *testing.T) {
	for _, when := range []string{"before the close", "between two looks", "while it lasts", "after the close"} {
		t.Run(when, func(t *testing.T) {
			d := newDesk(t)
			reader := d.open(ForReading)
			fd, ok := d.opener.PassThrough(reader)
			tier.Require(t, "a file system that tells of stores through mappings", ok)
			writer := d.open(ForWriting)
			m := mapFile(t, fd)
			switch when {
			case "before the close":
				m[0] = 'O'
				assert.OK(t, unix.Munmap(m))
				d.close(writer, true)
			case "between two looks":
				d.flush(writer)
				m[0] = 'O'
				assert.OK(t, unix.Munmap(m))
				stays := assert.Of(d.opener.linger(writer)).OK(t)
				assert.False(t, stays, "a goroutine stays for no mapping")
				assert.Equal(t, d.inode().ContentVersion, version+1)
				d.close(writer, true)
			case "while it lasts":
				d.close(writer, true)
				m[0] = 'O'
				for range 2 { // the second when the look after the first is over
					d.gate <- struct{}{}
				}
				assert.Equal(t, d.inode().ContentVersion, version+1)
				assert.OK(t, unix.Munmap(m))
			case "after the close":
				d.close(writer, true)
				assert.True(t, d.inode().Writing, "a crash now would hide what is mapped")
				m[0] = 'O'
				assert.OK(t, unix.Munmap(m))
			}
			close(d.gate)
			d.work.Wait()
			d.close(reader, false)
			n := d.inode()
			assert.True(t, n.ContentVersion == version+1 && !n.Writing, "it is", n)
			assert.Equal(t, len(d.set.all), 0, "open inodes")
		})
	}
}

// mapFile maps a file that is open under a descriptor for writing.
func mapFile(t *testing.T, fd int) []byte {
	t.Helper()
	w := assert.Of(unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDWR, 0)).OK(t)
	m := assert.Of(unix.Mmap(w, 0, 3, unix.PROT_WRITE, unix.MAP_SHARED)).OK(t)
	assert.OK(t, unix.Close(w))
	return m
}

// Nothing is passed through while a program writes it, or part of it is missing.
func TestMayPass(t *testing.T) {
	d := newDesk(t)
	may := func(oi *OpenInode) bool { return oi.MayPass(d.tree.Lock()) }
	reader := d.open(ForReading)
	assert.True(t, may(reader), "a reader alone")
	d.tree.Unlock()
	writer := d.open(ForWriting)
	assert.False(t, may(reader), "beside a writer")
	d.tree.Unlock()
	d.close(writer, true)
	d.close(reader, false)
}
