package upload

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// takeFrom makes a remote link the source of an operation, once no attempt is open there.
func (p *Planner) takeFrom(v *tree.View, s *Operation, home table.Link, via []table.Link) (Verdict, *Operation) {
	if busy := p.busy(v, home); busy != nil {
		return Busy, busy
	}
	rec, _ := v.Name(home.Dir, home.Name)
	if rec.Attempt != nil {
		return p.plan(v, home, via)
	}
	if verdict, other := p.planUnsettled(v, home.Dir, via); verdict != Agreed {
		return verdict, other
	}
	at, ok := v.RemotePath(home)
	if !ok || rec.Remote == nil {
		return Stuck, nil
	}
	s.From, s.FromAt, s.Source = home, at, rec.Remote
	return Agreed, nil
}

// planContent is for a file or link under a name that is new to it.
func (p *Planner) planContent(v *tree.View, s *Operation, n *table.Inode, via []table.Link) (Verdict, *Operation) {
	home := p.HomeFor(v, s.Ino, n)
	if !home.Any {
		return p.planWrite(v, s, n)
	}
	if verdict, other := p.takeFrom(v, s, home.Link, via); verdict != Agreed {
		return verdict, other
	}
	fresh := s.Source.ContentVersion == n.ContentVersion
	switch {
	case home.Vacant && p.o.Capabilities.Abilities.Has(providers.AbilityMove) && (fresh || n.Suspect || p.o.IsOpen(v, s.Ino, n)):
		s.Verb = VerbMove
	case !fresh || !p.o.Capabilities.Abilities.Has(providers.AbilityCopy) || p.atHand(v, s.Ino, n):
		return p.planWrite(v, s, n)
	default:
		s.Verb = VerbCopy
	}
	return Ready, s
}

// atHandMost is the size up to which local content is written again rather than copied by a remote
// for which that is dear.
const atHandMost = 64 << 10

// atHand reports whether all that the remote would have of an inode is local, and writing it is
// cheaper than to have the remote copy it.
func (p *Planner) atHand(v *tree.View, ino table.Ino, n *table.Inode) bool {
	here := n.IsRegular() && n.State == table.Whole || n.IsSymlink() && n.Target != ""
	return p.o.Capabilities.DearCopy && here && n.Size <= atHandMost && !n.AttrsUnknown && !n.Suspect && !p.o.IsOpen(v, ino, n)
}

// RemoteHome is the remote place of an inode.
type RemoteHome struct {
	table.Link
	Any    bool // it is anywhere at all
	Vacant bool // and is to leave that place
}

// HomeFor is the best remote place of an inode: in its local state, without an open attempt or an
// operation under way, and one that it is to leave.
func (p *Planner) HomeFor(v *tree.View, ino table.Ino, n *table.Inode) (found RemoteHome) {
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
		if p.busy(v, h) == nil {
			rank += 2
		}
		if rec.Attempt == nil {
			rank += 4
		}
		if rec.Remote != nil && rec.Remote.ContentVersion == n.ContentVersion {
			rank += 8
		}
		if rank > best {
			found, best = RemoteHome{h, true, rec.Ino != ino}, rank
		}
	}
	return found
}

// park is for names that wait for each other, as in an exchange: the remote's entry of one of them
// stands aside, under a name that no program of this mount sees. The record of that name leads on
// from there, after a crash too.
func (p *Planner) park(v *tree.View, l table.Link, via []table.Link) (Verdict, *Operation) {
	for _, l := range via[slices.Index(via, l):] {
		rec, _ := v.Name(l.Dir, l.Name)
		if rec.Remote == nil || rec.Remote.Ino == rec.Ino || rec.Attempt != nil {
			continue
		}
		n := v.Inode(rec.Remote.Ino)
		if n == nil || len(n.Links) == 0 {
			continue
		}
		aside := table.Link{Dir: table.Root, Name: Parked + p.o.NewID(v)}
		at, ok := v.RemotePath(aside)
		if !ok {
			continue
		}
		s := &Operation{Link: aside, At: at, Ino: rec.Remote.Ino, Dir: n.IsDir(), Cond: providers.IfAbsent()}
		if verdict, other := p.takeFrom(v, s, l, nil); verdict != Agreed {
			return verdict, other
		}
		switch can := p.o.Capabilities.Abilities; {
		case can.Has(providers.AbilityMove):
			s.Verb = VerbMove
		case s.Dir:
			return p.planFlat(v, s, n)
		case can.Has(providers.AbilityCopy):
			s.Verb = VerbCopy
		default:
			s.Verb, s.Size = VerbWrite, n.Size
		}
		return Ready, s
	}
	return Stuck, nil
}

// Parked begins the names of entries that stand aside.
const Parked = ".wsmount-parked-"
