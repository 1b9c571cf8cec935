package describe

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// held says of each name the same.
type held struct {
	why             error
	final, conflict bool
}

func (h held) Failure(*tree.View, table.Link) (error, bool) { return h.why, h.final }

func (h held) Of(v *tree.View, l table.Link) (of pending.HeldBack) {
	of.Conflict = h.conflict
	if h.why != nil {
		of.Reason = h.why.Error()
	} else if rec := v.Record(l); rec.Held != nil {
		of.Reason = rec.Held.Reason
	}
	return of
}

// A file is described by what the table has of it, and what keeps its names back; the version
// is the one that its content stands on, also while it is changed.
func TestDescribe(t *testing.T) {
	const x = table.Ino(10)
	f, g := table.Link{Dir: table.Root, Name: "f"}, table.Link{Dir: table.Root, Name: "g"}
	version := providers.Version{ETag: "e", Modified: 7, Size: 3}
	changed := func(tx *tree.Tx) { tx.ContentChanged(x, 3, table.Time{}) }
	some := errors.New("no room")
	for name, c := range map[string]struct {
		change        func(tx *tree.Tx)
		holds         held
		state, reason string
	}{
		"as on the remote": {func(*tree.Tx) {}, held{}, "clean", ""},
		"not all local":    {func(tx *tree.Tx) { tx.Edit(x).State = table.Partial }, held{}, "remote", ""},
		"empty": {func(tx *tree.Tx) {
			n := tx.Edit(x)
			n.State, n.Size = table.None, 0
		}, held{}, "clean", ""},
		"changed":            {changed, held{}, "unsaved", ""},
		"being written":      {func(tx *tree.Tx) { tx.Edit(x).Writing = true }, held{}, "unsaved", ""},
		"to be tried again":  {changed, held{why: some}, "unsaved", "no room"},
		"refused":            {changed, held{why: some, final: true}, "held", "no room"},
		"in conflict":        {changed, held{why: some, final: true, conflict: true}, "conflict", "no room"},
		"clean, all stopped": {func(*tree.Tx) {}, held{why: some, final: true}, "clean", ""},
		"held by the run before": {func(tx *tree.Tx) {
			changed(tx)
			rec := tx.Record(f)
			rec.Held = &table.Held{Reason: "secret"}
			tx.SetName(f, rec)
		}, held{}, "held", "secret"},
		"suspect": {func(tx *tree.Tx) { changed(tx); tx.Edit(x).Suspect = true }, held{}, "suspect", upload.ErrSuspect.Error()},
		"never sent": {func(tx *tree.Tx) {
			rec := tx.Record(f)
			rec.Local = true
			tx.SetName(f, rec)
		}, held{}, "local", "excluded, or of a kind that the remote cannot have"},
		"with one name that is sent": {func(tx *tree.Tx) { tx.SetName(g, table.Name{Ino: x, Local: true}) }, held{}, "clean", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tab := assert.Of(table.Open("/describe", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
			defer func() { assert.OK(t, tab.Close()) }()
			tr := tree.New(tab, tree.Options{})
			rules := revision.RulesOf("", nil)
			assert.OK(t, tr.Update(func(tx *tree.Tx) error {
				tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR})
				tx.Put(x, &table.Inode{Mode: syscall.S_IFREG, Size: 3, State: table.Whole, ContentVersion: 1})
				tx.SetLocal(f, x, false, false)
				tx.SetRemote(f, &table.Remote{Ino: x, Kind: providers.KindFile, ContentVersion: 1, Version: version})
				revision.SetSynced(tx, "r1", rules)
				return nil
			}, nil))
			assert.OK(t, tr.Update(func(tx *tree.Tx) error { c.change(tx); return nil }, nil))
			d := &Describer{Tree: tr, Provider: "memory", Rules: rules, Holds: c.holds}
			for what, want := range map[string]string{"state": c.state, "reason": c.reason,
				"provider": "memory", "etag": "e", "version": "e;7;3", "revision": "r1", "other": ""} {
				got, ok := d.Describe(nil, fs.Ino(x), what)
				assert.Equal(t, got, want, what)
				assert.Equal(t, ok, want != "", what, "is there")
			}
			_, ok := d.Describe(nil, 99, "provider")
			assert.False(t, ok, "an inode that is gone is described")
			_, ok = d.Describe(nil, fs.Ino(table.Root), "etag")
			assert.False(t, ok, "a directory has an etag")
		})
	}
}
