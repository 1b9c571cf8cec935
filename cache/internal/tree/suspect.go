package tree

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Survived says that a loss of power left content that the remote is not known to have, and
// size bytes of it. Content that was not synced is suspect. Content that was synced may
// have been written to since, by a change whose dirty intent did not reach the disk: it is
// not the state that is being sent, if one is.
func (t *Tx) Survived(ino table.Ino, size int64) (suspect bool) {
	n := t.Edit(ino)
	synced := n.Synced == n.ContentVersion && size == n.Size
	sent := slices.ContainsFunc(n.Links, func(l table.Link) bool { return t.Record(l).Attempt != nil })
	n.Suspect = n.Suspect || !synced
	suspect = n.Suspect
	if size != n.Size || !suspect && sent { // the content version must stand for exactly these bytes
		t.ContentChanged(ino, size, n.Mtime)
	}
	if n = t.Edit(ino); synced {
		n.Synced = n.ContentVersion
	}
	return suspect
}

// settleSuspects sees to it that no content is both suspect and the remote's. A state may
// have been on its way when the power was lost, and arrived whole: then it is fetched
// again, in place of the content on the disk. While a program has the file open, the
// program sees another state, which is held back until a person has looked at it.
func (t *Tx) settleSuspects() {
	for _, l := range t.changed {
		rec := t.Record(l)
		if rec.Remote == nil || rec.Remote.Kind != providers.KindFile || rec.Attempt != nil {
			continue
		}
		ino := rec.Remote.Ino
		if n := t.Inode(ino); n != nil && n.Suspect && len(n.Links) > 0 && n.ContentVersion == rec.Remote.ContentVersion {
			t.settleSuspect(ino, rec.Remote.Version.Size, t.PathFor(l))
		}
	}
}

// settleSuspect is settleSuspects for one inode, of which the remote has size bytes.
func (t *Tx) settleSuspect(ino table.Ino, size int64, path string) {
	n, log := t.Edit(ino), t.guarded.options.Log
	if n.Writing || t.guarded.options.Pins.Pinned(t.View, ino) {
		t.ContentChanged(ino, n.Size, n.Mtime)
		t.Later(func() {
			log.Warn("the store has a file whole that a loss of power may have cost bytes here; it is open, and held back", "path", path)
		})
		return
	}
	state := n.State
	n.State, n.Origin, n.Suspect = table.None, table.Origin{}, false
	if size >= 0 {
		n.Size = size
	}
	t.SetKernelPages(ino, 0)
	t.OutdateAttributes(ino)
	if state != table.None {
		t.observer.Freed(ino, n)
	}
	t.Later(func() {
		log.Warn("the store has a file whole that a loss of power may have cost bytes here; it is fetched again", "path", path)
	})
}
