package merge

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// sides are the three sides of a name in a merge, and the facts found out about it, for the
// decision about the name.
type sides struct {
	*Merge
	tx     *Tx
	l      table.Link
	rec    table.Name
	theirs *providers.Info // the remote's entry; nil: none
	policy reconcile.Policy

	decided   bool // the names in the directory of the base were decided
	counted   bool // as deleted
	asked     bool // whether the remote has the content that an operation of ours wrote
	lateWrite bool // it has
	content   reconcile.Content
	text      reconcile.Text
	sum       string // of the local content, once that was compared
	union     *union
}

// at are the sides of a name whose present remote entry is r.
func (m *Merge) at(v *Tx, l table.Link, r *providers.Info) *sides {
	l.Dir = m.ShownAs(l.Dir)
	s := &sides{Merge: m, tx: v, l: l, theirs: r}
	s.policy = reconcile.Policy{
		Conflict: v.o.Conflict, EmptyDirs: v.o.Capabilities.EmptyDirs, ImpliedDirs: v.o.Capabilities.ImpliedDirs,
		DirAttrs: v.o.DirAttrs(), Within: m.within > 0,
	}
	s.reload()
	return s
}

// reload reads the record of the name anew.
func (s *sides) reload() {
	s.rec = s.tx.Record(s.l)
	if s.late[s.l] {
		s.rec.Attempt = nil
	}
}

// entryOf is the remote's entry under a name; nil: none.
func entryOf(r *providers.Info) reconcile.Entry {
	if r == nil {
		return reconcile.Entry{}
	}
	return reconcile.Entry{Kind: r.Kind, Version: r.Version, Digest: r.Digest}
}

// knownEntry is the last known remote entry of a name.
func knownEntry(b *table.Remote) reconcile.Entry {
	if b == nil {
		return reconcile.Entry{}
	}
	return reconcile.Entry{Kind: b.Kind, Version: b.Version, Digest: b.Digest}
}

// knownBase is the part of the base that the record alone tells.
func knownBase(rec table.Name) reconcile.Base {
	base := reconcile.Base{Entry: knownEntry(rec.Remote)}
	if rec.Held != nil && rec.Held.Conflict && rec.Ino != 0 {
		theirs, _ := reconcile.DecodeHeld(rec.Held.Remote)
		held := entryOf(&theirs.Info)
		base.Held = &held
	}
	return base
}

// Unchanged reports whether the remote's entry is the last known one.
func Unchanged(rec table.Name, r *providers.Info) bool { return knownBase(rec).Unchanged(entryOf(r)) }

// reconcile decides about the name until the decision is carried out, or a question is open.
func (s *sides) reconcile() {
	for again := true; again; {
		a := reconcile.Decide(s.base(), s.local(), entryOf(s.theirs), s.policy)
		if a.Do.Ends() {
			s.end(a)
			return
		}
		again = s.prepare(a.Do)
		s.reload()
	}
}

// base gathers that side.
func (s *sides) base() reconcile.Base {
	v, b := s.tx, s.rec.Remote
	base := knownBase(s.rec)
	if b == nil {
		return base
	}
	n := v.Inode(b.Ino)
	base.AttrsModified = n == nil || n.AttrGen != b.AttrGen
	base.Decided = s.decided || b.Ino == 0
	if s.rec.Ino == 0 && len(s.moved(n)) > 0 {
		base.Moved = reconcile.RenamedAndModified
		if n.ContentVersion == b.ContentVersion {
			base.Moved = reconcile.Renamed
		}
	}
	if b.Kind == providers.KindDir && s.theirs == nil && !s.policy.Excluded && !base.Decided {
		base.Below = s.below(v, b.Ino)
	}
	return base
}

