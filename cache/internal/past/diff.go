package past

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	pathpkg "path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/history"
)

// The bounds of a diff, in bytes.
const (
	maxSide = 8 << 20  // of compared content, on each side
	maxText = 32 << 20 // of the diff
)

// DiffOptions select the states and paths to compare.
type DiffOptions struct {
	// Path is a file, or a directory with all below; "" is everything.
	Path string

	// From and To are the states that are compared. The zero To is now. The zero From, of a file,
	// is the newest version that differs; a directory has none.
	From, To State

	// At precedes all paths that are shown: the place of the tree.
	At string
}

// errNoFrom says that a directory has no versions of its own.
var errNoFrom = fmt.Errorf("a directory needs a state to be compared with: %w", syscall.EINVAL)

// errIsDir says that a path is a directory, which has no content.
var errIsDir = errors.New("it is a directory")

// Diff compares two states, as a unified diff of each file that differs, in the order of their
// paths; "" when they are equal. A file that is missing in one of them is compared with /dev/null,
// and so is a directory without differing files, with a / behind its name. Content that is not
// text is only said to differ.
func (h *Past) Diff(ctx context.Context, o DiffOptions) (string, error) {
	o.Path = strings.Trim(o.Path, "/")
	text, err := (&differ{h: h, o: o, maxSide: maxSide, maxText: maxText}).diff(ctx)
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	return text, nil
}

// differ compares states of one path.
type differ struct {
	h     *Past
	o     DiffOptions
	isDir bool
	found bool // now, or in one of the states

	maxSide, maxText int
}

func (d *differ) diff(ctx context.Context) (string, error) {
	d.found, d.isDir = d.h.IsNow(ctx, d.o.Path)
	to, err := d.shapeOf(ctx, d.o.To)
	if err != nil {
		return "", err
	}
	if d.o.From.IsZero() {
		if d.o.From, err = d.before(ctx, to); err != nil {
			return "", err
		}
	}
	from, err := d.shapeOf(ctx, d.o.From)
	if err != nil {
		return "", err
	}
	text, err := d.compare(ctx, from, to)
	if err == nil && !d.found {
		err = fmt.Errorf("%s: %w", d.o.Path, ErrNotThere)
	}
	return text, err
}

// shape is a state as far as it is not the present: the results of a plan, by path; nil where the
// path was free.
type shape struct {
	state  State
	other  map[string]*Item
	unsure []history.Skipped
}

func (d *differ) shapeOf(ctx context.Context, s State) (shape, error) {
	sh := shape{state: s, other: map[string]*Item{}}
	if s.IsZero() {
		return sh, nil
	}
	pl, err := d.h.Plan(ctx, d.o.Path, s)
	for _, it := range pl.Remove {
		sh.other[it.Path] = nil
	}
	for _, it := range pl.Items {
		sh.other[it.Path] = &it
	}
	sh.unsure = pl.Unsure
	return sh, err
}

// compare compares all paths that may differ.
func (d *differ) compare(ctx context.Context, from, to shape) (string, error) {
	paths := map[string]bool{}
	if !d.isDir {
		paths[d.o.Path] = true
	}
	for _, s := range []shape{from, to} {
		for path := range s.other {
			paths[path] = true
		}
	}
	var all []difference
	size := 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		one, err := d.compareFile(ctx, from, to, path)
		if err != nil {
			return "", err
		}
		if size += len(one.text); size > d.maxText {
			one = difference{path: path, text: fmt.Sprintf("What differs from %s on is too much to be shown\n", exactjson.Visible(pathpkg.Join(d.o.At, path)))}
		}
		if all = append(all, one); size > d.maxText {
			break
		}
	}
	return textOf(all) + d.unsure(from, to), nil
}

// difference is the text to show for a path, "" for none.
type difference struct {
	path, text string
	dir        bool
}

// textOf shows differences. A directory is shown only if nothing below it is.
func textOf(all []difference) string {
	shown := map[string]bool{}
	for i := range slices.Backward(all) {
		one := &all[i]
		if one.dir && shown[one.path] {
			one.text = ""
		}
		for at := one.path; one.text != "" && at != ""; {
			at, _ = Split(at)
			shown[at] = true
		}
	}
	var out strings.Builder
	for _, one := range all {
		out.WriteString(one.text)
	}
	return out.String()
}

// unsure lists the paths that cannot be compared.
func (d *differ) unsure(shapes ...shape) string {
	var out strings.Builder
	for _, s := range shapes {
		for _, u := range s.unsure {
			fmt.Fprintf(&out, "%s cannot be compared: %s\n", d.label(s, u.Path), u.Reason)
		}
	}
	return out.String()
}

func (d *differ) compareFile(ctx context.Context, from, to shape, path string) (difference, error) {
	diff := difference{path: path}
	x, y := from.other[path], to.other[path]
	for _, it := range []*Item{x, y} {
		d.found = d.found || it != nil && (it.Of == "" || it.Of == path)
	}
	if x != nil && y != nil && x.Of == y.Of && x.isSame(y) {
		return diff, nil // unread
	}
	a, err := d.side(ctx, from, path)
	b, berr := d.side(ctx, to, path)
	if err = cmp.Or(err, berr); errors.Is(err, history.ErrNotKept) && path != d.o.Path {
		diff.text = fmt.Sprintf("Files %s and %s cannot be compared: %v\n", a.label, b.label, err)
		return diff, nil
	}
	if err != nil {
		return diff, err
	}
	diff.dir = a.dir && b.absent || a.absent && b.dir
	switch { // a directory cannot be compared with a file
	case a.dir && b.dir:
		return diff, nil
	case a.dir && !b.absent:
		a = nothing
	case b.dir && !a.absent:
		b = nothing
	}
	diff.text = unified(a, b)
	return diff, nil
}

