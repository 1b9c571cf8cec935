package lines

import "math/bits"

// How often a line stands in the other text decides whether it is searched.
const (
	absent  = iota // never: it cannot be matched
	usual          // as a line does that says where one is
	crowded        // so often that it says little: blank lines, lone braces
)

const (
	// Above this many times every line is crowded, however long the text.
	maxUsual = 1024
	// How far around a crowded line the search for its like goes.
	vicinity = 100
	// A crowded line is left out where there are more than this many absent
	// lines around it for each crowded one, itself counted twice.
	drownedBy = 3
)

// thin appends to chosen the lines of a span that are worth searching. Lines the
// other text does not have are left out, and with them the crowded ones in their
// midst: a blank line inside a new paragraph shall not be matched with any other
// blank line. What is left out counts as changed, unless slide finds otherwise.
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

// drowned says whether the crowded line i stands in the midst of absent ones:
// some before it and some behind it before the next usual line, and many.
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
