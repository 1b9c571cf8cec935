package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	iofs "io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// succession is what uploads have to do with a merge: what was in a directory that was removed is
// in the one that has its place.
type succession struct {
	upload.Rest
	*tree.Tx
}

func (succession) Wake() {}

func (s succession) Succeeded(old, dir table.Ino) { s.Succeed(old, dir) }

// orphans keeps the inodes about which a conflict is to be resolved.
type orphans struct{ *tree.Tx }

func (o *orphans) Nameless(x table.Ino, _ *table.Inode) bool { return IsOrphanConflict(o.View, x) }
func (*orphans) Freed(table.Ino, *table.Inode)               {}
func (*orphans) Full(bool) bool                              { return false }
func (*orphans) Marked(table.Link, uint64, uint64)           {}
func (*orphans) Committed()                                  {}
func (*orphans) Undone()                                     {}

// copied is a working copy, and the remote that it is of.
type copied struct {
	*testing.T
	*Merger
	remote   *memory.Provider
	was      string                      // what an earlier revision has, whatever is asked for; "": nothing
	told     []string                    // problems
	kept     []string                    // what the history has of versions at the remote
	roomless bool                        // it has no room for them
	pulled   []string                    // paths that lead to another file
	calls    func(*providers.Call) error // before a call of the remote
	opener   *files.Opener
	later    []func() // what is to run in the background
	by       files.Caller
}