// local gathers that side.
func (s *sides) local() (local reconcile.Local) {
	v, b, n := s.tx, s.rec.Remote, s.tx.Inode(s.rec.Ino)
	local.InFlight = s.skipInFlight(v, s.l, s.rec)
	if t := v.o.Jobs.Of(v.View, s.l); t != nil && t.Unmade.Op != "" && !s.asked {
		local.Sent = reconcile.MaybeSent
	} else if s.lateWrite {
		local.Sent = reconcile.LateWrite
	}
	switch {
	case s.rec.Local && v.o.Side.Border.OnlyIgnored(v.View, s.l, s.rec):
		local.Scope = reconcile.Ignored
	case s.rec.Local:
		local.Scope = reconcile.Private
	}
	if s.rec.Ino == 0 || n == nil {
		return local
	}
	local.Another = s.rec.Ino != remoteIno(s.rec)
	local.Modified = b != nil && n.ContentVersion != b.ContentVersion
	if n.IsDir() {
		local.Kind, local.Full, local.Elsewhere = providers.KindDir, n.Entries > 0, len(n.RemoteLinks) > 0
		return local
	}
	local.Kind, local.Content, local.Text = providers.KindFile, s.content, s.text
	local.Writing = v.o.Open.IsWritten(v.View, s.rec.Ino) && !s.late[s.l]
	local.Unseen = s.unseen(n)
	local.Partial = n.State == table.Partial
	if s.content == reconcile.Gone {
		_, local.Origin = v.OriginOf(s.rec.Ino)
	}
	return local
}

// moved are the names to be sent, none of them a remote link, of the inode that the remote had
// under the name.
func (s *sides) moved(n *table.Inode) []table.Link {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Links), func(l table.Link) bool {
		return s.tx.Record(l).Local || slices.Contains(n.RemoteLinks, l)
	})
}

// unseen reports whether the inode may become another version in place: it has one name, and is
// not open, or only in programs that still wait for its first bytes. Cached attributes in the
// kernel end with the next open, for a program that only stats it with a notice; cached pages of
// content that was local before, with the next open.
func (s *sides) unseen(n *table.Inode) bool {
	if len(n.Links) != 1 || len(n.RemoteLinks) != 1 || n.IsSymlink() && s.tx.References(s.rec.Ino) > 0 {
		return false
	}
	v := s.tx.View
	oi := s.tx.o.Open.Of(v, s.rec.Ino)
	return n.State == table.None && oi == nil || oi != nil && oi.IsUnread(v)
}

// prepare does an action that leads to another decision. It reports whether it is done.
func (s *sides) prepare(do reconcile.Do) bool {
	switch do {
	case reconcile.Compare:
		return s.compareContent(s.rec.Ino)
	case reconcile.MergeText:
		return s.mergeText(s.rec.Ino, s.rec.Remote)
	case reconcile.KeepRemote:
		s.policy.Kept = s.keptTheirs(s.l, s.theirs)
		return s.policy.Kept != reconcile.NotKept
	case reconcile.AskSent:
		return s.askSent()
	case reconcile.Descend:
		return s.descend()
	case reconcile.Vacate:
		s.vacate()
	case reconcile.Track:
		s.rec.Local = false
		s.set(s.tx, s.l, s.rec)
	}
	return true
}

// compareContent finds out whether the content of an inode is the remote's.
func (s *sides) compareContent(x table.Ino) bool {
	a, ok := s.ask(x, s.theirs)
	s.sum = a.sum
	switch {
	case a.same:
		s.content = reconcile.Equal
	case a.broken:
		s.content = reconcile.Gone
	default:
		s.content = reconcile.Differs
	}
	return ok
}

// ask returns the known facts about the content of an inode, and whether r is the same. ok is
// false while they are not known: the question is noted.
func (s *sides) ask(x table.Ino, r *providers.Info) (a answer, ok bool) {
	v, n := s.tx, s.tx.Inode(x)
	q := query{question: question{ino: x, gen: n.ContentVersion}, l: s.l}
	if r != nil {
		q.at, q.theirs, q.info = r.Locator, r.Version, *r
	} else if at, version, ok := v.OriginAt(x); ok && n.State == table.None {
		// The inode may have come in this very run, and be gone when the question is answered.
		q = query{question: question{at: at, theirs: version, what: askFar}, l: s.l}
		q.info = providers.Info{Locator: at, Version: version}
	}
	return s.look(q)
}

