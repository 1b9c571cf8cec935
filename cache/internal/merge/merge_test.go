package merge

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"slices"
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

// silent is a kernel that is told nothing.
type silent struct{ fs.Notifier }

func (silent) EntryChanged(fs.Ino, string)               {}
func (silent) EntryAppeared(fs.Ino, string, func() bool) {}
func (silent) AttrChanged(fs.Ino)                        {}
func (silent) ContentChanged(fs.Ino)                     {}
func (silent) Wrote(string)                              {}
func (silent) Deleted(string)                            {}

// copied is a working copy with one file, f, of which the remote has a version.
type copied struct {
	*testing.T
	*Merger
	remote *memory.Provider
	x      table.Ino      // has the name f
	base   providers.Info // what x began from
	was    string         // the text of that, where an earlier revision has it; "": none does
	told   []string
	calls  func(*providers.Call) error // before a call of the remote
	by     files.Caller
}

var f = table.Link{Dir: table.Root, Name: "f"}

func newCopy(t *testing.T, o memory.Options, conflict reconcile.Conflict, base, ours string) *copied {
	t.Helper()
	c := &copied{T: t, remote: memory.New(o), was: base, calls: func(*providers.Call) error { return nil }}
	caps, log, open := c.remote.Capabilities(), slog.New(slog.DiscardHandler), files.NewOpenSet()
	store := assert.Of(content.Open(t.TempDir(), content.Options{Floor: -1, Ballast: -1})).OK(t)
	t.Cleanup(func() { assert.OK(t, store.Close()) })
	tab := assert.Of(table.Open("/merge", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { assert.OK(t, tab.Close()) })
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
		Content: store, Notifier: func() fs.Notifier { return silent{} }, Now: time.Now, Log: log}
	jobs := upload.NewJobs()
	c.Merger = NewMerger(Options{
		Tree: tr, Side: side, Store: store, Open: open, History: keeper, Provider: asked, Capabilities: caps, Conflict: conflict,
		Versions: past.New(past.Options{Tree: tr, Store: store, Keeper: keeper, Remote: asked, Context: t.Context()}),
		Hydrator: files.NewHydrator(files.HydratorOptions{Tree: tr, Now: time.Now, Patience: time.Minute}),
		Executor: upload.NewExecutor(upload.ExecutorOptions{Provider: asked, Tree: tr, Log: log}), Jobs: &jobs, Head: revision.NewHeadLock(),
		DirAttrs: func() bool { return false }, Context: t.Context(),
		Volume: Volume{
			Update: func(do func(*local.Tx, upload.Tx) error) error {
				return tr.Update(func(tx *tree.Tx) error {
					return do(&local.Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &c.by)}, upload.Tx{Tx: tx})
				}, nil)
			},
			Retry:  func(ctx context.Context, do func(context.Context) error) error { return do(ctx) },
			Report: func(_, path string, err error) { c.told = append(c.told, path+": "+err.Error()) },
		},
		Past: Past{PreviousHead: func(context.Context, providers.Locator, providers.Version) (io.ReadCloser, error) {
			if c.was == "" {
				return nil, iofs.ErrNotExist
			}
			return io.NopCloser(strings.NewReader(c.was)), nil
		}},
		Guard: Guard{Guard: &massdelete.Guard{}, Check: func(*tree.View, string, int) error { return nil }, PullWhole: func(*tree.View) {}, IsPulling: func(*tree.View) bool { return false }},
		Heard: func(*tree.View, table.Link, string) bool { return false },
	})
	c.base = c.write(base)
	made := assert.Of(files.Make(t.Context(), tr, store, "f", strings.NewReader(ours))).OK(t)
	c.x = made.Ino
	assert.OK(t, c.update(func(tx *Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true})
		n := tx.InodeOf(c.base)
		n.State, n.Size, n.Blocks, n.ContentVersion, n.AttrGen = table.Whole, made.Size, made.Blocks, 1, 1
		tx.Put(c.x, n)
		tx.Tx.Tx.SetLocal(f, c.x, false, false)
		tx.SetRemote(f, &table.Remote{Ino: c.x, Kind: providers.KindFile, Version: c.base.Version, Digest: c.base.Digest, ContentVersion: 1, AttrGen: 1})
		if ours != base {
			tx.ContentChanged(c.x, made.Size, tx.Stamp())
		}
		return nil
	}))
	return c
}

func at(c *copied) providers.Locator { return assert.Of(providers.ParseLocator("f")).OK(c) }

// write has the remote have a text.
func (c *copied) write(text string) providers.Info {
	c.Helper()
	o := providers.WriteOptions{If: providers.IfAbsent()}
	if !c.base.Version.IsZero() {
		o.If = providers.IfVersion(c.base.Version)
	}
	return assert.Of(c.remote.Write(c.Context(), at(c), providers.String(text), o)).OK(c)
}

// texts are the names, each with its text.
func (c *copied) texts() (all []string) {
	v := c.lock()
	names := map[string]table.Ino{}
	v.Names(table.Root, "", func(name string, rec table.Name) bool {
		names[name] = rec.Ino
		return true
	})
	v.unlock()
	for name, ino := range names {
		if ino == 0 {
			continue
		}
		_, err := c.readLocal(c.Context(), ino, func(r io.Reader) error {
			if name != "f" {
				name = "copy"
			}
			all = append(all, name+": "+string(assert.Of(io.ReadAll(r)).OK(c)))
			return nil
		})
		assert.OK(c, err, name)
	}
	slices.Sort(all)
	return all
}