// newCopy is a working copy of a remote with files, of which the names are known.
func newCopy(t *testing.T, o memory.Options, conflict reconcile.Conflict, with ...string) *copied {
	t.Helper()
	c := &copied{T: t, remote: memory.New(o), calls: func(*providers.Call) error { return nil }}
	caps, log, open := c.remote.Capabilities(), slog.New(slog.DiscardHandler), files.NewOpenSet()
	store := assert.Of(content.Open(t.TempDir(), content.Options{Floor: -1, Ballast: -1, Block: 1 << 10})).OK(t)
	t.Cleanup(func() { assert.OK(t, store.Close()) })
	tab := assert.Of(table.Open("/merge", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() {
		assert.OK(t, tab.Check())
		assert.OK(t, tab.Close())
	})
	tr := tree.New(tab, tree.Options{Now: time.Now, Attributes: true, Pins: open, Log: log})
	asked := providers.Wrap(c.remote, providers.WrapOptions{Around: func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		if err := c.calls(call); err != nil {
			return err
		}
		return next(ctx)
	}})
	var keeper *history.Keeper
	keeper = history.New(history.Options{Tree: tr, Store: store, Open: open, Now: time.Now, Context: t.Context(), Log: log,
		Update: func(do func(history.Tx) error) error {
			return tr.Update(func(tx *tree.Tx) error { return do(keeper.In(tx, &c.by)) }, nil)
		},
		Revision: func(*tree.View) (providers.Revision, bool) { return "", false }, Ended: func(chores.Activity, error) {}})
	side := &local.Side{Border: &rules.Border{Symlinks: true, Ignores: rules.New(""), Wake: func() {}}, Attributes: attrs.Mapping{Kept: caps.Attributes, Listed: caps.ListComplete},
		Content: store, Notifier: func() fs.Notifier { return fs.DiscardNotifier{} }, Now: time.Now, Log: log}
	in := openFiles{c}
	hydrator := files.NewHydrator(files.HydratorOptions{Tree: tr, Remote: in, Names: in, Now: time.Now, Patience: time.Minute})
	c.opener = files.NewOpener(files.OpenerOptions{
		Tree: tr, Set: open, Store: store, Hydrator: hydrator, Unlinks: files.NewDeferredUnlinks(files.UnlinkOptions{Tree: tr, Remove: store.Remove}),
		Eviction: &files.Eviction{Tree: tr, Store: store, Open: open, Update: func(do func(*tree.Tx) error) error { return tr.Update(do, nil) }},
		Syncs:    &files.TableSync{Tree: tr}, Volume: in, Keeper: in, Now: time.Now, Context: t.Context(), Log: log,
		Go: func(*tree.View, func()) bool { return false },
	})
	jobs, guard := upload.NewJobs(), &massdelete.Guard{}
	c.Merger = NewMerger(Options{
		Tree: tr, Side: side, Store: store, Open: open, History: keeper, Provider: asked, Capabilities: caps, Conflict: conflict,
		Versions: past.New(past.Options{Tree: tr, Store: store, Keeper: keeper, Remote: asked, Context: t.Context()}),
		Hydrator: hydrator,
		Executor: upload.NewExecutor(upload.ExecutorOptions{Provider: asked, Tree: tr, Log: log}), Jobs: &jobs, Head: revision.NewHeadLock(),
		DirAttrs: func() bool { return false }, Context: t.Context(),
		Volume: Volume{
			Update: func(do func(*local.Tx, upload.Tx) error) error {
				kept := &orphans{}
				return tr.Update(func(tx *tree.Tx) error {
					kept.Tx = tx
					return do(&local.Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &c.by)}, upload.Tx{Tx: tx, Rest: succession{Tx: tx}})
				}, kept)
			},
			Retry:  func(ctx context.Context, do func(context.Context) error) error { return do(ctx) },
			Report: func(_, path string, err error) { c.told = append(c.told, path+": "+err.Error()) },
			Go:     func(f func()) { c.later = append(c.later, f) },
			Pause:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		},
		Remote: Remote{
			List:        func(_ context.Context, _ revision.Held, dir table.Ino) error { c.load(dir); return nil },
			FetchTarget: func(_ context.Context, ino table.Ino) error { c.hydrate(ino); return nil },
			AwaitPlace:  func(context.Context, table.Ino) bool { return false },
		},
		Past: Past{
			Keep: func(ctx context.Context, _ table.Link, info providers.Info) (bool, error) {
				if c.roomless {
					return false, nil
				}
				text, _, err := providers.Fetch(ctx, asked, info.Locator, providers.ReadOptions{Version: info.Version})
				c.kept = append(c.kept, string(text))
				return err == nil, err
			},
			PreviousHead: func(context.Context, providers.Locator, providers.Version) (io.ReadCloser, error) {
				if c.was == "" {
					return nil, iofs.ErrNotExist
				}
				return io.NopCloser(strings.NewReader(c.was)), nil
			},
		},
		Guard: Guard{Halts: func(*tree.View) *massdelete.Guard { return guard }, PullWhole: func(*tree.View) {}, IsPulling: func(*tree.View) bool { return false },
			Check: func(_ *tree.View, reason string, deleted int) error {
				_, err := guard.Check(massdelete.Pull, reason, deleted, time.Now())
				return err
			}},
		Heard:  func(*tree.View, table.Link, string) bool { return false },
		Pulled: func(path string) { c.pulled = append(c.pulled, path) },
	})
	assert.OK(t, c.update(func(tx *Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR | 0o755})
		return nil
	}))
	for i := 0; i < len(with); i += 2 {
		c.theirs("put " + with[i] + " " + with[i+1])
	}
	c.lines()
	c.told, c.pulled = nil, nil
	return c
}

// openFiles are the open files of a working copy, of which each new state is told to the merger.
type openFiles struct{ *copied }

func (o openFiles) Update(do func(files.Tx) error) error {
	return o.update(func(tx *Tx) error { return do(openTx{tx}) })
}

func (openFiles) Closed(*tree.View, table.Ino) {}

func (o openFiles) Abandon(x table.Ino) {
	o.ok(o.update(func(tx *Tx) error { tx.Shed(x); return nil }))
}

func (openFiles) KeepForSet(files.LockedInode) (isCurrent func(*tree.View) bool) {
	return func(*tree.View) bool { return true }
}

func (openFiles) KeepBefore(files.LockedInode) {}

