package lines

// Bounds of a search in texts that differ much.
const (
	minPatience = 256 // steps before it gives up, at least
	longRun     = 20  // consecutive equal lines: no accident
	worthwhile  = 4   // lines per step that a point must have gained to be chosen early
)

// A search finds the lines two sequences have in common: Myers' "An O(ND) Difference Algorithm
// and Its Variations", in linear space. It looks for the middle of a shortest path from both
// ends at once, and then in the same manner for the paths before and after that middle.
//
// If that takes too long, the furthest point of either side is taken as the middle. The path to
// it is known to be short then; from it on the search begins anew.
type search struct {
	a, b                 []int32
	aBack, bBack         []int32 // the same backwards
	foreReach, backReach []int
	patience             int // steps after which it gives up
	keep                 func(i, j int)
}

func (d *differ) newSearch(a, b []int32) *search {
	ways := len(a) + len(b) + 3
	if len(d.foreReach) < ways {
		d.foreReach, d.backReach = make([]int, ways), make([]int, ways)
	}
	return &search{
		a: a, b: b, aBack: backwards(a), bBack: backwards(b),
		foreReach: d.foreReach, backReach: d.backReach,
		patience: max(rootish(ways), minPatience),
	}
}

func backwards(ids []int32) []int32 {
	turned := make([]int32, len(ids))
	for i, id := range ids {
		turned[len(ids)-1-i] = id
	}
	return turned
}

// within keeps the common lines of spans of a and b, in order. short: the difference is known
// to be small, and the search does not give up.
func (s *search) within(a, b span, short bool) {
	for a.len() > 0 && b.len() > 0 && s.a[a.lo] == s.b[b.lo] {
		s.keep(a.lo, b.lo)
		a.lo++
		b.lo++
	}
	tail := 0
	for a.len() > 0 && b.len() > 0 && s.a[a.hi-1] == s.b[b.hi-1] {
		a.hi--
		b.hi--
		tail++
	}
	if a.len() > 0 && b.len() > 0 {
		m := s.middle(a, b, short)
		s.within(span{a.lo, a.lo + m.x}, span{b.lo, b.lo + m.y}, m.shortBefore)
		s.within(span{a.lo + m.x, a.hi}, span{b.lo + m.y, b.hi}, m.shortBehind)
	}
	for i := range tail {
		s.keep(a.hi+i, b.hi+i)
	}
}

// A point is x lines into one span and y into the other, and on the diagonal x-y.
type point struct{ x, y int }

// A middle is the point that divides a search, and which of its parts are known to be short.
type middle struct {
	point
	shortBefore, shortBehind bool
}

// middle divides the search through two spans.
func (s *search) middle(a, b span, short bool) middle {
	end := point{a.len(), b.len()}
	fore := newFrontier(s.a[a.lo:a.hi], s.b[b.lo:b.hi], s.foreReach)
	back := newFrontier(part(s.aBack, a), part(s.bBack, b), s.backReach)
	// Both ends look at the diagonals in the same order, seen from one place.
	fore.falling = true
	for steps := 1; ; steps++ {
		odd := (end.x-end.y)&1 != 0
		if p, met := fore.step(back, odd); met {
			return middle{p, true, true}
		}
		if p, met := back.step(fore, !odd); met {
			return middle{p.from(end), true, true}
		}
		if short {
			continue
		}
		if m, ok := s.enough(fore, back, end, steps); ok {
			return m
		}
	}
}

// enough divides a search before its ends have met, if one of them came unusually far or both
// took too long.
func (s *search) enough(fore, back *frontier, end point, steps int) (middle, bool) {
	if steps > minPatience && (fore.ran || back.ran) {
		if p, ok := fore.promising(steps); ok {
			return middle{p, true, false}, true
		}
		if p, ok := back.promising(steps); ok {
			return middle{p.from(end), false, true}, true
		}
	}
	if steps < s.patience {
		return middle{}, false
	}
	p, q := fore.furthest(), back.furthest()
	if q.x+q.y < p.x+p.y {
		return middle{p, true, false}, true
	}
	return middle{q.from(end), false, true}, true
}

// from is the same point seen from the other end.
func (p point) from(end point) point { return point{end.x - p.x, end.y - p.y} }

// part is a span of a sequence, in the sequence backwards.
func part(turned []int32, s span) []int32 {
	return turned[len(turned)-s.hi : len(turned)-s.lo]
}
