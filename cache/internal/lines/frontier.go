package lines

// A frontier is the progress of the search from one end: after n steps, the furthest position
// in a on each diagonal that n changed lines can reach. The frontier from the other end is the
// same in the sequences backwards.
type frontier struct {
	a, b    []int32
	reach   []int // by diagonal, from -len(b)-1 to len(a)+1
	lo, hi  int   // the diagonals of this step: every other from lo to hi
	falling bool  // whether they are visited from hi to lo
	ran     bool  // whether this step found a long run of equal lines
}

func newFrontier(a, b []int32, reach []int) *frontier {
	f := &frontier{a: a, b: b, reach: reach[:len(a)+len(b)+3]}
	f.set(0, 0)
	return f
}

func (f *frontier) at(diagonal int) int     { return f.reach[diagonal+len(f.b)+1] }
func (f *frontier) set(diagonal, reach int) { f.reach[diagonal+len(f.b)+1] = reach }

// order says how to walk the diagonals of this step: from first, until end.
func (f *frontier) order() (first, end, by int) {
	if f.falling {
		return f.hi, f.lo - 2, -2
	}
	return f.lo, f.hi + 2, 2
}

// widen sets the next step's diagonals: one more on each side, or one less where the sequence
// ends.
func (f *frontier) widen() {
	if f.lo > -len(f.b) {
		f.lo--
		f.set(f.lo-1, -1)
	} else {
		f.lo++
	}
	if f.hi < len(f.a) {
		f.hi++
		f.set(f.hi+1, -1)
	} else {
		f.hi--
	}
}

// step allows one more line to be changed. If asked to look for the other end's
// frontier, it stops at the first point where they meet.
func (f *frontier) step(other *frontier, look bool) (point, bool) {
	f.widen()
	f.ran = false
	between := len(f.a) - len(f.b)
	first, end, by := f.order()
	for k := first; k != end; k += by {
		x := f.advance(k)
		o := between - k
		if look && other.lo <= o && o <= other.hi && x+other.at(o) >= len(f.a) {
			return point{x, x - k}, true
		}
	}
	return point{}, false
}

// advance goes to the diagonal k from the better of its neighbours, and along it
// as long as lines are equal.
func (f *frontier) advance(k int) int {
	from := max(f.at(k-1)+1, f.at(k+1))
	x := from
	for x < len(f.a) && x-k < len(f.b) && f.a[x] == f.b[x-k] {
		x++
	}
	if x-from > longRun {
		f.ran = true
	}
	f.set(k, x)
	return x
}

// promising is the best point just after a long run of equal lines that is far ahead of the
// usual progress of so many steps.
func (f *frontier) promising(steps int) (point, bool) {
	var best point
	most := worthwhile * steps
	found := false
	first, end, by := f.order()
	for k := first; k != end; k += by {
		p := point{f.at(k), f.at(k) - k}
		// Far from the middle diagonal much remains to be changed.
		if gain := p.x + p.y - abs(k); gain > most && f.behindRun(p) {
			best, most, found = p, gain, true
		}
	}
	return best, found
}

// behindRun reports whether a long run of equal lines ends just before p.
func (f *frontier) behindRun(p point) bool {
	if p.x < longRun || p.x >= len(f.a) || p.y < longRun || p.y >= len(f.b) {
		return false
	}
	for i := 1; i <= longRun; i++ {
		if f.a[p.x-i] != f.b[p.y-i] {
			return false
		}
	}
	return true
}

// furthest is the point that leaves the fewest lines behind it.
func (f *frontier) furthest() point {
	best := point{-1, 0}
	first, end, by := f.order()
	for k := first; k != end; k += by {
		// A step may leave the sequences.
		x := min(f.at(k), len(f.a), len(f.b)+k)
		if p := (point{x, x - k}); p.x+p.y > best.x+best.y {
			best = p
		}
	}
	return best
}