func (o openFiles) Read(ctx context.Context, _ table.Ino, at providers.Locator, r providers.ReadOptions) (providers.Content, error) {
	return o.o.Provider.Read(ctx, at, r)
}

func (openFiles) Patiently(ctx context.Context, do func(context.Context, func()) error) error {
	return do(ctx, func() {})
}

func (openFiles) Retry(ctx context.Context, _ time.Duration, _ func(error) bool, do func(context.Context) error) error {
	return do(ctx)
}

func (o openFiles) Revalidate(ctx context.Context, x table.Ino) error {
	return o.RevalidateInode(ctx, x)
}
func (openFiles) AwaitPlace(context.Context, table.Ino) bool { return false }

// openTx is a transaction about the content of an open file.
type openTx struct{ *Tx }

func (t openTx) Tree() *tree.Tx { return t.Tx.Tx.Tx }
func (openTx) Light()           {}

func (t openTx) Written(x table.Ino, n *table.Inode) {
	t.Tx.Written(x, n)
	if len(n.Links) == 0 && n.LostName != nil {
		t.OrphanChanged(t.Tree(), x)
	}
}

func (openTx) Unwritten(table.Ino, *table.Inode) {}

// open opens a file for a program.
func (c *copied) open(path string, use files.Use) *files.OpenInode {
	c.Helper()
	_, x := c.find(path)
	return assert.Of(c.opener.Open(x, use)).OK(c)
}

// write writes to an open file.
func (c *copied) write(o *files.OpenInode, text string, off int64) {
	c.Helper()
	c.ok(c.opener.Change(o, func() error { return assert.ErrOf(o.Content().WriteAt(c.Context(), []byte(text), off)) }))
}

// writeLast writes, and closes.
func (c *copied) writeLast(o *files.OpenInode, text string, off int64) {
	c.Helper()
	c.write(o, text, off)
	c.ok(c.opener.Close(o, true))
}

// newText is a working copy of one file, f, of which an earlier revision has what the remote has.
func newText(t *testing.T, o memory.Options, conflict reconcile.Conflict, base, ours string) *copied {
	t.Helper()
	c := newCopy(t, o, conflict, "f", base)
	c.was = base
	c.ours("read f")
	if ours != base {
		c.ours("put f " + ours)
	}
	return c
}

func (c *copied) ok(err error) {
	c.Helper()
	assert.OK(c, err)
}

func at(path string) providers.Locator { return providers.MustLocator(path) }

// steps gives each line of a script, in words.
func steps(script []string, do func(verb, a, b string)) {
	for _, line := range script {
		if word := append(strings.SplitN(line, " ", 3), "", ""); line != "" {
			do(word[0], word[1], word[2])
		}
	}
}

// theirs has another writer change the remote.
func (c *copied) theirs(script ...string) {
	c.Helper()
	steps(script, func(verb, a, b string) {
		switch verb {
		case "put":
			c.ok(c.remote.Tamper(at(a), []byte(b)))
		case "rm":
			c.ok(c.remote.Tamper(at(a), nil))
		case "mkdir":
			c.ok(c.remote.TamperMkdir(at(a)))
		case "chmod":
			mode := assert.Of(strconv.ParseUint(b, 8, 32)).OK(c)
			c.ok(assert.ErrOf(c.remote.SetAttr(c.Context(), at(a), providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{
				Valid: providers.AttrMode | providers.AttrOwner | providers.AttrModTime, Mode: uint32(mode), UID: 5, GID: 6, ModTime: time.Unix(1, 0)}})))
		case "sym":
			c.ok(assert.ErrOf(c.remote.Write(c.Context(), at(b), providers.String(a), providers.WriteOptions{If: providers.Unconditional(), Kind: providers.KindSymlink})))
		}
	})
}

// info is what the remote has at a path.
func (c *copied) info(path string) providers.Info {
	c.Helper()
	return assert.Of(c.remote.Stat(c.Context(), at(path))).OK(c)
}

