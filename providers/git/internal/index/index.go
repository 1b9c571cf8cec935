// Package index writes the git program's record of a work tree (gitformat-index), for a work tree
// that is the tree of a commit.
//
// It knows trees and the format, and not where either comes from or goes to.
//
//	err := index.Write(w, index.Source{Root: root, Tree: tree, Token: token})
//
// Entries have no times and sizes. They are marked as unchanged since Token, so the git program
// looks only at files that are named when it asks for changes since then (core.fsmonitor), and
// compares the content of those. The trees are written along, so it need not compare the entries
// with the commit either.
//
// Up to git 2.42, `git diff HEAD` takes an entry that is only so marked for removed, at random:
// it looks at a stat that was never made. So each is also marked "assume unchanged", which keeps
// it from looking; programs that do not ask for changes rely on this mark alone. Except gives the
// index of a work tree in which some paths have changed.
package index

import (
	"bufio"
	"bytes"
	"crypto/sha1" // the format's checksum
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// Source is the data that an index is made of.
type Source struct {
	Root  object.ID                                  // of the commit's tree; zero: it has no entries
	Tree  func(id object.ID) (raw []byte, err error) // a tree's content
	Token string                                     // since when no entry has changed

	// Hidden are names that the work tree does not show. git is told not to
	// expect them; nil: there are none.
	Hidden func(name string) bool

	// Place is the path of the work tree. At that path, git status believes that the directories
	// have no other entries either.
	Place string

	// Exclude is the content of the repository's info/exclude; "": there is none.
	Exclude string
}

// Write writes an index of version 3, which git reads since 1.7. The result holds the places of
// its entries.
func Write(w io.Writer, s Source) (*Entries, error) {
	b := &builder{Source: s}
	count, err := b.count(s.Root)
	if err != nil {
		return nil, err
	}
	sum := sha1.New()
	b.out = bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	b.number(0x44495243, 3, uint32(count)) // "DIRC"
	b.at.places = make([]uint32, 0, count)
	b.next = 12
	if err := b.entries(s.Root, "", false); err != nil {
		return nil, err
	}
	if err := b.untracked(s.Root, ""); err != nil {
		return nil, err
	}
	b.extension("TREE", b.trees.Bytes())
	b.extension("UNTR", b.extra.encode(s.Place, s.Exclude))
	b.extension("FSMN", monitor(s.Token))
	return &b.at, b.end(w, sum)
}

type builder struct {
	Source
	out    *bufio.Writer // its errors stay until it is flushed
	trees  bytes.Buffer  // the extension TREE
	extra  untracked
	counts map[object.ID]int
	path   []byte
	at     Entries
	next   uint32 // where the next entry will be
}

// each visits the entries of a tree.
func (b *builder) each(id object.ID, visit func(object.Entry) error) error {
	if id.IsZero() {
		return nil
	}
	raw, err := b.Tree(id)
	if err != nil {
		return err
	}
	for len(raw) > 0 {
		var e object.Entry
		if e, raw, err = object.Next(raw); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// count is the number of entries that an index has of a tree.
func (b *builder) count(id object.ID) (n int, err error) {
	if n, ok := b.counts[id]; ok {
		return n, nil
	}
	err = b.each(id, func(e object.Entry) error {
		if !e.Mode.IsDir() {
			n++
			return nil
		}
		below, err := b.count(e.ID)
		n += below
		return err
	})
	if b.counts == nil {
		b.counts = map[object.ID]int{}
	}
	b.counts[id] = n
	return n, err
}

// entries writes the entries of a tree. Trees are sorted as if the names of
// directories ended in a slash, which puts all paths in the order of an index.
func (b *builder) entries(id object.ID, name string, hidden bool) error {
	below := 0
	err := b.each(id, func(e object.Entry) error {
		if e.Mode.IsDir() {
			below++
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(&b.trees, "%s\x00%d %d\n%s", name, b.counts[id], below, id[:])
	return b.each(id, func(e object.Entry) error {
		start := len(b.path)
		defer func() { b.path = b.path[:start] }()
		b.path = append(b.path, e.Name...)
		hidden := hidden || b.Hidden != nil && b.Hidden(e.Name)
		if e.Mode.IsDir() {
			b.path = append(b.path, '/')
			return b.entries(e.ID, e.Name, hidden)
		}
		b.entry(e, hidden)
		return nil
	})
}

// untracked enters the directories of a tree that are shown.
func (b *builder) untracked(id object.ID, name string) error {
	var shown []object.Entry
	err := b.each(id, func(e object.Entry) error {
		if b.Hidden == nil || !b.Hidden(e.Name) {
			shown = append(shown, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range b.extra.add(name, shown) {
		if err := b.untracked(e.ID, e.Name); err != nil {
			return err
		}
	}
	return nil
}

const (
	headSize      = 62 // of an entry before its path, without more flags
	flagUnchanged = 1 << 15
	flagExtended  = 1 << 14
	flagNameMost  = 1<<12 - 1
	extendedUnset = 1 << 14 // skip-worktree: the work tree does not have it
)

// entry writes one. The zeros are its times, place, owner and size.
func (b *builder) entry(e object.Entry, hidden bool) {
	b.number(0, 0, 0, 0, 0, 0, modeOf(e.Mode), 0, 0, 0)
	b.bytes(e.ID[:])
	flags, size := flagUnchanged|uint16(min(len(b.path), flagNameMost)), headSize
	if hidden {
		flags |= flagExtended
	}
	b.short(flags)
	if hidden {
		b.short(extendedUnset)
		size += 2
	}
	b.bytes(b.path)
	var zeros [8]byte
	pad := 8 - (size+len(b.path))%8
	b.bytes(zeros[:pad])
	b.at.places = append(b.at.places, b.next)
	b.next += uint32(size + len(b.path) + pad)
}

// modeOf is the mode that an index has for an entry: old trees have modes with more bits.
func modeOf(m object.Mode) uint32 {
	switch {
	case m.IsLink(), m.IsSubmodule():
		return uint32(m)
	case m.Executable():
		return uint32(object.ModeExec)
	}
	return uint32(object.ModeFile)
}

// monitor is the extension FSMN: no entry has changed since token.
func monitor(token string) []byte {
	b := binary.BigEndian.AppendUint32(nil, 2)
	b = append(append(b, token...), 0)
	changed := bitmap(nil)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(changed))), changed...)
}

func (b *builder) extension(name string, content []byte) {
	b.bytes([]byte(name))
	b.number(uint32(len(content)))
	b.bytes(content)
}

func (b *builder) number(list ...uint32) {
	for _, n := range list {
		b.bytes(binary.BigEndian.AppendUint32(nil, n))
	}
}

// bytes writes content; an error shows at the end.
func (b *builder) bytes(content []byte) { _, _ = b.out.Write(content) }

func (b *builder) short(n uint16) { b.bytes(binary.BigEndian.AppendUint16(nil, n)) }

// end writes the checksum of all bytes before it.
func (b *builder) end(w io.Writer, sum hash.Hash) error {
	if err := b.out.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}
