package content

import "slices"

// ranges is a set of bytes: ascending, disjoint, not touching.
type ranges [][2]int64

// add puts [from, to) into the set.
func (r *ranges) add(from, to int64) {
	if from >= to {
		return
	}
	s := *r
	i := 0
	for i < len(s) && s[i][1] < from {
		i++
	}
	j := i
	for j < len(s) && s[j][0] <= to {
		from, to = min(from, s[j][0]), max(to, s[j][1])
		j++
	}
	*r = slices.Replace(s, i, j, [2]int64{from, to})
}

// gap is the first byte of [from, to) that is not in the set.
func (r ranges) gap(from, to int64) (int64, bool) {
	for _, s := range r {
		if s[0] <= from && from < s[1] {
			from = s[1]
		}
	}
	return from, from < to
}
