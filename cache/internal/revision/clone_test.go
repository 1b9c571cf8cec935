package revision_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// clone is a working copy of a clone, in memory, whose files are texts in the root. Of a name
// that both sides have changed its own text stays.
type clone struct {
	*testing.T
	*revision.Follower
	remote  *memoryrepo.Remote
	repo    *memoryrepo.Repository
	tree    *tree.Tree
	texts   map[table.Ino]string
	backlog *revision.Backlog
	pusher  *revision.Pusher

	before func(providers.Method) error // is told of each call before it is made, and may keep it from that
	after  func(providers.Method) error // and after, and may lose the answer
	told   []string                     // reports
	disk   *vfs.MemFS
	halts  error       // what Check says of deletions that are not kept
	passed int         // branches that were begun
	work   chan func() // what is to run in the background
	closed bool
}

func newClone(t *testing.T, change ...func(*revision.Options)) *clone {
	t.Helper()
	disk := vfs.NewCrashableMem()
	tab := assert.Of(table.Open("/tree", table.Options{FS: disk, Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	c := &clone{T: t, disk: disk, remote: memoryrepo.NewRemote(nil), tree: tree.New(tab, tree.Options{}), texts: map[table.Ino]string{},
		before: passes, after: passes, work: make(chan func(), 1)}
	c.theirs("a", "1")
	c.repo = memoryrepo.NewRepository(c.remote, "", memory.Options{})
	o := revision.Options{Tree: c.tree, Head: revision.NewHeadLock(), Host: c, Chores: chores.New(chores.Options{Now: time.Now, Context: t.Context(),
		Halted: errors.New("halted"), Told: func(_ string, err error) { c.told = append(c.told, err.Error()) }, Log: slog.New(slog.DiscardHandler)}),
		Names: c, Now: time.Now,
		Combine: func(_, _, _ []byte, _ bool) ([]byte, bool) { return nil, false }}
	o.Provider = providers.Wrap(c.repo, providers.WrapOptions{Around: func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		if err := c.before(call.Method); err != nil {
			return err
		}
		if err := next(ctx); err != nil {
			return err
		}
		return c.after(call.Method)
	}})
	for _, f := range change {
		f(&o)
	}
	c.backlog = revision.NewBacklog(revision.BacklogOptions{CanPush: true, Empty: func() {}, Now: time.Now})
	c.Follower = revision.NewFollower(o, c.backlog)
	c.pusher = revision.NewPusher(revision.PusherOptions{Follower: c.Follower, Copy: copied{c}, Context: t.Context()})
	c.does(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true}) })
	assert.Of(c.Hold(t.Context())).OK(t).Release()
	return c
}

func passes(providers.Method) error { return nil }

func (c *clone) does(f func(*tree.Tx)) {
	c.Helper()
	assert.OK(c, c.tree.Update(func(tx *tree.Tx) error { f(tx); return nil }, nil))
}

func (c *clone) at(name string) providers.Locator {
	return assert.Of(providers.ParseLocator(name)).OK(c)
}

// theirs has others write a file, or with "" delete it, and push that.
func (c *clone) theirs(name, text string) {
	c.Helper()
	var data []byte
	if text != "" {
		data = []byte(text)
	}
	assert.OK(c, c.remote.Tamper("main", c.at(name), data))
}

// ours writes a file, or with "" deletes it, which is dirty then.
func (c *clone) ours(name, text string) {
	c.Helper()
	c.does(func(tx *tree.Tx) {
		ino := table.Ino(0)
		if text != "" {
			ino = c.put(tx, providers.KindFile, text)
		}
		tx.SetLocal(table.Link{Dir: table.Root, Name: name}, ino, false, false)
	})
}

func (c *clone) put(tx *tree.Tx, kind providers.Kind, text string) table.Ino {
	ino := tx.Alloc()
	tx.Put(ino, &table.Inode{Mode: syscall.S_IFREG, State: table.Whole, Size: int64(len(text)), ContentVersion: 1, AttrGen: 1})
	c.texts[ino] = text
	return ino
}

// dirty are the names that differ.
func (c *clone) dirty() (all []table.Link) {
	v := c.tree.Lock()
	defer c.tree.Unlock()
	v.Dirty(0, func(_ uint64, l table.Link) bool { all = append(all, l); return true })
	return all
}

// commit commits all that is dirty, if anything is.
func (c *clone) commit() int {
	c.Helper()
	v := c.tree.Lock()
	set := providers.ChangeSet{Merge: revision.Merging(v)}
	c.tree.Unlock()
	links := c.dirty()
	for _, l := range links {
		v := c.tree.Lock()
		rec := v.Record(l)
		c.tree.Unlock()
		change := providers.Change{Locator: c.at(l.Name), If: providers.Unconditional(), Delete: rec.Ino == 0}
		if !change.Delete {
			change.Body = providers.String(c.texts[rec.Ino])
		}
		set.Changes = append(set.Changes, change)
	}
	if len(links) == 0 && set.Merge == "" {
		return 0
	}
	made := assert.Of(c.repo.Commit(c.Context(), set)).OK(c)
	c.does(func(tx *tree.Tx) {
		for i, l := range links {
			rec := tx.Record(l)
			if rec.Ino == 0 {
				tx.SetRemote(l, nil)
				continue
			}
			tx.SetRemote(l, &table.Remote{Ino: rec.Ino, Kind: providers.KindFile, Version: made.Entries[i].Version, ContentVersion: 1, AttrGen: 1})
		}
		revision.SetSynced(tx, made.Revision, "")
		revision.SetMerging(tx, "")
		assert.OK(c, c.backlog.Add(tx, 1))
	})
	return len(links)
}

