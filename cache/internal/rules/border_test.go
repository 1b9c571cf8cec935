package rules

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// border is that of a remote without symbolic links, which ignore files and an exclusion of
// "out" count for. woken counts.
func (w *world) border(woken *int) *Border {
	return &Border{Exclude: &excludes{pattern: "out"}, Ignores: w.g, Ignoring: true, Wake: func() { *woken++ }}
}

// A name stays local when it is excluded, of a kind that the remote cannot have, or known
// to be ignored while the remote has none like it.
func TestStays(t *testing.T) {
	w := newWorld(t)
	w.makes(".ignore", "d/", "out/", "tracked.o=", "d/.ignore")
	w.learns("", "*.o\n")
	woken := 0
	b := w.border(&woken)
	for name, c := range map[string]struct {
		mode uint32
		want bool
	}{
		"f": {syscall.S_IFREG, false}, "f.o": {syscall.S_IFREG, true}, "tracked.o": {syscall.S_IFREG, false}, "out/f": {syscall.S_IFREG, true},
		"link": {syscall.S_IFLNK, true}, "pipe": {syscall.S_IFIFO, true}, "e": {syscall.S_IFDIR, false},
		"d/f.o": {syscall.S_IFREG, false}, // rules of below that were not read may take it back
	} {
		w.do(func(tx *tree.Tx) {
			assert.Equal(t, b.Stays(tx, w.link(name), &table.Inode{Mode: c.mode}), c.want, name)
		})
	}
	assert.Equal(t, woken, 1, "rules were wanted")
	w.see(func(v *tree.View) { assert.Slice(t, w.paths(w.g.Wanted(v)), []string{"/d"}, "wanted") })
	b.Symlinks, b.Exclude, b.Ignoring = true, nil, false
	w.do(func(tx *tree.Tx) {
		for name, mode := range map[string]uint32{"f.o": syscall.S_IFREG, "out/f": syscall.S_IFREG, "link": syscall.S_IFLNK} {
			assert.False(t, b.Stays(tx, w.link(name), &table.Inode{Mode: mode}), name, "stays without a rule")
		}
	})
}

// What would have no source any more does not cross the border, nor a directory of which
// the remote has something.
func TestMayCross(t *testing.T) {
	w := newWorld(t)
	w.makes(".ignore", "whole", "away", "d/=", "new/")
	w.learns("", "*.o\n")
	w.do(func(tx *tree.Tx) {
		tx.Edit(w.inos["whole"]).State = table.Whole
		tx.Edit(w.inos["away"]).Size = 1
	})
	woken := 0
	b := w.border(&woken)
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"whole", "out", true}, {"whole", "f.o", true}, {"away", "f", true}, {"away", "out", false}, {"away", "f.o", false},
		{"d", "e", true}, {"d", "d.o", false}, {"d", "out", false}, {"new", "new.o", true}, {"new", "out", false},
	} {
		w.do(func(tx *tree.Tx) {
			assert.Equal(t, b.MayCross(tx, w.inos[c.from], w.link(c.from), w.link(c.to)), c.want, c.from, "to", c.to)
		})
	}
}

// Rules of exclusion that are others in this run take what waits back, and let go what
// stayed for those of before.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.makes("out", "f", "stayed", "known=")
	b := &Border{Exclude: &excludes{pattern: "out"}, Ignores: w.g}
	w.do(func(tx *tree.Tx) {
		rec := tx.Record(w.link("stayed"))
		rec.Local, rec.Seq = true, 0
		tx.SetName(w.link("stayed"), rec)
	})
	w.see(func(v *tree.View) {
		assert.False(t, b.IsFollowed(v), "followed before")
		assert.Slice(t, b.Leaving(v), []table.Link{w.link("out")}, "to be taken back")
	})
	w.do(func(tx *tree.Tx) { assert.False(t, b.Follow(tx), "ignore files are to be looked at") })
	w.see(func(v *tree.View) {
		assert.True(t, b.IsFollowed(v), "not followed after")
		assert.True(t, !v.Record(w.link("stayed")).Local && v.IsDirty(w.link("stayed")), "what is excluded no longer stays")
	})
	b.Exclude = nil
	w.see(func(v *tree.View) { assert.False(t, b.IsFollowed(v), "no rules are those of before") })
}

// host is a working copy for a learner, with the content of ignore files. It does at once
// what is for the background.
type host struct {
	*world
	b       *Border
	content map[table.Ino]string
	reads   int
	before  func() // a read
}

