package index

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	gitbinary "github.com/go-git/go-git/v5/utils/binary"

	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// untracked is the extension UNTR: no directory has an entry that the index does not have, since
// the same token. The git program reads directories that are named to it, and believes this of
// the others.
type untracked struct {
	dirs    bytes.Buffer
	count   int
	ignores []bool       // by directory: it has rules of its own
	rules   bytes.Buffer // their objects
}

const (
	// statSize is the length of a file's last stat: all zero in this index, since a program that
	// asks for changes looks at none of it.
	statSize = 36

	// usual are the flags of a scan by git status: whole directories are named,
	// and empty ones are not.
	usual = 1<<1 | 1<<2

	ignoreFile = ".gitignore"
)

// add enters a directory. The entries are sorted as in a tree, and below are
// those of its directories that are shown.
func (u *untracked) add(name string, entries []object.Entry) (below []object.Entry) {
	rules := object.ID{}
	for _, e := range entries {
		switch {
		case e.Mode.IsDir():
			below = append(below, e)
		case e.Name == ignoreFile && !e.Mode.IsLink() && !e.Mode.IsSubmodule():
			rules = e.ID
		}
	}
	slices.SortFunc(below, func(a, b object.Entry) int { return strings.Compare(a.Name, b.Name) })
	u.count++
	u.ignores = append(u.ignores, !rules.IsZero())
	if !rules.IsZero() {
		u.rules.Write(rules[:])
	}
	u.dirs.Write(varint(0)) // names that the index does not have
	u.dirs.Write(varint(len(below)))
	u.dirs.WriteString(name)
	u.dirs.WriteByte(0)
	return below
}

// encode is the extension for a work tree at a place. git ignores it at another
// one.
func (u *untracked) encode(place, exclude string) []byte {
	ident := "Location " + place + ", system Linux\x00"
	b := append(varint(len(ident)), ident...)
	b = append(b, make([]byte, 2*statSize)...)
	b = binary.BigEndian.AppendUint32(b, usual)
	var rules object.ID // none, if there is no such file
	if exclude != "" {
		rules = plumbing.ComputeHash(plumbing.BlobObject, []byte(exclude+"\n")) // as git takes it, with an end of line
	}
	b = append(b, rules[:]...)
	b = append(b, make([]byte, len(rules))...) // the user has none
	b = append(append(b, ignoreFile...), 0)
	b = append(append(b, varint(u.count)...), u.dirs.Bytes()...)
	all := slices.Repeat([]bool{true}, u.count)
	b = append(append(append(b, bitmap(all)...), bitmap(nil)...), bitmap(u.ignores)...)
	b = append(b, make([]byte, statSize*u.count)...)
	return append(append(b, u.rules.Bytes()...), 0)
}

// varint is git's own form of a number of variable size.
func varint(n int) []byte {
	var b bytes.Buffer
	_ = gitbinary.WriteVariableWidthInt(&b, int64(n)) // a buffer takes all
	return b.Bytes()
}

// bitmap is an EWAH bitmap with all its words as they are.
func bitmap(bits []bool) []byte {
	words := make([]uint64, (len(bits)+63)/64)
	for i, set := range bits {
		if set {
			words[i/64] |= 1 << (i % 64)
		}
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(bits)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(words)+1))
	b = binary.BigEndian.AppendUint64(b, uint64(len(words))<<33) // a marker: so many words follow
	for _, w := range words {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return binary.BigEndian.AppendUint32(b, 0) // where the last marker is
}
