package commit

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A desk is a scene on which a file of "first" is being written, of which a set is made.
type desk struct {
	*scene
	*Kept
	files     *files.OpenSet
	opener    *files.Opener
	oi        *files.OpenInode
	abandoned []table.Ino
	unsaved   bool
}

const x table.Ino = 10 // the file

// deskTx is a transaction of a desk.
type deskTx struct{ t *tree.Tx }

func (t deskTx) Tree() *tree.Tx                  { return t.t }
func (deskTx) Light()                            {}
func (deskTx) Written(table.Ino, *table.Inode)   {}
func (deskTx) Unwritten(table.Ino, *table.Inode) {}

func (d *desk) Update(do func(files.Tx) error) error {
	return d.tree.Update(func(t *tree.Tx) error { return do(deskTx{t}) }, nil)
}

func (d *desk) Closed(*tree.View, table.Ino) {}
func (d *desk) Abandon(ino table.Ino)        { d.abandoned = append(d.abandoned, ino) }
func (d *desk) KeepBefore(files.LockedInode) {}

func (d *desk) KeepForSet(oi files.LockedInode) func(*tree.View) bool { return d.KeepState(oi) }

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{scene: newScene(t), files: files.NewOpenSet(), unsaved: true}
	store := assert.Of(content.Open(t.TempDir(), content.Options{Ballast: -1, Floor: -1})).OK(t)
	t.Cleanup(func() { assert.OK(t, store.Close()) })
	d.opener = files.NewOpener(files.OpenerOptions{
		Tree: d.tree, Set: d.files, Store: store, Unlinks: files.NewDeferredUnlinks(files.UnlinkOptions{Tree: d.tree, Remove: store.Remove}),
		Eviction: &files.Eviction{Tree: d.tree, Store: store, Open: d.files, Update: func(do func(*tree.Tx) error) error { return d.tree.Update(do, nil) }},
		Syncs:    &files.TableSync{Tree: d.tree}, Volume: d, Keeper: d, Now: time.Now, Context: t.Context(), Log: slog.New(slog.DiscardHandler),
		Go: func(*tree.View, func()) bool { return false },
	})
	d.Kept = NewKept(KeptOptions{Tree: d.tree, Open: d.files, IsUnsaved: func(*tree.View, table.Ino) bool { return d.unsaved },
		Release: d.opener.Release, Abandon: func(inos ...table.Ino) { d.abandoned = append(d.abandoned, inos...) }})
	d.makes(x, file, root("f"))
	d.does(func(tx *tree.Tx) { tx.Edit(x).Size = 0 })
	d.oi = assert.Of(d.opener.Open(x, files.ForWriting)).OK(t)
	d.write("first")
	t.Cleanup(func() {
		d.Kept.End()
		assert.OK(t, d.opener.Close(d.oi, true))
		v := d.tree.Lock()
		defer d.tree.Unlock()
		assert.Equal(t, len(d.files.Inos(v)), 0, "files that are open still")
	})
	return d
}

// write is what a program does.
func (d *desk) write(text string) {
	d.Helper()
	assert.OK(d, d.opener.Change(d.oi, func() error {
		_, err := d.oi.Content().WriteAt(d.Context(), []byte(text), 0)
		return err
	}))
	assert.OK(d, d.opener.Flush(d.oi, false))
}

// begin begins a set, which has the file.
func (d *desk) begin() *Planned {
	v := d.tree.Lock()
	defer d.tree.Unlock()
	assert.Equal(d, len(d.Begin(v)), 0, "just changing")
	return &Planned{Link: root("f"), Ino: x, Kind: providers.KindFile, Gen: v.Inode(x).ContentVersion}
}

// now packs the present state.
func (d *desk) now(ctx context.Context, ino table.Ino) (*upload.Payload, error) {
	oi, err := d.opener.Open(ino, files.ForUs)
	if err != nil {
		return nil, upload.ErrMoot
	}
	p := upload.NewPayload(oi, 0, d.opener.Release)
	return p, p.Take(ctx)
}

// packed is what the set gets.
func (d *desk) packed(p *Planned, now func(context.Context, table.Ino) (*upload.Payload, error)) string {
	d.Helper()
	was, err := d.Pack(d.Context(), p, now)
	if err != nil {
		assert.Is(d, err, upload.ErrAgain)
		return "again"
	}
	defer was.Close()
	text := assert.Of(io.ReadAll(was.Reader())).OK(d)
	return string(text)
}