func (h *host) Update(_ bool, do func(*tree.Tx) error) error           { return h.tree.Update(do, nil) }
func (h *host) Snapshot(do func(*tree.View, *Border))                  { h.see(func(v *tree.View) { do(v, h.b) }) }
func (h *host) Patiently(_ context.Context, do func(Work) error) error { return do(h) }
func (h *host) Moved()                                                 {}
func (h *host) Fetch(ino table.Ino, _ providers.Kind) error {
	h.do(func(tx *tree.Tx) { tx.Edit(ino).State = table.Whole })
	return nil
}

func (h *host) List(dir table.Ino) error {
	h.do(func(tx *tree.Tx) { tx.Edit(dir).Loaded = true })
	return nil
}

func (h *host) Read(ino table.Ino, _ int64) ([]byte, bool, error) {
	h.reads++
	if h.before != nil {
		h.before()
	}
	return []byte(h.content[ino]), h.content[ino] != "", nil
}

func newHost(t *testing.T) (*host, *Learner) {
	w := newWorld(t)
	h := &host{world: w, b: &Border{Ignores: w.g, Ignoring: true, Wake: func() {}}, content: map[table.Ino]string{}}
	return h, NewLearner(LearnerOptions{Tree: w.tree, Border: h.b, Volume: h})
}

// stay are the names of files that stay local.
func (h *host) stay() (all []string) {
	h.see(func(v *tree.View) {
		for path := range h.inos {
			if path != "" && v.Record(h.link(path)).Local {
				all = append(all, path)
			}
		}
	})
	slices.Sort(all)
	return all
}

// Before a commit all rules that count are those of now, and each name below those that
// changed stays or goes by them. What has been learned is not read again.
func TestLearnForCommit(t *testing.T) {
	h, e := newHost(t)
	h.makes(".ignore=", "f.o", "d/", "d/.ignore", "d/f.o", "g.o=")
	h.content[h.inos[".ignore"]], h.content[h.inos["d/.ignore"]] = "*.o", "!f.o"
	h.do(func(tx *tree.Tx) { LookBelow(tx, table.Root) }) // as after a rename
	commit := func(reads int, stay ...string) {
		t.Helper()
		h.reads = 0
		assert.OK(t, e.ForCommit(t.Context()))
		assert.Equal(t, h.reads, reads, "files read")
		assert.Slice(t, h.stay(), stay, "names that stay")
		h.see(func(v *tree.View) { assert.Equal(t, len(ToLookBelow(v)), 0, "directories left to look at") })
	}
	commit(2, "f.o")
	commit(0, "f.o")
	h.content[h.inos[".ignore"]] = "*.a"
	h.changes("")
	commit(1)
	h.content[h.inos["d/.ignore"]] = ""
	h.changes("d")
	assert.OK(t, e.ForCommit(t.Context())) // it was removed just now
	h.b.Ignoring = false
	commit(0)
}

// Rules that change while they are read are read again, a few times.
func TestLearnWhatChanges(t *testing.T) {
	h, e := newHost(t)
	h.makes(".ignore", "f.o")
	h.content[h.inos[".ignore"]] = "*.o"
	h.before = func() { h.changes("") }
	assert.OK(t, e.ForCommit(t.Context()))
	assert.Equal(t, h.reads, 2*maxTries, "files read, for the commit and for names of before")
	h.before = nil
	assert.OK(t, e.ForCommit(t.Context()))
	is, sure := h.ignored("f.o", false)
	assert.Equal(t, fmt.Sprint(is, sure), "true true")
}

// An ignored name whose content is missing waits for it.
func TestBring(t *testing.T) {
	h, e := newHost(t)
	h.makes(".ignore", "f.o")
	h.content[h.inos[".ignore"]] = "*.o"
	h.do(func(tx *tree.Tx) {
		tx.Edit(h.inos["f.o"]).Size = 1
		LookBelow(tx, table.Root)
	})
	assert.OK(t, e.ForCommit(t.Context()))
	assert.Slice(t, h.stay(), nil, "without content")
	assert.OK(t, e.Bring(t.Context(), []table.Link{h.link("f.o"), h.link("none")}))
	h.do(func(tx *tree.Tx) { assert.True(t, h.b.Sort(tx, h.link("f.o"), nil), "nothing is known of it") })
	assert.Slice(t, h.stay(), []string{"f.o"}, "with content")
}
