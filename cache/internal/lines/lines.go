// Package lines merges two changes of one text, line by line, as git does.
//
// It is for a file that was changed in two places since they last agreed:
//
//	m := lines.Merge(base, ours, theirs, lines.Labels{Ours: "here", Theirs: "origin"})
//	if m.Conflicts == 0 {
//		write(m.Content)
//	}
//
// Bytes are taken as they are. A line ends after its newline, so lines that
// end in CR LF and in LF are different lines, and a last line without a newline
// differs from the same line with one. There is no encoding; whether something
// is text at all is for the caller to ask (Text).
//
// A merge is clean when every line of the base that both sides touched, or that
// one side touched right beside the other's change, was changed to the same by
// both. Whether it is, and what then stands between the markers, is what
// `git merge-file` says, to the byte: people and tools know its answers. So texts
// are compared as git compares them, also where that is a matter of taste: which of
// many equal lines is the one that was inserted (slide.go), which lines say too
// little to be matched (thin.go), and when the search for the smallest difference
// has taken long enough (search.go).
//
// Time is that of reading the texts where little differs. Where all does, it grows
// with the lines times their square root, or times 256 while that is more; texts
// without any line in common are no worse than equal ones. Memory is a copy of the
// texts, the result, and about a hundred bytes per line.
package lines

import "bytes"

// Merged is what two changes of one text make together.
type Merged struct {
	Content   []byte // with markers where Conflicts > 0
	Conflicts int
}

// Labels name the sides in the markers. An empty one leaves its marker bare. Base
// is for markers around the base's lines, which Merge does not show.
type Labels struct{ Ours, Base, Theirs string }

// Merge puts the changes from base to ours and from base to theirs together. It
// keeps none of the slices it is given and never returns one of them.
//
// Where they exclude each other the content has both, as `git merge-file -p`
// writes it: "<<<<<<< ours", "=======" and ">>>>>>> theirs" around them.
func Merge(base, ours, theirs []byte, l Labels) Merged {
	m := compare(base, ours, theirs)
	return Merged{Content: m.marked(l), Conflicts: m.conflicts()}
}

// Union is a merge that keeps both where they exclude each other, ours first,
// without markers, as `git merge-file --union` does: for logs and lists.
func Union(base, ours, theirs []byte) []byte {
	return compare(base, ours, theirs).united()
}

// sniffed is how far git looks for a NUL.
const sniffed = 8000

// Text says whether git takes the data for text: whether there is no NUL in
// its beginning. Merge also takes what is none, but its lines mean nothing.
func Text(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) < 0
}