// find is a path, and what it leads to; 0: nothing.
func (c *copied) find(path string) (l table.Link, ino table.Ino) {
	ino = table.Root
	for _, name := range at(path).Parts() {
		l = table.Link{Dir: ino, Name: name}
		rec, _ := c.record(l)
		ino = rec.Ino
	}
	return l, ino
}

// inode is what is known of what a path leads to.
func (c *copied) inode(path string) table.Inode {
	c.Helper()
	l, _ := c.find(path)
	_, n := c.record(l)
	assert.Must(c, n != nil, path, "is not there")
	return *n
}

// ours has a program change the working copy.
func (c *copied) ours(script ...string) {
	c.Helper()
	steps(script, func(verb, a, b string) {
		switch l, x := c.find(a); verb {
		case "put":
			c.put(l, x, b)
		case "read":
			c.hydrate(x)
		case "rm", "rmdir":
			c.ok(c.update(func(tx *Tx) error { tx.Remove(l, x); return nil }))
		case "mkdir":
			c.make(l, providers.KindDir, "")
		case "sym":
			l, _ = c.find(b)
			c.make(l, providers.KindSymlink, a)
		case "chmod":
			c.ok(c.update(func(tx *Tx) error {
				mode, err := strconv.ParseUint(b, 8, 32)
				tx.Edit(x).Mode = syscall.S_IFREG | uint32(mode)
				tx.AttrChanged(x)
				return err
			}))
		case "mv":
			to, over := c.find(b)
			c.ok(c.update(func(tx *Tx) error {
				if over != 0 {
					tx.Bury(to, over, history.WhyReplaced)
				}
				tx.SetLocal(l, 0)
				tx.SetLocal(to, x)
				if over != 0 {
					tx.NameLost(over)
				}
				return nil
			}))
		default:
			c.Fatal("what is", verb)
		}
	})
}

// make gives a new inode a new name.
func (c *copied) make(l table.Link, kind providers.Kind, target string) (x table.Ino) {
	c.Helper()
	c.ok(c.update(func(tx *Tx) error {
		n := tx.InodeOf(providers.Info{Kind: kind, Size: int64(len(target))})
		n.Target, n.Loaded = target, kind == providers.KindDir
		x = tx.Alloc()
		tx.Enter(l, x, n)
		return nil
	}))
	return x
}

// put writes a file, as a program does that truncates it.
func (c *copied) put(l table.Link, x table.Ino, text string) {
	c.Helper()
	if x == 0 {
		x = c.make(l, providers.KindFile, "")
	}
	c.fill(x, text)
	c.ok(c.update(func(tx *Tx) error {
		tx.ContentChanged(x, int64(len(text)), tx.Stamp())
		tx.Written(x, tx.Inode(x))
		return nil
	}))
}

// fill has the local content of an inode be a text.
func (c *copied) fill(x table.Ino, text string) {
	c.Helper()
	f, err := c.o.Store.Open(x)
	if err != nil {
		f, err = c.o.Store.Create(x, "")
	}
	c.ok(err)
	defer f.Release()
	c.ok(f.Truncate(c.Context(), 0))
	c.ok(assert.ErrOf(f.WriteAt(c.Context(), []byte(text), 0)))
	c.ok(c.update(func(tx *Tx) error {
		n := tx.Edit(x)
		n.State, n.Size, n.Blocks = table.Whole, int64(len(text)), f.Blocks()
		return nil
	}))
}

// hydrate fetches what the remote has of an inode.
func (c *copied) hydrate(x table.Ino) {
	c.Helper()
	was := c.o.Hydrator.Whereabouts(x)
	text, _, err := providers.Fetch(c.Context(), c.remote, was.At, providers.ReadOptions{Version: was.Version})
	c.ok(err)
	locked := c.lock()
	link := locked.Inode(x).IsSymlink()
	locked.unlock()
	if !link {
		c.fill(x, string(text))
	}
	c.ok(c.update(func(tx *Tx) error {
		n := tx.Edit(x)
		n.Origin, _ = tx.OriginOf(x)
		if link {
			n.Target = string(text)
		}
		return nil
	}))
}