// side is one side of a comparison.
type side struct {
	label  string
	data   []byte
	whole  bool // all of it is in data
	absent bool
	dir    bool
}

// nothing is the side of a path that is free.
var nothing = side{label: "/dev/null", whole: true, absent: true}

// side reads the content of a path in a state.
func (d *differ) side(ctx context.Context, s shape, path string) (side, error) {
	it, isOther := s.other[path]
	label := path
	if it != nil {
		label = cmp.Or(it.Of, path) // of a version it may be another file
	}
	label = d.label(s, label)
	var r io.ReadCloser
	var err error
	switch {
	case !isOther:
		r, err = d.h.openNow(ctx, path)
	case it == nil:
		return nothing, nil
	case it.kind() == syscall.S_IFDIR:
		return side{label: label + "/", whole: true, dir: true}, nil
	case it.kind() == syscall.S_IFLNK:
		target, err := d.h.Target(ctx, *it)
		return side{label: label, data: []byte(target + "\n"), whole: true}, err
	default:
		r, _, err = d.h.open(it.src)
	}
	switch {
	case errors.Is(err, errIsDir):
		return side{label: label + "/", whole: true, dir: true}, nil
	case errors.Is(err, ErrNotThere):
		return nothing, nil
	}
	return d.read(label, r, err)
}

// label is the name of a path in a state.
func (d *differ) label(s shape, path string) string {
	path = exactjson.Visible(pathpkg.Join(d.o.At, path)) // a diff is text
	switch {
	case s.state.IsZero():
		return path
	case s.state.Before:
		return path + "@before " + s.state.Name()
	}
	return path + "@" + s.state.Name()
}

// read is the side with a reader's content, if it was opened without an error.
func (d *differ) read(label string, r io.ReadCloser, err error) (side, error) {
	s := side{label: label}
	if err != nil {
		return s, fmt.Errorf("%s: %w", label, err)
	}
	defer r.Close()
	s.data, err = io.ReadAll(io.LimitReader(r, int64(d.maxSide)+1))
	s.whole = len(s.data) <= d.maxSide
	return s, err
}

// before is the newest version of the file with content other than that of a
// shape, and not newer than it.
func (d *differ) before(ctx context.Context, to shape) (State, error) {
	if d.isDir {
		return State{}, errNoFrom
	}
	limit := ^uint64(0)
	if !to.state.IsZero() {
		cut, err := d.h.cutOf(ctx, to.state)
		if err != nil {
			return State{}, err
		}
		limit = cut
	}
	b, err := d.side(ctx, to, d.o.Path)
	if err != nil {
		return State{}, err
	}
	list, err := d.h.Log(ctx, LogFilter{Path: d.o.Path})
	if err != nil {
		return State{}, err
	}
	for _, ver := range list {
		if id, _ := parseID(ver.ID); !ver.Kept || id >= limit || ver.Path != d.o.Path && ver.Was != d.o.Path {
			continue
		}
		r, _, err := d.h.Content(ver.ID)
		a, err := d.read(ver.ID, r, err)
		if err != nil {
			continue // given up meanwhile
		}
		if !bytes.Equal(a.data, b.data) {
			return State{Version: ver.ID}, nil
		}
	}
	return State{}, fmt.Errorf("%s: nothing to compare with: %w", d.o.Path, ErrNoVersion)
}

// openNow opens the present content of a path; that of a link is its target.
func (h *Past) openNow(ctx context.Context, path string) (io.ReadCloser, error) {
	_, ino, err := h.o.Volume.Find(ctx, path)
	if err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return nil, err
	}
	kind := uint32(0)
	if n := h.o.Tree.Lock().Inode(ino); n != nil && err == nil {
		kind = n.Mode & syscall.S_IFMT
	}
	h.o.Tree.Unlock()
	switch kind {
	case 0:
		return nil, ErrNotThere
	case syscall.S_IFDIR:
		return nil, errIsDir
	case syscall.S_IFLNK:
		target, err := h.o.Volume.Readlink(ctx, ino)
		return io.NopCloser(strings.NewReader(target + "\n")), err
	case syscall.S_IFREG:
		r, _, err := h.o.Volume.Open(ctx, ino)
		return r, err
	}
	return nil, fmt.Errorf("no regular file: %w", syscall.ENOTSUP)
}

// unified compares two sides.
func unified(a, b side) string {
	switch {
	case bytes.Equal(a.data, b.data) && a.whole && b.whole:
		if a.absent != b.absent { // an empty file
			return fmt.Sprintf("--- %s\n+++ %s\n", a.label, b.label)
		}
		return ""
	case !a.whole || !b.whole:
		return fmt.Sprintf("Files %s and %s are too large to be compared\n", a.label, b.label)
	case !isText(a.data) || !isText(b.data):
		return fmt.Sprintf("Binary files %s and %s differ\n", a.label, b.label)
	}
	out := textdiff.Diff(a.label, a.data, b.label, b.data)
	// The first line names a command that was not run.
	if _, rest, ok := bytes.Cut(out, []byte("\n")); ok && bytes.HasPrefix(out, []byte("diff ")) {
		out = rest
	}
	return string(out)
}

// isText reports whether content can be shown line by line.
func isText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data)
}
