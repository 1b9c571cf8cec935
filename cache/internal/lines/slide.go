package lines

// A grouping is a text of which some lines are kept; the g-th group is the changed lines
// between the kept line before the g-th and the g-th. There is one group more than kept lines,
// and most are empty. In two texts with the same kept lines, groups with the same number stand
// beside each other.
//
// Moving a group over a kept line means that another, equal line is kept instead, with the
// group on its other side: it has the number of that side then, and includes the changed lines
// there.
type grouping struct {
	ids  []int32
	kept []int
}

func (t grouping) group(g int) span {
	s := span{0, len(t.ids)}
	if g > 0 {
		s.lo = t.kept[g-1] + 1
	}
	if g < len(t.kept) {
		s.hi = t.kept[g]
	}
	return s
}

// slide moves the groups of t where that keeps the result: one that begins with a line equal to
// the line after it may as well stand a line further down, one that ends with a line equal to
// the line before it a line further up.
//
// Of all its possible places a group gets the last one where beside has changed lines too, so
// that they make one hunk, or else the last one. Groups that meet in a move become one.
func (t grouping) slide(beside grouping) {
	for g := 0; g <= len(t.kept); g++ {
		if t.group(g).len() == 0 {
			continue
		}
		var paired int
		g, paired = t.settle(g, beside)
		for paired >= 0 && g > paired {
			g, _ = t.up(g)
		}
	}
}

// settle moves a group up as far as it goes and then down as far as it goes, over and over
// while that makes it meet others. It returns the group's number, and the last one at which it
// stood beside changed lines, or -1.
func (t grouping) settle(g int, beside grouping) (last, paired int) {
	for {
		size := t.group(g).len()
		for moved := true; moved; {
			g, moved = t.up(g)
		}
		paired = -1
		for moved := true; moved; {
			if beside.group(g).len() > 0 {
				paired = g
			}
			g, moved = t.down(g)
		}
		if t.group(g).len() == size {
			return g, paired
		}
	}
}

// up moves a group over the line before it, if it can.
func (t grouping) up(g int) (int, bool) {
	at := t.group(g)
	if g == 0 || t.ids[at.lo-1] != t.ids[at.hi-1] {
		return g, false
	}
	t.kept[g-1] = at.hi - 1
	return g - 1, true
}

// down moves a group over the line after it, if it can.
func (t grouping) down(g int) (int, bool) {
	at := t.group(g)
	if g == len(t.kept) || t.ids[at.lo] != t.ids[at.hi] {
		return g, false
	}
	t.kept[g] = at.lo
	return g + 1, true
}
