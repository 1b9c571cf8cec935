package upload

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Confirm sets the remote's entry under a name; nil: none. The inode that had it may be forgotten
// then.
func (x *Executor) Confirm(tx Tx, l table.Link, base *table.Remote) {
	was := tx.Record(l)
	if tx.IsNowhere(l.Dir) {
		base = nil // the directory came back as another one, where this is found
	}
	if above := tx.Inode(l.Dir); was.Remote == nil && base != nil && base.Kind == providers.KindDir && above != nil && !above.Loaded {
		if n := tx.Edit(base.Ino); n != nil {
			n.Loaded, n.Listed = false, 0 // others may have made it before, with entries in it
		}
	}
	tx.SetRemote(l, base)
	if base == nil {
		x.doubtImplied(tx, l.Dir)
	}
	if was.Remote != nil && (base == nil || base.Ino != was.Remote.Ino) {
		tx.Shed(was.Remote.Ino)
	}
}

// doubtImplied doubts a directory at the remote that may have gone there with its last entry,
// because it was never made by itself: it is looked for, and made anew, or deleted if it is
// removed locally by then.
func (x *Executor) doubtImplied(tx Tx, dir table.Ino) {
	n := tx.Inode(dir)
	if !x.caps.ImpliedDirs || dir == table.Root || n == nil || !n.Loaded || len(n.RemoteLinks) == 0 {
		return
	}
	home := n.RemoteLinks[0]
	rec := tx.Record(home)
	if rec.Ino != dir || rec.Attempt != nil || rec.Remote == nil || tx.HasRemoteNames(dir) {
		return
	}
	doubt := table.Attempt{ContentVersion: rec.Remote.ContentVersion, AttrGen: rec.Remote.AttrGen, Kind: AttemptMkdir, Other: FormatSent(dir, "")}
	tx.SetRemote(home, nil)
	tx.SetAttempt(home, &doubt)
}