// mergeText finds the text that the content of an inode and the remote's become.
func (s *sides) mergeText(x table.Ino, base *table.Remote) (ok bool) {
	s.union, ok = s.unionOf(x, base)
	if s.text = reconcile.Apart; s.union != nil {
		s.text = reconcile.Merged
	}
	return ok
}

// descend decides about the names in a directory that the remote lost, or that is excluded.
func (s *sides) descend() bool {
	dir := s.rec.Remote.Ino
	s.decided = true
	if s.policy.Excluded {
		for _, l := range remoteEntries(s.tx, dir) {
			s.Hide(s.tx, l)
		}
		return true
	}
	s.countGone()
	if s.tooMuchBelow(s.tx, dir) {
		return false
	}
	s.emptied(s.tx, dir)
	return true
}

// countGone counts the name as deleted at the remote, once.
func (s *sides) countGone() {
	if !s.counted && !s.policy.Excluded {
		s.Merge.countGone(s.tx, s.l)
	}
	s.counted = true
}

// vacate: the remote has another kind of entry in the place of a directory.
func (s *sides) vacate() {
	dir := s.rec.Remote.Ino
	s.deleted++
	if dir != 0 {
		s.emptied(s.tx, dir)
		s.reload()
	}
	s.moveRemote(nil, s.rec.Ino)
}

// Content whose answer got lost may arrive after it was asked for and not found. The engine then
// still has its operation, and the apparent change of others is an older state of ours: newer
// content of ours takes its place, and so does a deletion. No other writer was involved, and
// nothing is in conflict.

// askSent finds out whether the remote has such a late write of ours.
func (s *sides) askSent() bool {
	op := s.tx.o.Jobs.Of(s.tx.View, s.l).Unmade
	x, _ := upload.ParseSent(op.Other)
	q := query{question: question{ino: x, gen: op.ContentVersion, at: s.theirs.Locator, theirs: s.theirs.Version, what: askOurs}, info: *s.theirs, l: s.l, op: op}
	a, ok := s.look(q)
	s.asked, s.lateWrite = ok, a.same
	return ok
}

// confirm records that it has.
func (s *sides) confirm() {
	op := s.tx.o.Jobs.Of(s.tx.View, s.l).Unmade
	x, _ := upload.ParseSent(op.Other)
	if s.tx.Inode(x) == nil {
		x = 0
	}
	base := versionOf(s.theirs)
	base.Ino, base.ContentVersion, base.AttrGen = x, op.ContentVersion, op.AttrGen
	s.moveRemote(base, x)
}

// end carries out the decision.
func (s *sides) end(a reconcile.Action) {
	switch a.Do {
	case reconcile.Nothing:
		return
	case reconcile.Hold:
		s.hold(a.Note)
		return
	case reconcile.Keep, reconcile.Delete, reconcile.Forget:
		s.countGone()
	}
	if a.Note != "" {
		s.tell(s.tx, s.l, a.Note, a.Do == reconcile.Overwrite)
	}
	s.change(a.Do)
}

// change carries out an action that changes something.
func (s *sides) change(do reconcile.Do) {
	switch do {
	case reconcile.Wait:
		s.Left = true
	case reconcile.Clear:
		s.emptied(s.tx, s.rec.Remote.Ino)
	case reconcile.Release:
		s.release()
	case reconcile.Delete:
		s.remove()
	case reconcile.Keep, reconcile.Forget:
		s.forget()
	case reconcile.Detach:
		s.detach()
	case reconcile.TakeAttrs:
		s.takeDirAttrs()
	case reconcile.Refresh:
		s.refresh()
	case reconcile.Confirm:
		s.confirm()
	case reconcile.Adopt:
		s.adopt()
	case reconcile.Arrive:
		s.arriveAnew()
	case reconcile.Renew:
		s.renew()
	case reconcile.Replace:
		s.replace()
	case reconcile.Follow:
		s.follow()
	case reconcile.Join:
		s.joinDirs()
	case reconcile.Supplant:
		s.supplant()
	case reconcile.Aside:
		s.makeRoom()
	case reconcile.Unite:
		s.unite()
	case reconcile.SplitUp:
		s.split()
	case reconcile.Salvage:
		s.salvage()
	case reconcile.Overwrite:
		s.overwrite()
	}
}
