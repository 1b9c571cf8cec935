package lines

import "slices"

// A choice says whose lines a region gets.
type choice int

const (
	takeOurs choice = iota
	takeTheirs
	takeBoth // they exclude each other
	takeSame // they are equal
)

// A region is lines of ours, the lines of theirs that stand for them, and what to
// take. What is in no region, no one changed or both changed alike: ours has it.
type region struct {
	choice       choice
	ours, theirs span
}

// A merge is three texts and what to make of them.
type merge struct {
	base, ours, theirs text
	regions            []region
}

func compare(base, ours, theirs []byte) *merge {
	n := make(numbering)
	m := &merge{base: n.cut(base), ours: n.cut(ours), theirs: n.cut(theirs)}
	d := newDiffer(len(n))
	m.pair(d.diff(m.base.ids, m.ours.ids), d.diff(m.base.ids, m.theirs.ids))
	m.refine(d)
	m.join()
	return m
}

func (m *merge) conflicts() int {
	n := 0
	for _, r := range m.regions {
		if r.choice == takeBoth {
			n++
		}
	}
	return n
}

// pair makes regions of both sides' hunks, each against the base (a). Hunks of
// the two sides that overlap or touch make one.
func (m *merge) pair(ours, theirs []hunk) {
	var movedOurs, movedTheirs int // how far lines behind the last hunks are moved
	for len(ours)+len(theirs) > 0 {
		in, nOurs, nTheirs := cluster(ours, theirs)
		o, t := ours[:nOurs], theirs[:nTheirs]
		ours, theirs = ours[nOurs:], theirs[nTheirs:]

		var r region
		r.ours, movedOurs = image(in, o, movedOurs)
		r.theirs, movedTheirs = image(in, t, movedTheirs)
		switch {
		case nTheirs == 0:
			r.choice = takeOurs
		case nOurs == 0:
			r.choice = takeTheirs
		case m.alike(o, t):
			continue
		default:
			r.choice = takeBoth
		}
		m.regions = append(m.regions, r)
	}
}

// cluster takes the first hunk and all that hang together with it: how many there
// are of each side, and the lines of the base from the first to the last of them.
func cluster(ours, theirs []hunk) (in span, nOurs, nTheirs int) {
	if len(theirs) == 0 || len(ours) > 0 && ours[0].a.lo <= theirs[0].a.lo {
		in = ours[0].a
	} else {
		in = theirs[0].a
	}
	for {
		switch {
		case nOurs < len(ours) && ours[nOurs].a.lo <= in.hi:
			in.hi = max(in.hi, ours[nOurs].a.hi)
			nOurs++
		case nTheirs < len(theirs) && theirs[nTheirs].a.lo <= in.hi:
			in.hi = max(in.hi, theirs[nTheirs].a.hi)
			nTheirs++
		default:
			return in, nOurs, nTheirs
		}
	}
}

// image is where one side has the lines of the base, with its hunks among them.
// Lines before them are moved by the given number, lines behind by the returned.
func image(in span, hunks []hunk, moved int) (span, int) {
	at := span{in.lo + moved, in.hi + moved}
	for _, h := range hunks {
		grown := h.b.len() - h.a.len()
		at.hi += grown
		moved += grown
	}
	return at, moved
}

// alike says whether both sides did the same: one hunk each, and the same one.
func (m *merge) alike(o, t []hunk) bool {
	return len(o) == 1 && len(t) == 1 && o[0].a == t[0].a &&
		slices.Equal(m.ours.of(o[0].b), m.theirs.of(t[0].b))
}

// refine narrows conflicts to what differs between the two sides: they may have
// changed much alike, and all of it.
func (m *merge) refine(d *differ) {
	var refined []region
	for _, r := range m.regions {
		if r.choice != takeBoth || r.ours.len() == 0 || r.theirs.len() == 0 {
			refined = append(refined, r)
			continue
		}
		hunks := d.diff(m.ours.of(r.ours), m.theirs.of(r.theirs))
		if len(hunks) == 0 {
			r.choice = takeSame
			refined = append(refined, r)
		}
		for _, h := range hunks {
			refined = append(refined, region{takeBoth, h.a.plus(r.ours.lo), h.b.plus(r.theirs.lo)})
		}
	}
	m.regions = refined
}

// Between two conflicts there are more lines than this, or else they make one:
// it reads easier than markers around so little.
const minApart = 3

// join makes one conflict of two between which nothing is that would part them:
// a few lines, or only lines without a letter or digit.
func (m *merge) join() {
	joined := m.regions[:0]
	for _, r := range m.regions {
		if n := len(joined); n > 0 && r.choice == takeBoth && joined[n-1].choice == takeBoth &&
			!m.parts(span{joined[n-1].ours.hi, r.ours.lo}) {
			joined[n-1].ours.hi = r.ours.hi
			joined[n-1].theirs.hi = r.theirs.hi
			continue
		}
		joined = append(joined, r)
	}
	m.regions = joined
}

// parts says whether lines of ours are enough to part two conflicts.
func (m *merge) parts(s span) bool {
	return s.len() > minApart && slices.ContainsFunc(m.ours.bytes(s), alphanumeric)
}

// alphanumeric goes by ASCII: what other bytes mean is not known.
func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