// A set gets the content of its moment, whatever programs do after that, or is made anew.
func TestContentOfTheMoment(t *testing.T) {
	for _, c := range []struct {
		what, want string
		after      func(d *desk, p *Planned)
	}{
		{"nothing", "first", func(*desk, *Planned) {}},
		{"it is changed", "first", func(d *desk, _ *Planned) { d.write("later") }},
		{"it is changed twice", "first", func(d *desk, _ *Planned) { d.write("later"); d.write("still") }},
		{"it is changed, and no more may be kept", "again", func(d *desk, _ *Planned) { d.Kept.now.most = 0; d.write("later") }},
		{"it is changed, and goes as it is when it is read", "later", func(d *desk, p *Planned) { p.Loose = true; d.write("later") }},
		{"it is changed, and the remote has it", "again", func(d *desk, _ *Planned) { d.unsaved = false; d.write("later") }},
		{"it was changed before", "again", func(_ *desk, p *Planned) { p.Gen-- }},
	} {
		d := newDesk(t)
		p := d.begin()
		c.after(d, p)
		assert.Equal(t, d.packed(p, d.now), c.want, c.what)
		assert.Equal(t, d.packed(p, d.now), c.want, c.what+", once more")
	}
}

// What changes while it is packed is of the moment all the same, and what the set has got is
// kept for it no more.
func TestChangedWhilePacked(t *testing.T) {
	d := newDesk(t)
	p := d.begin()
	assert.Equal(t, d.packed(p, func(ctx context.Context, ino table.Ino) (*upload.Payload, error) {
		d.write("later")
		return d.now(ctx, ino)
	}), "first")
	d.Kept.End()
	p = d.begin()
	assert.Equal(t, d.packed(p, d.now), "later")
	d.write("third")
	assert.Equal(t, len(d.Kept.now.payloads), 0, "kept")
	gone := func(context.Context, table.Ino) (*upload.Payload, error) { return nil, upload.ErrMoot }
	assert.Equal(t, d.packed(&Planned{Ino: 99, Kind: providers.KindSymlink}, gone), "again")
	errFetch := syscall.EIO
	_, err := d.Pack(t.Context(), &Planned{Ino: 99, Kind: providers.KindSymlink}, func(context.Context, table.Ino) (*upload.Payload, error) { return nil, errFetch })
	assert.Is(t, err, errFetch)
}

// A program that is about to change content while one set ends and another begins keeps it
// for that.
func TestAnotherSet(t *testing.T) {
	d := newDesk(t)
	isCurrent := func() bool {
		is := d.KeepState(files.LockedInode{OpenInode: d.oi})
		old := d.Kept.now
		v := d.tree.Lock()
		defer d.tree.Unlock()
		assert.True(t, is(v), "the same set")
		d.Kept.now = &moment{}
		defer func() { d.Kept.now = old }()
		return is(v)
	}
	assert.False(t, isCurrent(), "none, and then one")
	d.begin()
	assert.False(t, isCurrent(), "one, and then another")
	is := d.KeepState(files.LockedInode{OpenInode: d.oi})
	d.Kept.End()
	v := d.tree.Lock()
	defer d.tree.Unlock()
	assert.True(t, is(v) && d.Kept.now == nil, "one, and then none")
}

// What loses its last name stays until the set is over: a directory, a link, and content that
// the remote does not have.
func TestNameless(t *testing.T) {
	d := newDesk(t)
	stays := func(mode uint32) bool {
		v := d.tree.Lock()
		defer d.tree.Unlock()
		return d.Nameless(v, table.Ino(20+mode>>12), &table.Inode{Mode: mode})
	}
	assert.False(t, stays(dir), "a directory without a set")
	d.begin()
	assert.True(t, stays(file) && stays(dir) && stays(syscall.S_IFLNK), "unsaved")
	d.unsaved = false
	assert.True(t, stays(file) && stays(dir) && stays(syscall.S_IFLNK), "known")
	v := d.tree.Lock()
	assert.False(t, d.Nameless(v, 99, &table.Inode{Mode: file}), "content that the remote has")
	d.tree.Unlock()
	d.Kept.End()
	slices.Sort(d.abandoned)
	assert.Slice(t, d.abandoned, []table.Ino{20 + dir>>12, 20 + file>>12, 20 + syscall.S_IFLNK>>12})
}
