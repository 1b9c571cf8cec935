package upload

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Unsettled finds the reason why the remote place of a directory is not known: it, or one above,
// hands names over, or was being renamed when the answer got lost. 0 and no name: there is none.
func (p *Planner) Unsettled(v *tree.View, dir table.Ino) (handing table.Ino, moving table.Link) {
	passed := p.passed[:0]
	for {
		n := v.Inode(dir)
		calm := p.memo.isCalm(dir)
		switch {
		case n == nil:
			return 0, table.Link{}
		case n.From != "":
			return dir, table.Link{}
		case calm || dir == table.Root || len(n.RemoteLinks) == 0:
			p.memo.areCalm(passed)
			p.passed = passed
			return 0, table.Link{}
		}
		passed = append(passed, dir)
		home := n.RemoteLinks[0]
		if a := v.Record(home).Attempt; a != nil && (a.Kind == AttemptMove || a.Kind == AttemptGone || a.Kind == AttemptSet) {
			return 0, home
		}
		dir = home.Dir
	}
}

// planUnsettled deals with that first; Agreed: there is no such reason.
func (p *Planner) planUnsettled(v *tree.View, dir table.Ino, via []table.Link) (Verdict, *Operation) {
	handing, moving := p.Unsettled(v, dir)
	switch {
	case handing != 0:
		return p.planPart(v, handing)
	case moving == (table.Link{}):
		return Agreed, nil
	}
	verdict, s := p.plan(v, moving, via)
	if verdict == Agreed {
		verdict = Stuck
	}
	return verdict, s
}

// planPart parts a directory from its place, or continues a handing over.
func (p *Planner) planPart(v *tree.View, dir table.Ino) (Verdict, *Operation) {
	l := table.Link{Dir: dir} // no name: it is about all of them
	if busy := p.busy(v, l); busy != nil {
		return Busy, busy
	}
	if p.isWaiting(v, l) {
		return Stuck, nil
	}
	s := &Operation{Verb: VerbPart, Link: l, Ino: dir, Dir: true}
	if n := v.Inode(dir); len(n.RemoteLinks) > 0 {
		s.At, _ = v.RemotePath(n.RemoteLinks[0])
	}
	return Ready, s
}

// memo keeps the findings of a walk, which stay true for as long as the walk keeps the lock.
type memo struct {
	calm  map[table.Ino]struct{}   // directories with nothing unsettled above
	homes map[table.Ino]RemoteHome // of HomeFor; an operation that began since may be under way at one, which takeFrom sees
}

func newMemo() *memo { return &memo{map[table.Ino]struct{}{}, map[table.Ino]RemoteHome{}} }

func (m *memo) isCalm(dir table.Ino) bool {
	if m == nil {
		return false
	}
	_, calm := m.calm[dir]
	return calm
}

func (m *memo) areCalm(dirs []table.Ino) {
	if m == nil {
		return
	}
	for _, dir := range dirs {
		m.calm[dir] = struct{}{}
	}
}
