package past

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// world is a working copy with its past.
type world struct {
	*historytest.Copy
	past    *Past
	commits commits
	local   string // a name that never goes to the remote
}

func newWorld(t *testing.T, script ...string) *world {
	t.Helper()
	return budgeted(t, history.Budget{}, script...)
}

// budgeted is a world whose history has a budget.
func budgeted(t *testing.T, b history.Budget, script ...string) *world {
	t.Helper()
	w := &world{Copy: historytest.New(t, history.Options{Budget: b}), commits: commits{Provider: memory.New(memory.Options{}), all: map[providers.Revision]commit{}}}
	w.past = New(Options{Tree: w.Tree, Store: w.Store, Keeper: w.Keeper, Remote: &w.commits, Volume: volume{w}, Context: t.Context()})
	w.Do(script...)
	return w
}

// volume is a world as its past needs it. All names are known.
type volume struct{ *world }

func (v volume) Find(_ context.Context, path string) (table.Link, table.Ino, error) {
	return v.Copy.Find(path)
}

func (v volume) Load(context.Context, table.Ino) error { return nil }

func (v volume) Open(_ context.Context, ino table.Ino) (io.ReadCloser, int64, error) {
	return v.Content(ino)
}

func (v volume) Readlink(_ context.Context, ino table.Ino) (string, error) {
	locked := v.Tree.Lock()
	defer v.Tree.Unlock()
	if n := locked.Inode(ino); n != nil {
		return n.Target, nil
	}
	return "", history.ErrNotKept
}

// Differing are all paths: any of them may.
func (v volume) Differing(_ context.Context, r providers.Revision) ([]string, error) {
	paths := append(v.Files(), v.commits.all[r].files...)
	for i, line := range paths {
		path, _, _ := strings.Cut(line, ": ")
		paths[i], _, _ = strings.Cut(path, " -> ")
	}
	return paths, nil
}

func (v volume) StaysLocal(_ *tree.View, l table.Link, _ *table.Inode) bool { return l.Name == v.local }

// changes are a world as what is restored in it needs it.
type changes struct{ *world }

func (c changes) MakeDir(l table.Link) (ino table.Ino, err error) {
	err = c.Update(func(tx history.Tx) error {
		if ino = tx.Record(l).Ino; ino != 0 {
			if !tx.Inode(ino).IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		}
		ino = tx.Alloc()
		c.Copy.Enter(tx, l, ino, &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true})
		tx.Made(l, ino, history.WhyRestored)
		return nil
	})
	return ino, err
}

func (c changes) Enter(l table.Link, it Item, made files.Made) error {
	return c.Update(func(tx history.Tx) error {
		n := &table.Inode{Mode: it.Mode, Target: it.Target}
		old := tx.Record(l).Ino
		if old != 0 {
			if tx.Inode(old).IsDir() {
				return syscall.EISDIR
			}
			c.Drop(tx, l, history.WhyRestored)
		}
		if made.Ino == 0 {
			made.Ino = tx.Alloc()
		} else {
			n.State, n.Size, n.Blocks = table.Whole, made.Size, made.Blocks
		}
		c.Copy.Enter(tx, l, made.Ino, n)
		if n.IsRegular() {
			tx.Version(tx.Inode(made.Ino), made.Ino, history.WhyRestored)
		} else {
			tx.Made(l, made.Ino, history.WhyRestored)
		}
		return nil
	})
}

func (c changes) Remove(l table.Link, it Item) (done bool, err error) {
	err = c.Update(func(tx history.Tx) error {
		if done = tx.Record(l).Ino == it.Ino; !done {
			return nil
		}
		if tx.Inode(it.Ino).Entries > 0 {
			return syscall.ENOTEMPTY
		}
		c.Drop(tx, l, history.WhyRemoved)
		return nil
	})
	return done && err == nil, err
}

func (c changes) Sent(context.Context, []string) error { return nil }

// commits are a remote that keeps revisions, or the versions that its files had.
type commits struct {
	providers.Provider
	order []providers.Revision
	all   map[providers.Revision]commit

	had     map[string]string // by path
	refuses error             // instead of what it had
}

func (c *commits) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	data, ok := c.had[l.String()]
	switch {
	case !o.Past:
		return c.Provider.Read(ctx, l, o)
	case c.refuses != nil:
		return providers.Content{}, providers.Fail("commits", providers.MethodRead, l, c.refuses, c.refuses)
	case !ok:
		return providers.Content{}, providers.ErrNotExist
	}
	return providers.Content{Info: providers.Info{Locator: l, Size: o.Version.Size, Version: o.Version}, Body: io.NopCloser(strings.NewReader(data))}, nil
}

// commit is what a revision has.
type commit struct {
	snapshot
	files  []string
	parent []providers.Revision
}

// snapshot is a tree in which the same content has the same version.
type snapshot struct{ *memory.Provider }

func (s snapshot) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	info, err := s.Provider.Stat(ctx, l)
	info.Version = providers.Version{ETag: info.Digest, Size: info.Size}
	return info, err
}

func (s snapshot) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	c, err := s.Provider.Read(ctx, l, o)
	c.Info.Version = providers.Version{ETag: c.Info.Digest, Size: c.Info.Size}
	return c, err
}

