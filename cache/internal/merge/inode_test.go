package merge

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A version that a program has seen is another inode than the next; a conflict copy is the one that
// it was. Whoever has one open keeps it. Of attributes those stay that only the working copy has, or
// that were changed in it, and the time of a file never goes back.
func TestInode(t *testing.T) {
	theirs := "put f two!"
	for what, c := range map[string]struct {
		ours, theirs string
		unseen, maps bool
		same         bool   // inode
		copied       bool   // the inode has the name of the copy
		mode         uint32 // 0: as it was
	}{
		"a new version":              {theirs: theirs},
		"a new version, unseen":      {theirs: theirs, unseen: true, same: true},
		"changed locally":            {ours: "put f ours", theirs: theirs, copied: true},
		"attributes":                 {theirs: "chmod f 751", same: true, mode: 0o751},
		"attributes, mapped":         {theirs: "chmod f 751", same: true, mode: 0o751, maps: true},
		"attributes on both sides":   {ours: "chmod f 600", theirs: "chmod f 751", same: true, mode: 0o600},
		"attributes and a new state": {ours: "chmod f 600", theirs: theirs, mode: 0o600},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{}, reconcile.Split, "f", "one")
			w.o.Side.Attributes.MapIDs = c.maps
			_, x := w.find("f")
			if !c.unseen {
				w.ours("read f")
			}
			w.ok(w.update(func(tx *Tx) error {
				n := tx.Edit(x)
				n.Xattrs, n.Mtime = map[string][]byte{"security.note": []byte("mine")}, tx.Stamp()
				return nil
			}))
			was := w.inode("f")
			var o *files.OpenInode
			if !c.unseen {
				o = w.open("f", files.ForReading)
			}
			w.ours(c.ours)
			w.theirs(c.theirs)
			w.pull()
			now := w.inode("f")
			_, y := w.find("f")
			assert.Equal(t, y == x, c.same, "it is the same inode")
			if _, z := w.find("f.conflict-" + short("ours")); c.copied {
				assert.Equal(t, z, x, "the copy is inode")
			}
			assert.Equal(t, string(now.Xattrs["security.note"]), "mine", "attribute")
			assert.True(t, now.Mtime.Compare(was.Mtime) >= 0, "the time went back from", was.Mtime, "to", now.Mtime)
			if c.mode != 0 {
				assert.Equal(t, now.Mode&0o7777, c.mode, "mode")
			}
			assert.Equal(t, now.UID == 5 && now.GID == 6, c.maps, "the owner is theirs")
			if o != nil {
				text := make([]byte, 3)
				w.ok(assert.ErrOf(o.Content().ReadAt(t.Context(), text, 0)))
				assert.Equal(t, string(text), map[bool]string{true: "our", false: "one"}[c.copied], "who has it open reads")
				w.ok(w.opener.Close(o, false))
			}
			if !strings.HasPrefix(c.ours, "chmod") { // which is to be sent, though the texts are the same
				w.sendable()
			}
		})
	}
}

// Of a pull the paths of files are told that lead to another than before.
func TestPulled(t *testing.T) {
	w := newCopy(t, memory.Options{}, reconcile.Split, "d/f", "one", "d/gone", "two", "d/same", "x")
	w.ours("read d/f", "read d/gone", "read d/same")
	w.theirs("put d/f two!", "put d/new three", "rm d/gone", "mkdir e")
	w.pull()
	assert.Equal(t, strings.Join(w.pulled, " "), "d/f d/new")
}

// What is renamed to where another writer put something is changed by a third under its old name,
// be it before it is compared or just then: its bytes from before are nowhere, and no one misses
// them.
func TestRenameWhoseSourceChanges(t *testing.T) {
	for what, c := range map[string]struct{ ours, before, meanwhile []string }{
		"before":    {ours: []string{"mv d/f g"}, before: []string{"put d/f changed", "put g theirs"}},
		"chain":     {ours: []string{"mv d/g d/h", "mv d/f d/g"}, before: []string{"put d/f changed", "put d/g theirs"}},
		"meanwhile": {ours: []string{"mv d/f g"}, before: []string{"put g theirs"}, meanwhile: []string{"put d/f changed"}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{}, reconcile.Split, "d/f", "one", "d/g", "two")
			w.ours(c.ours...)
			w.theirs(c.before...)
			w.calls = func(call *providers.Call) error {
				if call.Method == providers.MethodRead {
					w.theirs(c.meanwhile...)
					c.meanwhile = nil
				}
				return nil
			}
			w.ok(w.refused())
			w.ok(w.refused())
			w.pull()
			got := strings.Join(w.lines(), ", ")
			for _, want := range []string{": changed", ": theirs"} {
				assert.Contains(t, got, want)
			}
			w.sendable()
		})
	}
}
