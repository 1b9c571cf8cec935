package ops

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// world is a tree with the operations on it, at a time that stands still. What the remote is
// asked for is noted.
type world struct {
	*testing.T
	*Operations
	disk     *vfs.MemFS  // of the table
	broken   atomic.Bool // it takes no writes
	dir      string      // of content
	now      time.Time
	remote   map[string]string // content of files in the root
	asked    []string
	told     []string // names of which the kernel and the lifecycle bus are told
	reported []string // paths
	work     sync.WaitGroup
}

// notifier notes what it is told.
type notifier struct {
	fs.Notifier
	w *world
}

func (n notifier) EntryChanged(_ fs.Ino, name string) { n.w.told = append(n.w.told, "entry "+name) }
func (n notifier) Deleted(path string)                { n.w.told = append(n.w.told, "deleted "+path) }
func (n notifier) Wrote(path string)                  { n.w.told = append(n.w.told, "wrote "+path) }

// out excludes what is below a directory "out", and objects anywhere.
type out struct{}

func (out) Match(path string, _ bool) bool {
	return strings.HasPrefix(path, "out") || strings.HasSuffix(path, ".o")
}
func (out) SameBelow(_, _ string) bool { return false }
func (out) String() string             { return "out *.o" }

var me = &fs.Op{UID: 1000, GID: 1000}

// newWorld makes one with an empty root; change may replace options.
func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, disk: vfs.NewCrashableMem(), now: time.Unix(1_000_000, 0), remote: map[string]string{}}
	w.start(change...)
	w.update(func(tx *tree.Tx) {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true, AttrGen: 1})
	})
	return w
}

// crash goes on with no content and the table as a process that is killed leaves it, or a loss
// of power.
func (w *world) crash(ofPower bool) {
	w.Helper()
	unsynced := 100
	if ofPower {
		unsynced = 0
	}
	w.disk = w.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(1, 2))})
	w.start()
}

// start has the operations on what the disk has.
func (w *world) start(change ...func(*Options)) {
	t := w.T
	t.Helper()
	w.dir = t.TempDir()
	now, log, open := func() time.Time { return w.now }, slog.New(slog.DiscardHandler), files.NewOpenSet()
	disk := errorfs.Wrap(w.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if w.broken.Load() && op.Kind == errorfs.OpFileWrite {
			return syscall.EIO
		}
		return nil
	}))
	tab := assert.Of(table.Open("/ops", table.Options{FS: disk})).OK(t)
	t.Cleanup(func() { tab.Close() })
	store := assert.Of(content.Open(w.dir, content.Options{Ballast: -1, Floor: -1})).OK(t)
	t.Cleanup(func() { store.Close() })
	t.Cleanup(w.work.Wait)
	at := tree.New(tab, tree.Options{Now: now, Pins: open, Log: log})
	keeper := history.New(history.Options{Tree: at, Store: store, Open: open, Now: now, Context: t.Context(), Log: log,
		Revision: func(*tree.View) (providers.Revision, bool) { return "", false }})
	side := &local.Side{Border: &rules.Border{Exclude: out{}, Symlinks: true, Ignores: rules.New(""), Wake: func() {}}, Content: store, Now: now, Log: log,
		Attributes: attrs.Mapping{Kept: providers.AttrXattrs, Listed: true}, Notifier: func() fs.Notifier { return notifier{w: w} }}
	names := openFiles{w, store, keeper}
	hydrator := files.NewHydrator(files.HydratorOptions{Tree: at, Remote: names, Now: now, Patience: time.Minute})
	syncs := &files.TableSync{Tree: at}
	o := Options{
		Tree: at, Side: side, Store: store, Open: open, Belief: &listing.Belief{Now: now, Log: log}, Hydrator: hydrator, Syncs: syncs, NoWait: true,
		Ahead:    listing.NewAhead(listing.AheadOptions{}),
		Prefetch: files.NewPrefetch(files.PrefetchOptions{Tree: at, Open: open, Context: t.Context(), Log: log, Far: time.Hour}),
		Opener: files.NewOpener(files.OpenerOptions{Tree: at, Set: open, Store: store, Hydrator: hydrator, Syncs: syncs, Volume: names, Keeper: names,
			Eviction: &files.Eviction{Tree: at, Store: store, Open: open, Update: func(do func(*tree.Tx) error) error { return at.Update(do, nil) }},
			Unlinks:  files.NewDeferredUnlinks(files.UnlinkOptions{Tree: at, Remove: store.Remove}),
			Now:      now, Context: t.Context(), Log: log, Pause: func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() },
			Go: func(_ *tree.View, f func()) bool { w.work.Go(f); return true }}),
		Capabilities: providers.Capabilities{AnyNames: true},
		Update: func(by files.Caller, do func(*local.Tx) error) error {
			return at.Update(func(tx *tree.Tx) error {
				syncs.Committed(tx.View)
				return do(&local.Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &by)})
			}, nil)
		},
		Remote: Remote{
			Load:    w.load,
			Freshen: func(*fs.Op, table.Ino, bool) error { return nil },
			FetchAttrs: func(_ *fs.Op, _ table.Ino, needs bool) error {
				w.asked = append(w.asked, fmt.Sprint("attributes ", needs))
				return nil
			},
			Reach: func(_ *fs.Op, do func(context.Context) error) error { return do(t.Context()) },
		},
		Uploads: Uploads{
			WaitForContent: func(*fs.Op, table.Ino) error { w.asked = append(w.asked, "wait"); return nil },
			WaitForNames:   func(*fs.Op) error { w.asked = append(w.asked, "wait for names"); return nil },
			IsUnsaved: func(v *tree.View, ino table.Ino) bool {
				return v.Inode(ino).ContentVersion != v.Inode(ino).Origin.ContentVersion
			},
		},
		Report:  func(_, path string, _ error) { w.reported = append(w.reported, path) },
		Abandon: func(...table.Ino) {},
	}
	for _, c := range change {
		c(&o)
	}
	w.Operations = New(o)
}

