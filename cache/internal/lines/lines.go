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
// both. Where it is not clean, and what then stands between the markers, is what
// `git merge-file` would say, to the byte: people and tools know its answers.
// That needs git's ways of comparing, also where they are a matter of taste:
// which of many equal lines is the one that was inserted (slide.go), and when to
// stop searching for the shortest difference (search.go).
//
// Time is linear in the texts plus what differs: about the number of differing
// lines times the smaller of their number and the square root of the lines (at
// least 256), so that two texts without anything in common cost no more than two
// that are alike. Memory is some hundred bytes per line, next to the result.
package lines

import "bytes"

// Merged is what two changes of one text make together.
type Merged struct {
	Content   []byte // with markers where Conflicts > 0
	Conflicts int
}

// Labels name the sides in the markers. An empty one leaves its marker bare.
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