// A file that both sides changed becomes what the policy says: the text of both, or two files, or
// ours until a person decides. What has no base, or is no text, is never merged.
func TestMergeTexts(t *testing.T) {
	const base, ours, theirs = "1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"
	errDown := fmt.Errorf("read f: %w", providers.ErrUnavailable)
	for what, c := range map[string]struct {
		policy             reconcile.Conflict
		base, ours, theirs string
		lost               bool  // the base is nowhere any more
		down               error // of each read of theirs
		want               string
		told               string
		conflicts          int
	}{
		"other lines": {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"the same":    {policy: reconcile.Combine, base: base, ours: ours, theirs: ours, want: "[f: " + ours + "]"},
		"they have all of it": {policy: reconcile.Combine, base: base, ours: ours, theirs: "one\n2\n3\n4\nfive\n",
			want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"ours has all of it": {policy: reconcile.Combine, base: base, ours: "one\n2\n3\n4\nfive\n", theirs: theirs, want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"the same line":      {policy: reconcile.Combine, base: base, ours: ours, theirs: "eins\n2\n3\n4\n5\n", want: "[f: " + ours + "]", conflicts: 1},
		"between markers": {policy: reconcile.Markers, base: "1\n", ours: "one\n", theirs: "eins\n", told: "between conflict markers",
			want: "[f: <<<<<<< ours\none\n=======\neins\n>>>>>>> theirs\n]", conflicts: 1},
		"no base":                 {policy: reconcile.Markers, base: base, ours: ours, theirs: theirs, lost: true, want: "[copy: " + ours + " f: " + theirs + "]", conflicts: 1},
		"no text":                 {policy: reconcile.Combine, base: base, ours: "one\x00\n2\n3\n4\n5\n", theirs: theirs, want: "[f: one\x00\n2\n3\n4\n5\n]", conflicts: 1},
		"not combined":            {policy: reconcile.Split, base: base, ours: ours, theirs: theirs, want: "[copy: " + ours + " f: " + theirs + "]", told: "the local version was saved as", conflicts: 1},
		"down":                    {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, down: errDown, want: "[f: " + ours + "]"},
		"changed again meanwhile": {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, down: providers.ErrConflict, want: "[f: " + ours + "]", conflicts: 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{}, c.policy, c.base, c.ours)
			if c.lost {
				w.was = ""
			}
			info := w.write(c.theirs)
			w.calls = func(call *providers.Call) error {
				if call.Method == providers.MethodRead {
					return c.down
				}
				return nil
			}
			m := w.New(t.Context(), w.o.Provider)
			m.Whole = true
			err := m.Run(func(tx *Tx) error { m.Take(tx, News{Link: f, Info: &info}); return nil })
			assert.OK(t, err)
			w.calls = func(*providers.Call) error { return nil }
			assert.Equal(t, fmt.Sprint(w.texts()), c.want, "texts")
			assert.True(t, c.told == "" || strings.Contains(strings.Join(w.told, "\n"), c.told), "a person was told", w.told)
			rec, _ := w.record(f)
			held := c.policy == reconcile.Combine && c.conflicts > 0
			assert.Equal(t, rec.Held != nil && rec.Held.Conflict, held, "held back")
			assert.Equal(t, len(m.Report.Conflicts), c.conflicts, "conflicts", m.Report.Conflicts)
			var made []table.Ino
			assert.OK(t, w.o.Store.Each(func(ino uint64, _ string, _ int64, _ bool) { made = append(made, ino) }))
			assert.True(t, len(made) <= 3, "content files are left over", made)
		})
	}
}

// What the answer to a read says of attributes that a listing left out is taken for the state that
// it is of, but for what was changed locally, and not where a change of ours may have overtaken it.
func TestAttrsFetched(t *testing.T) {
	const fetched, changed = 0o100600, 0o100711
	for what, c := range map[string]struct {
		change func(tx *Tx, n *table.Inode)
		info   func(*providers.Info)
		want   error
		mode   uint32 // 0: as it was
		stays  bool   // unknown
	}{
		"as they were":  {mode: fetched},
		"known already": {change: func(_ *Tx, n *table.Inode) { n.AttrsUnknown = false }},
		"changed locally": {change: func(tx *Tx, n *table.Inode) {
			n.Mode = changed
			n.AttrGen++
		}, mode: changed},
		"and sent meanwhile": {change: func(tx *Tx, n *table.Inode) {
			rec := tx.Record(f)
			rec.Remote.AttrGen++
			tx.SetName(f, rec)
		}, want: ErrOvertaken, stays: true},
		"of another version": {info: func(i *providers.Info) { i.Version.ETag = "another" }, stays: true},
		"of a link":          {info: func(i *providers.Info) { i.Kind = providers.KindSymlink }, want: files.ErrVersionGone, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{Without: providers.Capabilities{ListComplete: true}}, reconcile.Split, "1", "1")
			assert.OK(t, w.update(func(tx *Tx) error { tx.Edit(w.x).AttrsUnknown = true; return nil }))
			asked := w.AttrGen(w.x, at(w))
			was := uint32(0)
			assert.OK(t, w.update(func(tx *Tx) error {
				n := tx.Edit(w.x)
				was = n.Mode
				if c.change != nil {
					c.change(tx, n)
				}
				return nil
			}))
			info, mode := w.base, uint32(fetched&0o777)
			info.Attr.Mode, info.Attr.Valid = mode, info.Attr.Valid|providers.AttrMode
			if c.info != nil {
				c.info(&info)
			}
			assert.Is(t, w.AttrsFetched(w.x, at(w), asked, info), c.want)
			v := w.lock()
			defer v.unlock()
			n := v.Inode(w.x)
			if c.mode != 0 {
				was = c.mode
			}
			assert.Equal(t, n.Mode, was, "mode")
			assert.Equal(t, n.AttrsUnknown, c.stays, "attributes are unknown")
		})
	}
}
