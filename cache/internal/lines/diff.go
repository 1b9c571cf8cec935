package lines

// A hunk is a difference between two texts: lines a of one stand in place of lines b of the
// other. One of them may be empty. Between two hunks there is at least one line that both have.
type hunk struct{ a, b span }

// A differ compares sequences of line numbers; it keeps its buffers for the next comparison.
type differ struct {
	countA, countB   []int32 // by line number; all zero between comparisons
	foreReach        []int   // see frontier
	backReach        []int
	keptA, keptB     []int // pairs of lines that stay, in order
	chosenA, chosenB []int // lines that are searched, see thin
}

func newDiffer(numbers int) *differ {
	return &differ{countA: make([]int32, numbers), countB: make([]int32, numbers)}
}

// diff are the differences between a and b, in order.
func (d *differ) diff(a, b []int32) []hunk {
	d.match(a, b)
	inA, inB := grouping{a, d.keptA}, grouping{b, d.keptB}
	inA.slide(inB)
	inB.slide(inA)
	return hunksOf(inA, inB)
}

// match finds the lines that a and b have in common: keptA[i] of a is keptB[i] of b. Equal
// lines at both ends match without a search; the search is between them.
func (d *differ) match(a, b []int32) {
	d.keptA, d.keptB = d.keptA[:0], d.keptB[:0]
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for i := range head {
		d.keep(i, i)
	}
	d.between(a, b, span{head, len(a) - tail}, span{head, len(b) - tail})
	for i := tail; i > 0; i-- {
		d.keep(len(a)-i, len(b)-i)
	}
}

func (d *differ) keep(i, j int) {
	d.keptA = append(d.keptA, i)
	d.keptB = append(d.keptB, j)
}

// between matches a span of a with one of b by searching the lines that thin chooses.
func (d *differ) between(a, b []int32, inA, inB span) {
	if inA.len() == 0 || inB.len() == 0 {
		return
	}
	tally(a, d.countA, 1)
	tally(b, d.countB, 1)
	d.chosenA = thin(d.chosenA[:0], a, inA, d.countB)
	d.chosenB = thin(d.chosenB[:0], b, inB, d.countA)
	tally(a, d.countA, -1)
	tally(b, d.countB, -1)

	s := d.newSearch(pick(a, d.chosenA), pick(b, d.chosenB))
	s.keep = func(i, j int) { d.keep(d.chosenA[i], d.chosenB[j]) }
	s.within(span{0, len(s.a)}, span{0, len(s.b)}, false)
}

func tally(ids []int32, count []int32, by int32) {
	for _, id := range ids {
		count[id] += by
	}
}

func pick(ids []int32, chosen []int) []int32 {
	picked := make([]int32, len(chosen))
	for i, at := range chosen {
		picked[i] = ids[at]
	}
	return picked
}

// hunksOf are the hunks between lines that stay.
func hunksOf(inA, inB grouping) []hunk {
	var hunks []hunk
	for g := range len(inA.kept) + 1 {
		a, b := inA.group(g), inB.group(g)
		if a.len() > 0 || b.len() > 0 {
			hunks = append(hunks, hunk{a, b})
		}
	}
	return hunks
}