func (c *clone) pull() revision.PullReport {
	c.Helper()
	return assert.Of(c.Pull(waiting{c.Context()})).OK(c)
}

func (c *clone) push() revision.PushReport {
	c.Helper()
	return assert.Of(c.pusher.Push(c.Context(), providers.PushOptions{})).OK(c)
}

// sees is what programs see, and has is what a branch of the remote has.
func (c *clone) sees(want string) {
	c.Helper()
	var got []string
	v := c.tree.Lock()
	v.Names(table.Root, "", func(name string, rec table.Name) bool {
		if rec.Ino != 0 {
			got = append(got, name+"="+c.texts[rec.Ino])
		}
		return true
	})
	c.tree.Unlock()
	slices.Sort(got)
	assert.Equal(c, strings.Join(got, " "), want)
}

func (c *clone) has(branch, want string) {
	c.Helper()
	var got []string
	other := memoryrepo.NewRepository(c.remote, branch, memory.Options{})
	for info, err := range providers.All(c.Context(), other, providers.Locator{}, providers.ListOptions{}) {
		assert.OK(c, err)
		text, _, err := providers.Fetch(c.Context(), other, info.Locator, providers.ReadOptions{})
		assert.OK(c, err)
		got = append(got, info.Locator.String()+"="+string(text))
	}
	slices.Sort(got)
	assert.Equal(c, strings.Join(got, " "), want, "the remote's", branch)
}

// unpushed is how many commits are to be pushed; -1: not even a push is owed.
func (c *clone) unpushed(want int, what ...any) {
	c.Helper()
	v := c.tree.Lock()
	defer c.tree.Unlock()
	got := -1
	if u := revision.UnpushedOf(v); u != nil {
		got = u.Commits
	}
	assert.Equal(c, got, want, append([]any{"unpushed"}, what...)...)
}

// waiting never gives up.
type waiting struct{ context.Context }

func (waiting) Moved() {}

// Update implements revision.Host, as all to CompareAll but for the last ones.
func (c *clone) Update(do func(*tree.Tx) error) error { return c.tree.Update(do, nil) }

func (c *clone) Patiently(ctx context.Context, do func(revision.Waiting) error) error {
	return do(waiting{ctx})
}

func (c *clone) Retry(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

func (c *clone) Resolve(context.Context, revision.Moving) error { return nil }

// CompareAll implements revision.Names, as what follows does.
func (c *clone) CompareAll(w revision.Waiting, p providers.Provider) (revision.Comparison, error) {
	known := map[string]*providers.Info{}
	v := c.tree.Lock()
	v.Names(table.Root, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil {
			known[name] = nil
		}
		return true
	})
	c.tree.Unlock()
	for info, err := range providers.All(w, p, providers.Locator{}, providers.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		known[info.Locator.Name()] = &info
	}
	var diffs []providers.Difference
	for name, info := range known {
		diffs = append(diffs, providers.Difference{Locator: c.at(name), Is: info})
	}
	return c.Compare(w, p, diffs)
}

func (c *clone) Compare(_ revision.Waiting, p providers.Provider, diffs []providers.Difference) (revision.Comparison, error) {
	return &comparison{c, p, diffs}, nil
}

func (c *clone) List(revision.Waiting, revision.Held, table.Ino) error { return nil }

func (c *clone) Fetch(revision.Waiting, table.Ino, providers.Kind) error { return nil }

func (c *clone) Passed(*tree.Tx) { c.passed++ }

type comparison struct {
	*clone
	p     providers.Provider
	diffs []providers.Difference
}

func (c *comparison) Check(_ revision.Held, d revision.Deletions) error {
	if d == revision.Kept {
		return nil
	}
	return c.halts
}

func (c *comparison) End() {}

func (c *comparison) Apply(_ revision.Held, to providers.Revision, d revision.Deletions) (r revision.PullReport, err error) {
	texts := map[string]string{}
	for _, d := range c.diffs {
		if d.Is != nil {
			text, _, err := providers.Fetch(c.Context(), c.p, d.Locator, providers.ReadOptions{})
			if err != nil {
				return r, err
			}
			texts[d.Locator.Name()] = string(text)
		}
	}
	c.does(func(tx *tree.Tx) {
		for _, d := range c.diffs {
			l := table.Link{Dir: table.Root, Name: d.Locator.Name()}
			var b *table.Remote
			if d.Is != nil {
				b = &table.Remote{Ino: c.put(tx, d.Is.Kind, texts[l.Name]), Kind: d.Is.Kind, Version: d.Is.Version, ContentVersion: 1, AttrGen: 1}
			}
			isOurs := tx.IsDirty(l)
			tx.SetRemote(l, b)
			if isOurs {
				r.Conflicts = append(r.Conflicts, l.Name)
				continue
			}
			ino := table.Ino(0)
			if b != nil {
				ino = b.Ino
			}
			tx.SetLocal(l, ino, false, false)
			r.Changed++
		}
		revision.SetSynced(tx, to, "")
	})
	return r, nil
}

// copied is a clone as revision.Copy.
type copied struct{ c *clone }

func (c copied) Pull(ctx context.Context) (revision.PullReport, error) {
	return c.c.Pull(waiting{ctx})
}

func (c copied) Recommit(context.Context) (pending.Report, error) {
	return pending.Report{Changes: c.c.commit()}, nil
}

func (c copied) Go(f func()) { c.c.work <- f }

func (c copied) IsClosed(*tree.View) bool { return c.c.closed }
