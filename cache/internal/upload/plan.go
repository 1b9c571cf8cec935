package upload

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// The planner finds the next operation for a name, by its record as it is at that moment. An
// operation depends on others: names below a directory wait for the directory, a directory that is
// to be deleted for the names below it, and a name whose remote content lives on under another
// name for its move there. Then the answer is the operation of that other name. All that the
// planner needs to know is in the table, so it plans the same after a crash.

// Verdict is the state of a name.
type Verdict uint8

const (
	Agreed Verdict = iota // nothing is to be done
	Ready                 // the operation can be made
	Busy                  // the operation is under way
	Stuck                 // it rests, is held, or waits for a name that does
	Open                  // a program is still writing it
)

// Planner finds the next operations of names.
type Planner struct {
	o      Options
	memo   *memo       // of the walk under way
	cut    bool        // a search for the cause of a wait ended early: see tooFar
	deep   bool        // no search ends early
	passed []table.Ino // of Unsettled, kept for its next search
}

// Options are the inputs of a planner beside the tree.
type Options struct {
	Capabilities providers.Capabilities
	Jobs         Begun // nil: nothing is under way
	// IsOpen reports whether a program is still writing content of an inode.
	IsOpen func(v *tree.View, ino table.Ino, n *table.Inode) bool
	NewID  func(*tree.View) string // a new operation id
}

// Begun tells of operations that were begun and are not done: Jobs.
type Begun interface {
	// Busy is the operation that is under way for a name, or nil.
	Busy(v *tree.View, l table.Link) *Operation
	// IsWaiting reports whether a name rests after a failure, or is held back.
	IsWaiting(v *tree.View, l table.Link) bool
}

// NewPlanner is a planner outside a walk.
func NewPlanner(o Options) *Planner { return &Planner{o: o} }

// Begin begins a walk through many names of one View, in which the tree stays as it is: facts
// found for one name are reused for the next. In a deep walk no search ends early. End ends it.
func (p *Planner) Begin(_ *tree.View, deep bool) { p.memo, p.deep = newMemo(), deep }

// End ends what Begin began.
func (p *Planner) End(*tree.View) { p.memo, p.deep = nil, false }

// Plan is the next operation towards the state that a name needs, if that is ready, and the one
// that is under way if it is busy. cut says that the search for the cause of a wait ended early: a
// deep walk may find more.
func (p *Planner) Plan(v *tree.View, l table.Link) (found Verdict, s *Operation, cut bool) {
	p.cut = false
	found, s = p.plan(v, l, nil)
	return found, s, p.cut
}

func (p *Planner) busy(v *tree.View, l table.Link) *Operation {
	if p.o.Jobs == nil {
		return nil
	}
	return p.o.Jobs.Busy(v, l)
}

func (p *Planner) isWaiting(v *tree.View, l table.Link) bool {
	return p.o.Jobs != nil && p.o.Jobs.IsWaiting(v, l)
}

// plan finds the next operation for a name. via are the names whose needs led here.
func (p *Planner) plan(v *tree.View, l table.Link, via []table.Link) (Verdict, *Operation) {
	if slices.Contains(via, l) {
		return p.park(v, l, via)
	}
	if busy := p.busy(v, l); busy != nil {
		return Busy, busy
	}
	if p.isWaiting(v, l) {
		return Stuck, nil
	}
	rec, ok := v.Name(l.Dir, l.Name)
	via = append(via, l)
	if !ok || !v.Differs(rec) {
		return Agreed, nil
	}
	if verdict, s := p.planUnsettled(v, l.Dir, via); verdict != Agreed {
		return verdict, s
	}
	if rec.Attempt != nil {
		return p.planResolve(v, l, rec, via)
	}
	at, home := v.RemotePath(l)
	if !home {
		return p.planParent(v, l, via)
	}
	s := &Operation{Link: l, At: at}
	if rec.Ino == 0 || rec.Local {
		return p.planGone(v, s, rec, via)
	}
	return p.planThere(v, s, rec, via)
}

// planParent is for a name in a directory that the remote does not have.
func (p *Planner) planParent(v *tree.View, l table.Link, via []table.Link) (Verdict, *Operation) {
	dir := v.Inode(l.Dir)
	switch {
	case dir == nil, len(dir.Links) == 0, p.local(v, dir.Links[0]):
		return Stuck, nil
	}
	if p.tooFar(v, via) {
		return Stuck, nil
	}
	verdict, s := p.plan(v, dir.Links[0], via)
	if verdict == Agreed {
		verdict = Stuck
	}
	return verdict, s
}

