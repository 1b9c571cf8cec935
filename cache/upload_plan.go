package cache

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// The planner says what a name needs, looking at its record as it is at that
// moment. An operation depends on others: what is below a directory waits for the
// directory, a directory that is to be deleted for what is below it, and a
// name whose content at the backend lives on elsewhere for its move there. Then
// the answer is the operation of that other name. Everything that it needs to know
// is in the table, so it plans the same after a crash.

// verdict says how it stands with a name.
type verdict uint8

const (
	verdictAgreed verdict = iota // nothing is to be done
	verdictReady                 // the operation can be made
	verdictBusy                  // the operation is under way
	verdictStuck                 // it rests, is held, or waits for one that does
	verdictOpen                  // a program is still writing it
)

// planner has what is found out on the way. The lock of the volume guards it.
type planner struct {
	jobs   *jobs
	memo   *memo       // of the walk under way
	cut    bool        // a search for what a name waits for ended early: see tooFar
	deep   bool        // none does
	passed []table.Ino // of unsettled, kept for its next search
}

// plan finds the next operation towards what a name needs. via are the names whose needs
// led here.
func (p *planner) plan(v *View, l table.Link, via []table.Link) (verdict, *operation) {
	if slices.Contains(via, l) {
		return p.park(v, l, via)
	}
	if t := p.jobs.busy[l]; t != nil {
		return verdictBusy, t.op
	}
	if t := p.jobs.of[l]; t != nil && t.state != jobIdle {
		return verdictStuck, nil
	}
	rec, ok := v.table.Name(l.Dir, l.Name)
	via = append(via, l)
	if !ok || !v.Differs(rec) {
		return verdictAgreed, nil
	}
	if verdict, s := p.planUnsettled(v, l.Dir, via); verdict != verdictAgreed {
		return verdict, s
	}
	if rec.Attempt != nil {
		return p.planResolve(v, l, rec, via)
	}
	at, home := v.RemotePath(l)
	if !home {
		return p.planParent(v, l, via)
	}
	s := &operation{link: l, at: at}
	if rec.Ino == 0 || rec.Local {
		return p.planGone(v, s, rec, via)
	}
	return p.planThere(v, s, rec, via)
}

// planParent is for a name in a directory that the backend does not have.
func (p *planner) planParent(v *View, l table.Link, via []table.Link) (verdict, *operation) {
	dir := v.table.Inode(l.Dir)
	switch {
	case dir == nil, len(dir.Links) == 0, p.local(v, dir.Links[0]):
		return verdictStuck, nil
	}
	if p.tooFar(v, via) {
		return verdictStuck, nil
	}
	verdict, s := p.plan(v, dir.Links[0], via)
	if verdict == verdictAgreed {
		verdict = verdictStuck
	}
	return verdict, s
}

// tooFar ends the search for what a name waits for: in a deep tree that would
// be done anew for each name on the way. What is further away has its own turn
// in the same walk, but for names that wait for each other in a ring, or that
// are not due: where nothing else can be done, the walk is repeated without an
// end.
func (p *planner) tooFar(v *View, via []table.Link) bool {
	p.cut = p.cut || len(via) > planDepth
	return len(via) > planDepth && !p.deep
}

// planDepth is how many names lead from one to what it waits for, in most walks.
const planDepth = 3

func (p *planner) local(v *View, l table.Link) bool {
	rec, _ := v.table.Name(l.Dir, l.Name)
	return rec.Local
}

// planGone is for a name that is no more.
func (p *planner) planGone(v *View, s *operation, rec table.Name, via []table.Link) (verdict, *operation) {
	if verdict, other := p.rescue(v, s.link, rec.Remote.Ino, via); verdict != verdictAgreed {
		return verdict, other
	}
	return p.planDelete(v, s, rec.Remote, via)
}

// planDelete removes what the backend has under a name: what is below it first.
func (p *planner) planDelete(v *View, s *operation, base *table.Remote, via []table.Link) (verdict, *operation) {
	s.verb, s.ino, s.cond = verbDelete, base.Ino, condition(base)
	if base.Kind != providers.KindDir {
		return verdictReady, s
	}
	s.dir = true
	if verdict, other := p.planBelow(v, base.Ino, via); verdict != verdictAgreed {
		return verdict, other
	}
	return verdictReady, s
}

