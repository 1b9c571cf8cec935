package mountspec

import (
	"bytes"
	"fmt"
	"io"
)

// MaxFrontmatter is the largest frontmatter that is looked at, in bytes. It is
// checked before anything is parsed.
const MaxFrontmatter = 1 << 20

// Source is a manifest as the caller read it. Name stands for the file in
// findings; it is never opened. The body after the frontmatter is ignored and
// need not be complete.
type Source struct {
	Name string
	Data []byte
}

// ReadSource reads as much of r as a parse can use: the frontmatter and its
// surroundings, never the rest of the body. A file of any size costs little
// more than MaxFrontmatter. Opening, closing and naming r is the caller's.
func ReadSource(name string, r io.Reader) (Source, error) {
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(r, MaxFrontmatter+sourceSlack)); err != nil {
		return Source{}, fmt.Errorf("read %s: %w", name, err)
	}
	return Source{Name: name, Data: b.Bytes()}, nil
}

// sourceSlack leaves room for the delimiters and the start of the body, where
// a second document would show.
const sourceSlack = 64 << 10
