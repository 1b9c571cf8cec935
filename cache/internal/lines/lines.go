// Package lines merges two changes of one text, line by line, as git does.
//
// It is for a file that was changed in two places since they last agreed:
//
//	m := lines.Merge(base, ours, theirs, lines.Labels{Ours: "here", Theirs: "origin"})
//	if m.Conflicts == 0 {
//		write(m.Content)
//	}
//
// Bytes are taken as they are. A line ends after its newline, so lines that end in CR LF and in
// LF are different lines, and a last line without a newline differs from the same line with
// one. There is no encoding; the caller asks whether the content is text at all (Text).
//
// A merge is clean when every line of the base that both sides touched, or that one side
// touched right beside the other's change, was changed to the same by both. Both that decision
// and the result with its markers equal those of `git merge-file`, to the byte: people and
// tools know them. So texts are compared as git compares them, also in matters of taste: which
// of many equal lines counts as inserted (slide.go), which lines are too common to be matched
// (thin.go), and when the search for the smallest difference is cut off (search.go).
//
// Time is that of reading the texts if they differ little. If they differ much, it grows with
// the lines times their square root, or times 256 while that is more; texts without a common
// line cost no more than equal ones. Memory is a copy of the texts, the result, and about a
// hundred bytes per line.
package lines

import "bytes"

// Merged is the result of a merge of two changes of one text.
type Merged struct {
	Content   []byte // with markers where Conflicts > 0
	Conflicts int
}

// Labels name the sides in the markers. An empty one leaves its marker bare. Base is for
// markers around the base's lines, which Merge does not write.
type Labels struct{ Ours, Base, Theirs string }

// Merge puts the changes from base to ours and from base to theirs together. It
// keeps none of the slices it is given and never returns one of them.
//
// Where they conflict the content has both, as `git merge-file -p` writes it: "<<<<<<< ours",
// "=======" and ">>>>>>> theirs" around them.
func Merge(base, ours, theirs []byte, l Labels) Merged {
	m := compare(base, ours, theirs)
	return Merged{Content: m.marked(l), Conflicts: m.conflicts()}
}

// Union is a merge that keeps both sides of a conflict, ours first, without markers, as `git
// merge-file --union` does: for logs and lists.
func Union(base, ours, theirs []byte) []byte {
	return compare(base, ours, theirs).united()
}

// sniffed is the number of bytes in which git looks for a NUL.
const sniffed = 8000

// Text reports whether git treats the data as text: no NUL in its beginning. Merge also accepts
// other data, but its lines mean nothing.
func Text(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) < 0
}