// planBelow is for a directory that is to be empty at the backend.
func (p *planner) planBelow(v *View, dir table.Ino, via []table.Link) (found verdict, s *operation) {
	if dir == 0 {
		return verdictAgreed, nil
	}
	if n := v.table.Inode(dir); n != nil && n.From != "" {
		return p.planPart(v, dir)
	}
	v.table.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote == nil && rec.Attempt == nil {
			return true
		}
		if p.tooFar(v, via) {
			found = verdictStuck
			return false
		}
		verdict, next := p.plan(v, table.Link{Dir: dir, Name: name}, via)
		switch {
		case verdict == verdictReady, found == verdictAgreed:
			found, s = verdict, next
		}
		if verdict == verdictAgreed {
			found = verdictStuck // it stays, and so does the directory
		}
		return found != verdictReady
	})
	return found, s
}

// condition is that what is known is still there.
func condition(b *table.Remote) providers.Condition {
	switch {
	case b == nil:
		return providers.IfAbsent()
	case b.Kind == providers.KindDir:
		return providers.IfDir()
	}
	return providers.IfVersion(b.Version)
}

// rescue is for a name whose place at the backend something else is about to take: what
// has it now may live on under another name here, and have no other place. Then what
// that name needs comes first, or what is under way there.
func (p *planner) rescue(v *View, l table.Link, ino table.Ino, via []table.Link) (verdict, *operation) {
	n := v.table.Inode(ino)
	if n == nil || p.homeElse(v, n, l) {
		return verdictAgreed, nil
	}
	for _, to := range n.Links {
		if to == l || p.local(v, to) {
			continue
		}
		verdict, s := p.plan(v, to, via)
		if verdict == verdictAgreed || verdict == verdictOpen {
			verdict = verdictStuck
		}
		return verdict, s
	}
	return verdictAgreed, nil
}

// homeElse reports whether the backend surely has an inode, as new as under a name,
// under another one too: nothing is under way there, which may be about to replace it.
func (p *planner) homeElse(v *View, n *table.Inode, l table.Link) bool {
	here := v.Record(l).Remote
	for _, h := range n.RemoteLinks {
		rec := v.Record(h)
		if h != l && rec.Attempt == nil && p.jobs.busy[h] == nil && here != nil && rec.Remote != nil && rec.Remote.ContentVersion >= here.ContentVersion {
			return true
		}
	}
	return false
}

// planThere is for a name that stands for something.
func (p *planner) planThere(v *View, s *operation, rec table.Name, via []table.Link) (verdict, *operation) {
	n := v.table.Inode(rec.Ino)
	if n == nil {
		return verdictStuck, nil
	}
	s.ino, s.dir, s.cond = rec.Ino, n.IsDir(), condition(rec.Remote)
	if rec.Remote != nil && rec.Remote.Ino == rec.Ino {
		return p.planSame(v, s, rec.Remote, n)
	}
	if rec.Remote != nil {
		if verdict, other := p.rescue(v, s.link, rec.Remote.Ino, via); verdict != verdictAgreed {
			return verdict, other
		}
		if verdict, other := p.planReplace(v, s, rec.Remote, n, via); verdict != verdictAgreed {
			return verdict, other
		}
	}
	if s.dir {
		return p.planDir(v, s, n, via)
	}
	return p.planContent(v, s, n, via)
}

// planSame is for a name that the backend has in an older state.
func (p *planner) planSame(v *View, s *operation, base *table.Remote, n *table.Inode) (verdict, *operation) {
	if n.IsDir() || n.ContentVersion == base.ContentVersion && !p.atHand(v, s.ino, n) {
		s.verb = verbAttr
		return verdictReady, s
	}
	return p.planWrite(v, s, n)
}

// planWrite sends what an inode has.
func (p *planner) planWrite(v *View, s *operation, n *table.Inode) (verdict, *operation) {
	s.verb, s.size = verbWrite, n.Size
	if v.pending.IsOpen(s.ino, n) && s.from == (table.Link{}) {
		return verdictOpen, nil
	}
	return verdictReady, s
}