func (snapshot) Close() error { return nil }

func (c *commits) Capabilities() providers.Capabilities {
	caps := c.Provider.Capabilities()
	caps.Abilities |= providers.AbilitySnapshot
	return caps
}

func (c *commits) At(_ context.Context, r providers.Revision) (providers.Provider, error) {
	one, ok := c.all[r]
	if !ok {
		return nil, providers.ErrNotExist
	}
	return one, nil
}

func (c *commits) Find(_ context.Context, name string) (providers.Found, error) {
	one, ok := c.all[providers.Revision(name)]
	if !ok {
		return providers.Found{}, providers.ErrNotExist
	}
	return providers.Found{Revision: providers.Revision(name), Parents: one.parent}, nil
}

// commit has the remote take all that is there, as a revision of a name.
func (w *world) commit(name string) {
	w.Helper()
	r, to := providers.Revision(name), memory.New(memory.Options{})
	one := commit{snapshot{to}, w.Files(), nil}
	if len(w.commits.order) > 0 {
		one.parent = w.commits.order[len(w.commits.order)-1:]
	}
	for _, line := range one.files {
		o := providers.WriteOptions{If: providers.IfAbsent()}
		path, data, isFile := strings.Cut(line, ": ")
		if isFile {
			o.Attr = providers.Attr{Valid: providers.AttrMode, Mode: w.Inode(path).Mode & 0o7777}
		} else if path, data, isFile = strings.Cut(line, " -> "); isFile {
			o.Kind = providers.KindSymlink
		}
		if isFile { // as in git, a directory has something in it
			assert.OK(w, assert.ErrOf(to.Write(w.Context(), providers.MustLocator(path), providers.String(data), o)))
		}
	}
	w.commits.order, w.commits.all[r], w.Head = append(w.commits.order, r), one, r
	w.Change(func(tx history.Tx) {
		for _, line := range one.files {
			path, _, isFile := strings.Cut(line, ": ")
			if !isFile {
				continue
			}
			l, ino := w.Place(tx, path)
			info := assert.Of(one.Stat(w.Context(), providers.MustLocator(path))).OK(w)
			n := tx.Edit(ino)
			n.Origin = table.Origin{Version: info.Version, ContentVersion: n.ContentVersion}
			tx.SetRemote(l, tree.RemoteOf(info, ino, n))
		}
		names := map[table.Link]bool{}
		tx.Scan(history.Prefix, "", func(_ string, value []byte) bool {
			of := history.Decode(value)
			names[table.Link{Dir: of.Dir, Name: of.Name}] = true
			return true
		})
		for l := range names {
			history.NoteCommit(tx, l, ^uint64(0), r)
		}
	})
}

func (w *world) restore(o RestoreOptions) RestoreReport {
	w.Helper()
	return assert.Of(w.past.Restore(w.Context(), changes{w}, o)).OK(w)
}

// goesBack restores everything, after which nothing differs.
func (w *world) goesBack(s State, want ...string) {
	w.Helper()
	assert.Equal(w, len(w.restore(RestoreOptions{To: s}).Skipped), 0, "skipped")
	w.Has(want...)
	assert.Equal(w, w.diff(DiffOptions{From: s}), "", "then it differs")
}

func (w *world) diff(o DiffOptions) string {
	w.Helper()
	return assert.Of(w.past.Diff(w.Context(), o)).OK(w)
}

func (w *world) versions(f LogFilter) []Version {
	w.Helper()
	return assert.Of(w.past.Log(w.Context(), f)).OK(w)
}

// content is that of a version, or "-".
func (w *world) content(id string) string {
	w.Helper()
	r, size, err := w.past.Content(id)
	if err != nil {
		assert.Is(w, err, history.ErrNotKept)
		return "-"
	}
	data := historytest.ReadAll(w.T, r, err)
	assert.Equal(w, int64(len(data)), size, "bytes of version", id)
	return data
}

// logs wants a history of a path, the newest first.
func (w *world) logs(path string, want ...string) {
	w.Helper()
	var lines []string
	for _, ver := range w.versions(LogFilter{Path: path}) {
		line := ver.Change + " " + ver.Why + " " + ver.Path
		if ver.Was != "" {
			line += " was " + ver.Was
		}
		if ver.From != "" {
			line += " from " + ver.From
		}
		lines = append(lines, line+": "+w.content(ver.ID))
	}
	assert.Equal(w, strings.Join(lines, "\n"), strings.Join(want, "\n"), "the history of", path)
}

func (w *world) versionOf(path, content string) State {
	w.Helper()
	for _, ver := range w.versions(LogFilter{Path: path}) {
		if w.content(ver.ID) == content {
			return State{Version: ver.ID}
		}
	}
	w.Fatalf("no version of %s is %q", path, content)
	return State{}
}

// lose has content given up that the history keeps of a path.
func (w *world) lose(path, content string) {
	w.Helper()
	id, _ := parseID(w.versionOf(path, content).Version)
	w.Change(func(tx history.Tx) {
		r := history.Get(tx, id)
		id = r.KeptID(id)
		history.GiveUp(tx, id, tx.Get(history.KeptKey(id)))
	})
}
