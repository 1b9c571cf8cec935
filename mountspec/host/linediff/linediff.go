// Package linediff shows a person the changes between two texts. It promises that no
// line of a text can hide itself, or another, from a reader of the difference.
//
//	for _, line := range linediff.Of(old, new) { fmt.Println(line) }
package linediff

import (
	"strconv"
	"strings"
)

// maxDiff bounds the table of the comparison, in cells. A larger difference is
// shown as one removed and one added block.
const maxDiff = 4 << 20

// Of compares two texts by lines: "-" goes, "+" comes, " " stays. Lines
// far from any change are left out.
func Of(a, b string) []string {
	x, y := lines(a), lines(b)
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	var out []string
	out = append(out, marked(" ", x[max(0, head-around):head])...)
	out = append(out, middle(x[head:len(x)-tail], y[head:len(y)-tail])...)
	return append(out, marked(" ", x[len(x)-tail:min(len(x), len(x)-tail+around)])...)
}

const around = 3

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// middle is the longest common subsequence, written out.
func middle(x, y []string) []string {
	if len(x)*len(y) > maxDiff {
		return append(marked("-", x), marked("+", y)...)
	}
	w := len(y) + 1
	common := make([]int32, (len(x)+1)*w) // of x[i:] and y[j:]
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, " "+Visible(x[i]))
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[(i+1)*w+j] >= common[i*w+j+1]:
			out = append(out, "-"+Visible(x[i]))
			i++
		default:
			out = append(out, "+"+Visible(y[j]))
			j++
		}
	}
	return out
}

func marked(mark string, list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, mark+Visible(s))
	}
	return out
}

// Visible escapes the characters that a terminal would act on: a manifest must not be able
// to hide a line of its own difference.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