// load is the listing of a directory in which the remote has nothing.
func (w *world) load(_ *fs.Op, dir table.Ino) error {
	w.asked = append(w.asked, fmt.Sprint("list ", dir))
	return w.o.Tree.Update(func(tx *tree.Tx) error {
		if tx.Inode(dir).IsDir() {
			tx.Edit(dir).Loaded = true
		}
		return nil
	}, nil)
}

// update changes the tree by no operation.
func (w *world) update(do func(*tree.Tx)) {
	w.Helper()
	assert.OK(w, w.o.Tree.Update(func(tx *tree.Tx) error { do(tx); return nil }, nil))
}

// openFiles is the rest of a working copy as open files need it.
type openFiles struct {
	w      *world
	store  *content.Store
	keeper *history.Keeper
}

// fileTx is a transaction about an open file.
type fileTx struct{ tx *local.Tx }

func (t fileTx) Tree() *tree.Tx                        { return t.tx.Tx }
func (fileTx) Light()                                  {}
func (t fileTx) Written(ino table.Ino, n *table.Inode) { t.tx.Written(ino, n) }
func (fileTx) Unwritten(table.Ino, *table.Inode)       {}

func (f openFiles) Update(do func(files.Tx) error) error {
	return f.w.o.Update(files.Caller{}, func(tx *local.Tx) error { return do(fileTx{tx}) })
}
func (openFiles) Closed(*tree.View, table.Ino) {}
func (openFiles) Abandon(table.Ino)            {}
func (openFiles) KeepBefore(files.LockedInode) {}
func (openFiles) KeepForSet(files.LockedInode) func(*tree.View) bool {
	return func(*tree.View) bool { return true }
}

func (f openFiles) Read(_ context.Context, _ table.Ino, at providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	f.w.asked = append(f.w.asked, "read "+at.String())
	return providers.Content{Body: io.NopCloser(strings.NewReader(f.w.remote[at.String()][o.Offset:][:o.Length]))}, nil
}

func (openFiles) Patiently(ctx context.Context, do func(context.Context, func()) error) error {
	return do(ctx, func() {})
}

func (openFiles) Retry(ctx context.Context, _ time.Duration, _ func(error) bool, do func(context.Context) error) error {
	return do(ctx)
}

// mkdir makes directories, whose names are known, and gives the last.
func (w *world) mkdir(paths ...string) (ino fs.Ino) {
	w.Helper()
	for _, path := range paths {
		dir, name := w.split(path)
		ino = assert.Of(w.Mkdir(me, dir, name, 0o755)).OK(w).Ino
	}
	return ino
}

func (w *world) split(path string) (dir fs.Ino, name string) {
	w.Helper()
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return w.walk(path[:i]), path[i+1:]
	}
	return fs.RootIno, path
}

// walk gives the inode of a path, 0 when there is none.
func (w *world) walk(path string) (ino fs.Ino) {
	w.Helper()
	ino = fs.RootIno
	for name := range strings.SplitSeq(path, "/") {
		ino = assert.Of(w.Lookup(me, ino, name)).OK(w).Ino
	}
	return ino
}

// put makes a file.
func (w *world) put(path, text string) fs.Ino {
	w.Helper()
	dir, name := w.split(path)
	e, o, err := w.Create(me, dir, name, syscall.O_WRONLY, 0o644)
	assert.OK(w, err)
	w.write(o, text, 0)
	w.shut(o)
	return e.Ino
}

// there makes a file of the remote known, whose content is not local.
func (w *world) there(name, text string) (ino fs.Ino) {
	w.Helper()
	w.remote[name] = text
	w.update(func(tx *tree.Tx) {
		l, x := table.Link{Dir: table.Root, Name: name}, tx.Alloc()
		tx.Put(x, &table.Inode{Mode: syscall.S_IFREG | 0o644, Size: int64(len(text)), ContentVersion: 1, AttrGen: 1, Pulled: true})
		tx.SetLocal(l, x, false, false)
		rec := tx.Record(l)
		rec.Remote, rec.Seq = &table.Remote{Ino: x, Kind: providers.KindFile, ContentVersion: 1, AttrGen: 1}, 0
		tx.SetName(l, rec)
		ino = fs.Ino(x)
	})
	return ino
}

func (w *world) open(ino fs.Ino, flags uint32) fs.Opened {
	w.Helper()
	return assert.Of(w.Open(me, ino, flags)).OK(w)
}

func (w *world) write(o fs.Opened, text string, off int64) {
	w.Helper()
	assert.Equal(w, assert.Of(o.File.Write(me, []byte(text), off)).OK(w), len(text), "bytes written")
}

func (w *world) read(o fs.Opened) string {
	w.Helper()
	return string(assert.Of(o.File.Read(me, make([]byte, 1<<16), 0)).OK(w).Bytes)
}

// shut is close(2) of the last descriptor.
func (w *world) shut(o fs.Opened) {
	w.Helper()
	assert.OK(w, o.File.Flush(me))
	o.File.Release()
}

// inode is what the table has of an inode.
func (w *world) inode(ino fs.Ino) table.Inode {
	w.Helper()
	v := w.o.Tree.Lock()
	defer w.o.Tree.Unlock()
	n := v.Inode(table.Ino(ino))
	assert.Must(w, n != nil, "there is no inode", ino)
	return *n
}
