package cache

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// takeFrom makes a remote link the source of an operation, once nothing is open there.
func (p *planner) takeFrom(v *View, s *operation, home table.Link, via []table.Link) (verdict, *operation) {
	if t := p.jobs.busy[home]; t != nil {
		return verdictBusy, t.op
	}
	rec, _ := v.table.Name(home.Dir, home.Name)
	if rec.Attempt != nil {
		return p.plan(v, home, via)
	}
	if verdict, other := p.planUnsettled(v, home.Dir, via); verdict != verdictAgreed {
		return verdict, other
	}
	at, ok := v.RemotePath(home)
	if !ok || rec.Remote == nil {
		return verdictStuck, nil
	}
	s.from, s.fromAt, s.source = home, at, rec.Remote
	return verdictAgreed, nil
}

// planContent is for a file or link under a name that is new to it.
func (p *planner) planContent(v *View, s *operation, n *table.Inode, via []table.Link) (verdict, *operation) {
	home := p.homeFor(v, s.ino, n)
	if !home.any {
		return p.planWrite(v, s, n)
	}
	if verdict, other := p.takeFrom(v, s, home.Link, via); verdict != verdictAgreed {
		return verdict, other
	}
	fresh := s.source.ContentVersion == n.ContentVersion
	switch {
	case home.vacant && v.caps.Abilities.Has(providers.AbilityMove) && (fresh || n.Suspect || v.pending.IsOpen(s.ino, n)):
		s.verb = verbMove
	case !fresh || !v.caps.Abilities.Has(providers.AbilityCopy) || p.atHand(v, s.ino, n):
		return p.planWrite(v, s, n)
	default:
		s.verb = verbCopy
	}
	return verdictReady, s
}

// atHandMost is the size up to which content that is here is written again rather
// than copied by a backend for which that is dear.
const atHandMost = 64 << 10

// atHand reports whether all that the backend would have of an inode is here, and
// writing it is cheaper than to have the backend copy it.
func (p *planner) atHand(v *View, ino table.Ino, n *table.Inode) bool {
	here := n.IsRegular() && n.State == table.Whole || n.IsSymlink() && n.Target != ""
	return v.caps.DearCopy && here && n.Size <= atHandMost && !n.AttrsUnknown && !n.Suspect && !v.pending.IsOpen(ino, n)
}

// remoteHome is where the backend has an inode.
type remoteHome struct {
	table.Link
	any    bool // it is anywhere at all
	vacant bool // and is to leave that place
}

// homeFor is where the backend has an inode, best as it is here, at a place where
// nothing is open or under way, and which it is to leave.
func (p *planner) homeFor(v *View, ino table.Ino, n *table.Inode) (found remoteHome) {
	if p.memo != nil {
		if found, known := p.memo.homes[ino]; known {
			return found
		}
		defer func() { p.memo.homes[ino] = found }()
	}
	best := -1
	for _, h := range n.RemoteLinks {
		rec := v.Record(h)
		rank := 0
		if rec.Ino != ino {
			rank = 1
		}
		if p.jobs.busy[h] == nil {
			rank += 2
		}
		if rec.Attempt == nil {
			rank += 4
		}
		if rec.Remote != nil && rec.Remote.ContentVersion == n.ContentVersion {
			rank += 8
		}
		if rank > best {
			found, best = remoteHome{h, true, rec.Ino != ino}, rank
		}
	}
	return found
}

// park is for names that wait for each other, as in an exchange: what one of
// them has at the backend stands aside, under a name that no program here sees.
// The record of that name leads on from there, after a crash too.
func (p *planner) park(v *View, l table.Link, via []table.Link) (verdict, *operation) {
	for _, l := range via[slices.Index(via, l):] {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Remote == nil || rec.Remote.Ino == rec.Ino || rec.Attempt != nil {
			continue
		}
		n := v.table.Inode(rec.Remote.Ino)
		if n == nil || len(n.Links) == 0 {
			continue
		}
		aside := table.Link{Dir: table.Root, Name: parked + v.operations.next()}
		at, ok := v.RemotePath(aside)
		if !ok {
			continue
		}
		s := &operation{link: aside, at: at, ino: rec.Remote.Ino, dir: n.IsDir(), cond: providers.IfAbsent()}
		if verdict, other := p.takeFrom(v, s, l, nil); verdict != verdictAgreed {
			return verdict, other
		}
		switch can := v.caps.Abilities; {
		case can.Has(providers.AbilityMove):
			s.verb = verbMove
		case s.dir:
			return p.planFlat(v, s, n)
		case can.Has(providers.AbilityCopy):
			s.verb = verbCopy
		default:
			s.verb, s.size = verbWrite, n.Size
		}
		return verdictReady, s
	}
	return verdictStuck, nil
}

// parked begins the names of what stands aside.
const parked = ".wsmount-parked-"

// standsAside reports whether a name that is nothing here is one under which another
// working copy has something stand aside, or had when it was killed: that is not for
// programs here either.
func (v *View) standsAside(l table.Link, rec table.Name) bool {
	return l.Dir == table.Root && strings.HasPrefix(l.Name, parked) && rec.Ino == 0 && rec.Remote == nil && v.engine.jobs.of[l] == nil
}
