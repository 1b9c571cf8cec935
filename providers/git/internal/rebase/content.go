package rebase

import (
	"bytes"
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// mostCombined is the size up to which contents are merged: all three are in
// memory then.
const mostCombined = 16 << 20

// file merges contents, and modes by themselves.
func (s *rebasing) file(path string, base, ours, theirs *trees.Node) (*trees.Node, error) {
	n := &trees.Node{Mode: ours.Mode, ID: ours.ID, Size: ours.Size}
	if base.Mode != theirs.Mode {
		n.Mode = theirs.Mode
	}
	switch {
	case base.ID == theirs.ID || ours.ID == theirs.ID:
		return n, nil
	case base.ID == ours.ID:
		n.ID, n.Size = theirs.ID, theirs.Size
		return n, nil
	}
	if err := s.in.Fetch(s.ctx, s.stored(base.ID, ours.ID, theirs.ID)...); err != nil {
		return nil, err
	}
	var texts [3][]byte
	for i, side := range []*trees.Node{base, ours, theirs} {
		var err error
		if texts[i], err = s.text(side.ID); err != nil {
			return nil, err
		}
	}
	merged, ok := []byte(nil), false
	isLarge, err := s.isLarge(path, texts[:])
	if err != nil {
		return nil, err
	}
	if texts[0] != nil && texts[1] != nil && texts[2] != nil && !isLarge {
		union, err := s.isUnion(s.root, path)
		if err != nil {
			return nil, err
		}
		merged, ok = s.combine(texts[0], texts[1], texts[2], union)
	}
	if !ok {
		return nil, clash(path)
	}
	if n.ID, err = s.batch.Add(odb.Blob, merged); err != nil {
		return nil, err
	}
	n.Size, s.made[n.ID] = int64(len(merged)), merged
	return n, nil
}

// isLarge reports whether a file goes through LFS, or one of the sides is the text of
// a pointer: lines of pointers are no lines of the content.
func (s *rebasing) isLarge(path string, sides [][]byte) (bool, error) {
	for _, text := range sides {
		if _, is := lfs.Parse(text); is {
			return true, nil
		}
	}
	filter, err := s.attribute(s.root, path, "filter")
	return filter == attributes.FilterLFS, err
}

// attribute is the value that a tree gives a path, by the nearest directory that sets it.
func (s *rebasing) attribute(root *trees.Node, at, attribute string) (string, error) {
	parts, dir, value := names(at), root, ""
	var known attributes.Macros
	for depth := range parts {
		entries, err := s.edit.Entries(dir)
		if err != nil {
			return "", err
		}
		if file := entries[attributes.Name]; file.IsFile() {
			text, err := s.text(file.ID)
			if err != nil {
				return "", err
			}
			var lines []attributes.Line
			lines, known = attributes.Parse(string(text), known, depth == 0)
			if v, said := attributes.Value(lines, parts[depth:], attribute); said {
				value = v
			}
		}
		if dir = entries[parts[depth]]; !dir.IsDir() {
			break
		}
	}
	return value, nil
}

// isUnion reports whether a tree sets merge=union for a file: the lines of both
// sides are kept.
func (s *rebasing) isUnion(root *trees.Node, at string) (bool, error) {
	driver, err := s.attribute(root, at, "merge")
	return driver == "union", err
}

// stored are the contents that are not in the batch alone: they may have to be fetched.
func (s *rebasing) stored(blobs ...id) []id {
	return slices.DeleteFunc(blobs, func(b id) bool { return s.made[b] != nil || b == emptyBlob })
}

// text is a content; nil for one that is too large to be merged.
func (s *rebasing) text(b id) ([]byte, error) {
	if text, ok := s.made[b]; ok {
		return text, nil
	}
	if b == emptyBlob { // need not be in the repository
		return []byte{}, nil
	}
	size, err := s.in.Objects.Size(b)
	if err != nil || size > mostCombined {
		return nil, err
	}
	r, err := s.in.Objects.Open(b, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := bytes.NewBuffer(make([]byte, 0, size+1))
	_, err = io.Copy(text, r)
	return text.Bytes(), err
}
