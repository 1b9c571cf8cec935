package lines

import "slices"

// A choice is the side whose lines a region gets.
type choice int

const (
	takeOurs choice = iota
	takeTheirs
	takeBoth // they conflict
	takeSame // they are equal
)

// A region is lines of ours, the corresponding lines of theirs, and the choice. Lines in no
// region are unchanged, or changed alike on both sides: they are taken from ours.
type region struct {
	choice       choice
	ours, theirs span
}

// A merge is three texts and the regions in which they differ.
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
	var movedOurs, movedTheirs int // offset of lines after the last hunks
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

// cluster takes the first hunk and all that overlap or touch it or each other: their number on
// each side, and the base's lines from the first to the last of them.
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

// image is the span of one side that corresponds to lines of the base, with its hunks among
// them. Lines before them are offset by the given number, lines after them by the returned one.
func image(in span, hunks []hunk, moved int) (span, int) {
	at := span{in.lo + moved, in.hi + moved}
	for _, h := range hunks {
		grown := h.b.len() - h.a.len()
		at.hi += grown
		moved += grown
	}
	return at, moved
}

// alike reports whether both sides made the same change: one equal hunk each.
func (m *merge) alike(o, t []hunk) bool {
	return len(o) == 1 && len(t) == 1 && o[0].a == t[0].a &&
		slices.Equal(m.ours.of(o[0].b), m.theirs.of(t[0].b))
}

// refine narrows conflicts to the differences between the two sides: these may have changed
// many of the lines, or all, alike.
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

// Conflicts with no more lines than this between them become one: that reads easier than
// markers around so few lines.
const minApart = 3

// join makes one conflict of two that too little separates: a few lines, or only lines without
// a letter or digit.
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

// parts reports whether lines of ours are enough to separate two conflicts.
func (m *merge) parts(s span) bool {
	return s.len() > minApart && slices.ContainsFunc(m.ours.bytes(s), alphanumeric)
}

// alphanumeric goes by ASCII: the encoding of other bytes is unknown.
func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