// tooFar ends the search for the cause of a wait: in a deep tree it would be repeated for each
// name on the way. Names further away have their own turn in the same walk, but for names that
// wait for each other in a ring, or that are not due: where no other operation is possible, the
// walk is repeated without a limit.
func (p *Planner) tooFar(v *tree.View, via []table.Link) bool {
	p.cut = p.cut || len(via) > planDepth
	return len(via) > planDepth && !p.deep
}

// planDepth is how many names most walks follow from one to the cause of its wait.
const planDepth = 3

func (p *Planner) local(v *tree.View, l table.Link) bool {
	rec, _ := v.Name(l.Dir, l.Name)
	return rec.Local
}

// planGone is for a name that was removed locally.
func (p *Planner) planGone(v *tree.View, s *Operation, rec table.Name, via []table.Link) (Verdict, *Operation) {
	if verdict, other := p.rescue(v, s.Link, rec.Remote.Ino, via); verdict != Agreed {
		return verdict, other
	}
	return p.planDelete(v, s, rec.Remote, via)
}

// planDelete removes the remote's entry under a name: the entries below it first.
func (p *Planner) planDelete(v *tree.View, s *Operation, base *table.Remote, via []table.Link) (Verdict, *Operation) {
	s.Verb, s.Ino, s.Cond = VerbDelete, base.Ino, Condition(base)
	if base.Kind != providers.KindDir {
		return Ready, s
	}
	s.Dir = true
	if verdict, other := p.planBelow(v, base.Ino, via); verdict != Agreed {
		return verdict, other
	}
	return Ready, s
}

// planBelow is for a directory that is to be empty at the remote.
func (p *Planner) planBelow(v *tree.View, dir table.Ino, via []table.Link) (found Verdict, s *Operation) {
	if dir == 0 {
		return Agreed, nil
	}
	if n := v.Inode(dir); n != nil && n.From != "" {
		return p.planPart(v, dir)
	}
	v.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote == nil && rec.Attempt == nil {
			return true
		}
		if p.tooFar(v, via) {
			found = Stuck
			return false
		}
		verdict, next := p.plan(v, table.Link{Dir: dir, Name: name}, via)
		switch {
		case verdict == Ready, found == Agreed:
			found, s = verdict, next
		}
		if verdict == Agreed {
			found = Stuck // it stays, and so does the directory
		}
		return found != Ready
	})
	return found, s
}

// Condition is that the remote still has the known entry.
func Condition(b *table.Remote) providers.Condition {
	switch {
	case b == nil:
		return providers.IfAbsent()
	case b.Kind == providers.KindDir:
		return providers.IfDir()
	}
	return providers.IfVersion(b.Version)
}

// rescue is for a name whose place at the remote another inode is about to take: the one that has
// it now may live on under another local name, and have no other remote place. Then the operation
// which that name needs comes first, or the one under way there.
func (p *Planner) rescue(v *tree.View, l table.Link, ino table.Ino, via []table.Link) (Verdict, *Operation) {
	n := v.Inode(ino)
	if n == nil || p.homeElse(v, n, l) {
		return Agreed, nil
	}
	for _, to := range n.Links {
		if to == l || p.local(v, to) {
			continue
		}
		verdict, s := p.plan(v, to, via)
		if verdict == Agreed || verdict == Open {
			verdict = Stuck
		}
		return verdict, s
	}
	return Agreed, nil
}

// homeElse reports whether the remote surely has an inode, as new as under a name, under another
// one too: no operation is under way there, which may be about to replace it.
func (p *Planner) homeElse(v *tree.View, n *table.Inode, l table.Link) bool {
	here := v.Record(l).Remote
	for _, h := range n.RemoteLinks {
		rec := v.Record(h)
		if h != l && rec.Attempt == nil && p.busy(v, h) == nil && here != nil && rec.Remote != nil && rec.Remote.ContentVersion >= here.ContentVersion {
			return true
		}
	}
	return false
}

// planThere is for a name that leads to an inode.
func (p *Planner) planThere(v *tree.View, s *Operation, rec table.Name, via []table.Link) (Verdict, *Operation) {
	n := v.Inode(rec.Ino)
	if n == nil {
		return Stuck, nil
	}
	s.Ino, s.Dir, s.Cond = rec.Ino, n.IsDir(), Condition(rec.Remote)
	if rec.Remote != nil && rec.Remote.Ino == rec.Ino {
		return p.planSame(v, s, rec.Remote, n)
	}
	if rec.Remote != nil {
		if verdict, other := p.rescue(v, s.Link, rec.Remote.Ino, via); verdict != Agreed {
			return verdict, other
		}
		if verdict, other := p.planReplace(v, s, rec.Remote, n, via); verdict != Agreed {
			return verdict, other
		}
	}
	if s.Dir {
		return p.planDir(v, s, n, via)
	}
	return p.planContent(v, s, n, via)
}