// planReplace is for a name that something else has at the backend, which is
// not needed any more. A file that replaces a file needs nothing here: its
// write has the condition.
func (p *planner) planReplace(v *View, s *operation, base *table.Remote, n *table.Inode, via []table.Link) (verdict, *operation) {
	was := base.Kind == providers.KindDir
	switch {
	case !was && !s.dir:
		return verdictAgreed, nil
	case n.From != "":
		return p.planPart(v, s.ino)
	case was && s.dir && v.table.Inode(base.Ino) != nil && v.table.Inode(base.Ino).From != "":
		return p.planPart(v, base.Ino)
	case was && s.dir && len(n.RemoteLinks) == 0:
		s.verb = verbAdopt
		return verdictReady, s
	case was && s.dir && !v.caps.Abilities.Has(providers.AbilityMove):
		if verdict, other := p.takeFrom(v, s, n.RemoteLinks[0], via); verdict != verdictAgreed {
			return verdict, other
		}
		return p.planFlat(v, s, n)
	}
	gone := &operation{link: s.link, at: s.at}
	return p.planDelete(v, gone, base, via)
}

// planDir is for a directory under a name that is free at the backend.
func (p *planner) planDir(v *View, s *operation, n *table.Inode, via []table.Link) (verdict, *operation) {
	switch {
	case n.From != "":
		return p.planPart(v, s.ino)
	case len(n.RemoteLinks) == 0:
		s.verb = verbMkdir
		return verdictReady, s
	}
	if verdict, other := p.takeFrom(v, s, n.RemoteLinks[0], via); verdict != verdictAgreed {
		return verdict, other
	}
	if s.fromAt.Contains(s.at) { // one of the directories above must move first
		for dir := s.link.Dir; dir != table.Root; {
			up := v.table.Inode(dir).Links
			if len(up) == 0 {
				return verdictStuck, nil
			}
			if verdict, other := p.plan(v, up[0], via); verdict != verdictAgreed {
				return verdict, other
			}
			dir = up[0].Dir
		}
		return verdictStuck, nil
	}
	if !v.caps.Abilities.Has(providers.AbilityMove) {
		return p.planFlat(v, s, n)
	}
	s.verb = verbMove
	return verdictReady, s
}

// planFlat is for a directory that the backend cannot rename: it parts from its
// place, once all that is there is known.
func (p *planner) planFlat(v *View, s *operation, n *table.Inode) (verdict, *operation) {
	if n.Loaded {
		return p.planPart(v, s.ino)
	}
	s.verb, s.from = verbEmpty, table.Link{}
	return verdictReady, s
}

// planResolve finds out first what became of an attempt.
func (p *planner) planResolve(v *View, l table.Link, rec table.Name, via []table.Link) (verdict, *operation) {
	a := rec.Attempt
	if a.Kind == attemptGone {
		return p.plan(v, parseLink(a.Other), via)
	}
	at, ok := v.RemotePath(l)
	if !ok {
		return verdictStuck, nil
	}
	s := &operation{verb: verbResolve, link: l, at: at, attempt: a, cond: condition(rec.Remote)}
	switch a.Kind {
	case attemptWrite, attemptCopy, attemptMkdir, attemptDelete:
		s.ino, _ = parseSent(a.Other)
	case attemptAttr:
		if rec.Remote != nil {
			s.ino, s.dir = rec.Remote.Ino, rec.Remote.Kind == providers.KindDir
		}
	case attemptMove:
		s.from = parseLink(a.Other)
		if verdict, other := p.planUnsettled(v, s.from.Dir, via); verdict != verdictAgreed {
			return verdict, other
		}
		from, _ := v.table.Name(s.from.Dir, s.from.Name)
		if s.fromAt, ok = v.RemotePath(s.from); !ok {
			return verdictStuck, nil
		}
		if s.source = from.Remote; s.source != nil {
			s.ino, s.dir = s.source.Ino, s.source.Kind == providers.KindDir
		}
	}
	return verdictReady, s
}