// all is what the remote has.
func (c *copied) all() (all []providers.Info) {
	c.Helper()
	for info, err := range providers.All(c.Context(), c.remote, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		c.ok(err)
		all = append(all, info)
	}
	return all
}

// news is how what the remote has in a directory differs from what it is known to have.
func news(tx *Tx, dir table.Ino, there []providers.Info) (all []News) {
	at, ok := tx.RemotePathOf(dir)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for i := range there {
		info := &there[i]
		if info.Locator.IsRoot() || info.Locator.Parent() != at {
			continue
		}
		l := table.Link{Dir: dir, Name: info.Locator.Name()}
		seen[l.Name] = true
		b := tx.Record(l).Remote
		if !Unchanged(tx.Record(l), info) && (b == nil || b.Kind != providers.KindDir || info.Kind != providers.KindDir) {
			all = append(all, News{Link: l, Info: info})
		}
	}
	for _, l := range remoteEntries(tx, dir) {
		if !seen[l.Name] {
			all = append(all, News{Link: l})
		}
	}
	return all
}

// load makes the names in a directory known, as a first listing does.
func (c *copied) load(dir table.Ino) {
	c.Helper()
	there := c.all()
	m := c.New(c.Context(), c.o.Provider)
	c.ok(m.Run(func(tx *Tx) error {
		m.First = !tx.HasNames(dir)
		for _, d := range news(tx, dir, there) {
			m.Take(tx, d)
		}
		tx.Edit(m.ShownAs(dir)).Loaded = true
		return nil
	}))
}

// tryPull has a merge take what the remote has now in all directories that are known.
func (c *copied) tryPull(d revision.Deletions) (Report, error) {
	m, err := c.merge(d)
	return m.Report, err
}

// merge is tryPull with all that the merge says.
func (c *copied) merge(d revision.Deletions) (*Merge, error) {
	there := c.all()
	m := c.New(c.Context(), c.o.Provider)
	m.Whole, m.Deletions = true, d
	err := m.Run(func(tx *Tx) error {
		var dirs [][]News
		for _, dir := range tx.KnownRemoteDirs() {
			dirs = append(dirs, news(tx, dir, there))
		}
		for _, all := range dirs {
			for _, d := range all {
				if _, ok := tx.RemotePathOf(d.Dir); ok {
					m.Take(tx, d)
				}
			}
		}
		return m.CheckPull(tx, revision.Held{})
	})
	return m, err
}

func (c *copied) pull() Report {
	c.Helper()
	return assert.Of(c.tryPull(revision.Gone)).OK(c)
}

// refused has the remote refuse every change of a name that is to be sent, and gives why names
// are held back.
func (c *copied) refused() (held error) {
	c.Helper()
	var names []table.Link
	locked := c.lock()
	locked.Dirty(0, func(_ uint64, l table.Link) bool {
		names = append(names, l)
		return true
	})
	locked.unlock()
	for _, l := range names {
		if err := c.PreconditionFailed(c.Context(), l, providers.ErrConflict); err != nil {
			held = err
		}
	}
	return held
}

// lines are what a program sees, each path with what is there.
func (c *copied) lines() []string {
	c.Helper()
	all := c.linesBelow("", table.Root, true)
	slices.Sort(all)
	return all
}

