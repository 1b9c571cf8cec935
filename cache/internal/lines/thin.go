package lines

import "math/bits"

// The frequency of a line in the other text decides whether it is searched.
const (
	absent  = iota // never: it cannot be matched
	usual          // few times: it marks a place
	crowded        // too common to mark a place: blank lines, lone braces
)

const (
	// A line that occurs this often is crowded, however long the text.
	maxUsual = 1024
	// How many lines around a crowded line are counted.
	vicinity = 100
	// A crowded line is left out if more than this many absent lines are around it for each
	// crowded one, itself counted twice.
	drownedBy = 3
)

// thin appends to chosen the lines of a span that are worth searching. Lines that the other
// text lacks are left out, and with them the crowded ones among them: a blank line inside a new
// paragraph must not be matched with any other blank line. Lines left out count as changed,
// unless slide finds otherwise.
func thin(chosen []int, ids []int32, in span, inOther []int32) []int {
	limit := int32(min(rootish(len(ids)), maxUsual))
	ranks := make([]uint8, in.len())
	for i := range ranks {
		switch n := inOther[ids[in.lo+i]]; {
		case n == 0:
			ranks[i] = absent
		case n >= limit:
			ranks[i] = crowded
		default:
			ranks[i] = usual
		}
	}
	for i, rank := range ranks {
		if rank == usual || rank == crowded && !drowned(ranks, i) {
			chosen = append(chosen, in.lo+i)
		}
	}
	return chosen
}

// drowned reports whether the crowded line i stands among absent ones: some before it and some
// after it up to the next usual line, and many.
func drowned(ranks []uint8, i int) bool {
	crowd, gone := 2, 0
	for _, step := range []int{-1, 1} {
		before := gone
		for j := i + step; j >= 0 && j < len(ranks) && abs(j-i) <= vicinity && ranks[j] != usual; j += step {
			if ranks[j] == absent {
				gone++
			} else {
				crowd++
			}
		}
		if gone == before {
			return false
		}
	}
	return gone > drownedBy*crowd
}

// rootish is a power of two between the square root and its double.
func rootish(n int) int { return 1 << ((bits.Len(uint(n)) + 1) / 2) }

func abs(n int) int { return max(n, -n) }
