package lines

import "bytes"

// A text is a file cut into lines. Lines are compared by their numbers only:
// equal lines have equal numbers in all texts that were cut by one numbering.
type text struct {
	data []byte
	ends []int // where each line ends, after its newline
	ids  []int32
}

// A span is the lines from lo up to, but not including, hi.
type span struct{ lo, hi int }

func (s span) len() int { return s.hi - s.lo }

// plus is the span n lines further down.
func (s span) plus(n int) span { return span{s.lo + n, s.hi + n} }

// A numbering gives each different line a number, from 0 in order of appearance.
type numbering map[string]int32

// cut is the text of data. It keeps data.
func (n numbering) cut(data []byte) text {
	lines := bytes.Count(data, newline) + 1
	t := text{data: data, ends: make([]int, 0, lines), ids: make([]int32, 0, lines)}
	// One copy for all keys: a key per line would be an allocation per line.
	whole := string(data)
	for start := 0; start < len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		t.ends = append(t.ends, end)
		t.ids = append(t.ids, n.of(whole[start:end]))
		start = end
	}
	return t
}

func (n numbering) of(line string) int32 {
	id, known := n[line]
	if !known {
		id = int32(len(n))
		n[line] = id
	}
	return id
}

// of are the numbers of a span's lines.
func (t *text) of(s span) []int32 { return t.ids[s.lo:s.hi] }

// bytes are the lines of a span, as in the file.
func (t *text) bytes(s span) []byte {
	if s.len() <= 0 {
		return nil
	}
	return t.data[t.start(s.lo):t.ends[s.hi-1]]
}

func (t *text) start(line int) int {
	if line == 0 {
		return 0
	}
	return t.ends[line-1]
}

var (
	newline = []byte("\n")
	crlf    = []byte("\r\n")
)

// A lineEnd is how a line ends.
type lineEnd int

const (
	unknownEnd lineEnd = iota
	endsLF
	endsCRLF
)

// endAt is how a line ends. Only the last may have no end.
func (t *text) endAt(line int) lineEnd {
	if line >= len(t.ends) {
		return unknownEnd
	}
	b := t.bytes(span{line, line + 1})
	switch {
	case bytes.HasSuffix(b, crlf):
		return endsCRLF
	case bytes.HasSuffix(b, newline):
		return endsLF
	}
	return unknownEnd
}