// linesBelow are the paths below a directory, with texts if they are wanted.
func (c *copied) linesBelow(path string, dir table.Ino, texts bool) (lines []string) {
	c.Helper()
	locked := c.lock()
	loaded := locked.Inode(dir).Loaded
	locked.unlock()
	if !loaded {
		c.load(dir)
	}
	names := map[string]table.Ino{}
	locked = c.lock()
	locked.Names(dir, "", func(name string, rec table.Name) bool {
		names[path+name] = rec.Ino
		return true
	})
	locked.unlock()
	for name, x := range names {
		locked := c.lock()
		n := locked.Inode(x)
		locked.unlock()
		switch {
		case n == nil:
		case n.IsDir():
			lines = append(append(lines, name+"/"), c.linesBelow(name+"/", x, texts)...)
		case !texts:
			lines = append(lines, name)
		default:
			c.ok(assert.ErrOf(c.readLocal(c.Context(), x, func(r io.Reader) error {
				lines = append(lines, name+map[bool]string{false: ": ", true: " -> "}[n.IsSymlink()]+string(assert.Of(io.ReadAll(r)).OK(c)))
				return nil
			})))
		}
	}
	return lines
}

// sees wants a program to see this.
func (c *copied) sees(want ...string) {
	c.Helper()
	slices.Sort(want)
	assert.Must(c, slices.Equal(c.lines(), want), "local is", strings.Join(c.lines(), "\n\t"), "want", strings.Join(want, "\n\t"))
}

// sendable checks that what differs can be sent: of each name it is known what the remote has, and
// where nothing is to be sent both sides are the same.
func (c *copied) sendable() {
	c.Helper()
	there, theirs := map[providers.Locator]*providers.Info{}, []string{}
	for _, info := range c.all() {
		there[info.Locator] = &info
		if info.Kind == providers.KindDir {
			theirs = append(theirs, info.Locator.String()+"/")
			continue
		}
		text, got, err := providers.Fetch(c.Context(), c.remote, info.Locator, providers.ReadOptions{})
		c.ok(err)
		theirs = append(theirs, info.Locator.String()+map[bool]string{false: ": ", true: " -> "}[got.Kind == providers.KindSymlink]+string(text))
	}
	slices.Sort(theirs)
	ours := c.lines()
	locked := c.lock()
	defer locked.unlock()
	for dirs := []table.Ino{table.Root}; len(dirs) > 0; dirs = dirs[1:] {
		locked.Names(dirs[0], "", func(name string, rec table.Name) bool {
			l := table.Link{Dir: dirs[0], Name: name}
			if at, ok := locked.RemotePath(l); ok {
				dir := rec.Remote != nil && rec.Remote.Kind == providers.KindDir && there[at] != nil && there[at].Kind == providers.KindDir
				assert.True(c, dir || Unchanged(table.Name{Remote: rec.Remote}, there[at]), "the remote is known to have", rec.Remote, "at", at, "and has", there[at])
			}
			for _, x := range []table.Ino{rec.Ino, remoteIno(rec)} {
				if n := locked.Inode(x); n != nil && n.IsDir() && !slices.Contains(dirs, x) {
					dirs = append(dirs, x)
				}
			}
			return true
		})
	}
	for _, x := range locked.Orphans() {
		assert.True(c, locked.o.Open.IsOpen(locked.View, x) || len(locked.Inode(x).RemoteLinks) > 0, "an inode without a name is left", x)
	}
	dirty := 0
	locked.Dirty(0, func(uint64, table.Link) bool { dirty++; return true })
	assert.Equal(c, dirty > 0, !slices.Equal(ours, theirs), "something is to be sent,", dirty, "names; local is", ours, "the remote has", theirs)
}

// short is what the name of a conflict copy has of a text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// conflictCopies are how many conflict copies there are.
func (c *copied) conflictCopies() (n int) {
	for _, line := range c.lines() {
		if name, _, _ := strings.Cut(line, ": "); strings.Contains(name, ".conflict-") && !strings.Contains(strings.TrimSuffix(name, "/"), "/") {
			n++
		}
	}
	return n
}

// ended is how often the history has that f ended for a reason.
func (c *copied) ended(why string) (n int) {
	c.Helper()
	for _, v := range assert.Of(c.o.Versions.Log(c.Context(), past.LogFilter{Path: "f"})).OK(c) {
		if v.Change == history.Ended && v.Why == why {
			n++
		}
	}
	return n
}
