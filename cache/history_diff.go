package cache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// maxDiff bounds the content that is compared, in bytes of each side.
const maxDiff = 8 << 20

// Diff compares two versions of a file, as a unified diff; "" when they are
// equal. An empty to means the file as it is now, an empty from the newest
// version that was not that. Content that is not text is only said to differ.
func (v *Volume) Diff(ctx context.Context, path, from, to string) (string, error) {
	path = strings.Trim(path, "/")
	b, err := v.side(ctx, path, to)
	if err != nil {
		return "", err
	}
	if from == "" {
		if from, err = v.before(ctx, path, to, b); err != nil {
			return "", err
		}
	}
	a, err := v.side(ctx, path, from)
	if err != nil {
		return "", err
	}
	return unified(a, b), nil
}

// side is one side of a comparison.
type side struct {
	label string
	data  []byte
	whole bool // all of it is in data
}

func (v *Volume) side(ctx context.Context, path, id string) (side, error) {
	var r io.ReadCloser
	var err error
	s := side{label: path + "@" + id}
	if id == "" {
		s.label = path
		r, _, err = v.openPath(ctx, path)
	} else {
		v.mu.Lock()
		if n, ok := parseID(id); ok && v.getRecord(n) != nil {
			s.label = v.whereIs(v.getRecord(n)) + "@" + id // which may be another file
		}
		v.mu.Unlock()
		r, _, err = v.Content(id)
	}
	if err != nil {
		return s, err
	}
	defer r.Close()
	s.data, err = io.ReadAll(io.LimitReader(r, maxDiff+1))
	s.whole = len(s.data) <= maxDiff
	return s, err
}

// before is the newest version of a path with content other than b's, older
// than another if one is given.
func (v *Volume) before(ctx context.Context, path, than string, b side) (string, error) {
	list, err := v.Log(ctx, LogFilter{Path: path})
	if err != nil {
		return "", err
	}
	limit, bounded := parseID(than)
	for _, ver := range list {
		if id, _ := parseID(ver.ID); !ver.Kept || bounded && id >= limit || ver.Path != path && ver.Was != path {
			continue
		}
		a, err := v.side(ctx, path, ver.ID)
		if err != nil {
			continue // given up meanwhile
		}
		if !bytes.Equal(a.data, b.data) {
			return ver.ID, nil
		}
	}
	return "", fmt.Errorf("%s: nothing to compare with: %w", path, ErrNoVersion)
}

// openPath opens the content that a path has now.
func (v *Volume) openPath(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	l, ino, err := v.find(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	v.mu.Lock()
	n := v.table.Inode(ino)
	regular := n != nil && isRegular(n)
	v.mu.Unlock()
	switch {
	case ino == 0:
		return nil, 0, fmt.Errorf("%s: %w", path, errGone)
	case !regular:
		return nil, 0, fmt.Errorf("%s: no regular file: %w", l.Name, fs.ErrUnsupported)
	}
	oi, err := v.acquire(ino)
	if err != nil {
		return nil, 0, err
	}
	snap, err := oi.f.Snapshot(ctx)
	if err != nil {
		v.release(oi)
		return nil, 0, err
	}
	return &openReader{snap.Reader(), func() { snap.Close(); v.release(oi) }}, snap.Size(), nil
}

type openReader struct {
	io.Reader
	done func()
}

func (r *openReader) Close() error {
	r.done()
	return nil
}

// unified compares two sides.
func unified(a, b side) string {
	switch {
	case bytes.Equal(a.data, b.data) && a.whole && b.whole:
		return ""
	case !a.whole || !b.whole:
		return fmt.Sprintf("Files %s and %s are too large to be compared\n", a.label, b.label)
	case !isText(a.data) || !isText(b.data):
		return fmt.Sprintf("Binary files %s and %s differ\n", a.label, b.label)
	}
	out := textdiff.Diff(a.label, a.data, b.label, b.data)
	// The first line is a command that nobody gave.
	if _, rest, ok := bytes.Cut(out, []byte("\n")); ok && bytes.HasPrefix(out, []byte("diff ")) {
		out = rest
	}
	return string(out)
}

// isText reports whether content can be shown line by line.
func isText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data)
}

// find walks to a path here. An ino of 0 says that the name is free; the
// directory of the link is 0 when not even that is there.
func (v *Volume) find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error) {
	ino = table.Root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			return l, ino, nil
		}
		if ino == 0 {
			return table.Link{}, 0, nil
		}
		if err := ctx.Err(); err != nil {
			return l, 0, err
		}
		if err := v.loadDir(nil, ino); err != nil {
			return l, 0, err
		}
		v.mu.Lock()
		l = table.Link{Dir: ino, Name: name}
		rec, _ := v.table.Name(l.Dir, l.Name)
		ino = rec.Ino
		v.mu.Unlock()
	}
	return l, ino, nil
}