// planSame is for a name that the remote has in an older state.
func (p *Planner) planSame(v *tree.View, s *Operation, base *table.Remote, n *table.Inode) (Verdict, *Operation) {
	if n.IsDir() || n.ContentVersion == base.ContentVersion && !p.atHand(v, s.Ino, n) {
		s.Verb = VerbAttr
		return Ready, s
	}
	return p.planWrite(v, s, n)
}

// planWrite sends the content of an inode.
func (p *Planner) planWrite(v *tree.View, s *Operation, n *table.Inode) (Verdict, *Operation) {
	s.Verb, s.Size = VerbWrite, n.Size
	if p.o.IsOpen(v, s.Ino, n) && s.From == (table.Link{}) {
		return Open, nil
	}
	return Ready, s
}

// planReplace is for a name under which the remote has another entry that is not needed any more.
// A file that replaces a file needs no step before: its write has the condition.
func (p *Planner) planReplace(v *tree.View, s *Operation, base *table.Remote, n *table.Inode, via []table.Link) (Verdict, *Operation) {
	was := base.Kind == providers.KindDir
	switch {
	case !was && !s.Dir:
		return Agreed, nil
	case n.From != "":
		return p.planPart(v, s.Ino)
	case was && s.Dir && v.Inode(base.Ino) != nil && v.Inode(base.Ino).From != "":
		return p.planPart(v, base.Ino)
	case was && s.Dir && len(n.RemoteLinks) == 0:
		s.Verb = VerbAdopt
		return Ready, s
	case was && s.Dir && !p.o.Capabilities.Abilities.Has(providers.AbilityMove):
		if verdict, other := p.takeFrom(v, s, n.RemoteLinks[0], via); verdict != Agreed {
			return verdict, other
		}
		return p.planFlat(v, s, n)
	}
	gone := &Operation{Link: s.Link, At: s.At}
	return p.planDelete(v, gone, base, via)
}

// planDir is for a directory under a name that is free at the remote.
func (p *Planner) planDir(v *tree.View, s *Operation, n *table.Inode, via []table.Link) (Verdict, *Operation) {
	switch {
	case n.From != "":
		return p.planPart(v, s.Ino)
	case len(n.RemoteLinks) == 0:
		s.Verb = VerbMkdir
		return Ready, s
	}
	if verdict, other := p.takeFrom(v, s, n.RemoteLinks[0], via); verdict != Agreed {
		return verdict, other
	}
	if s.FromAt.Contains(s.At) { // one of the directories above must move first
		for dir := s.Link.Dir; dir != table.Root; {
			up := v.Inode(dir).Links
			if len(up) == 0 {
				return Stuck, nil
			}
			if verdict, other := p.plan(v, up[0], via); verdict != Agreed {
				return verdict, other
			}
			dir = up[0].Dir
		}
		return Stuck, nil
	}
	if !p.o.Capabilities.Abilities.Has(providers.AbilityMove) {
		return p.planFlat(v, s, n)
	}
	s.Verb = VerbMove
	return Ready, s
}

// planFlat is for a directory that the remote cannot rename: it parts from its place, once all
// entries there are known.
func (p *Planner) planFlat(v *tree.View, s *Operation, n *table.Inode) (Verdict, *Operation) {
	if n.Loaded {
		return p.planPart(v, s.Ino)
	}
	s.Verb, s.From = VerbEmpty, table.Link{}
	return Ready, s
}

// planResolve resolves the outcome of an attempt first.
func (p *Planner) planResolve(v *tree.View, l table.Link, rec table.Name, via []table.Link) (Verdict, *Operation) {
	a := rec.Attempt
	if a.Kind == AttemptGone {
		return p.plan(v, ParseLink(a.Other), via)
	}
	at, ok := v.RemotePath(l)
	if !ok {
		return Stuck, nil
	}
	s := &Operation{Verb: VerbResolve, Link: l, At: at, Attempt: a, Cond: Condition(rec.Remote)}
	switch a.Kind {
	case AttemptWrite, AttemptCopy, AttemptMkdir, AttemptDelete:
		s.Ino, _ = ParseSent(a.Other)
	case AttemptAttr:
		if rec.Remote != nil {
			s.Ino, s.Dir = rec.Remote.Ino, rec.Remote.Kind == providers.KindDir
		}
	case AttemptMove:
		s.From = ParseLink(a.Other)
		if verdict, other := p.planUnsettled(v, s.From.Dir, via); verdict != Agreed {
			return verdict, other
		}
		from, _ := v.Name(s.From.Dir, s.From.Name)
		if s.FromAt, ok = v.RemotePath(s.From); !ok {
			return Stuck, nil
		}
		if s.Source = from.Remote; s.Source != nil {
			s.Ino, s.Dir = s.Source.Ino, s.Source.Kind == providers.KindDir
		}
	}
	return Ready, s
}
