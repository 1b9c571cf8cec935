package crasher

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Check says how a directory differs from a model, in a line for each
// difference: names, kinds, modes, which names are one file, and every byte.
func Check(dir string, m *Model) []string {
	return compare(dir, m, func(p string, got []byte, n *Node) string {
		if bytes.Equal(got, n.Data) {
			return ""
		}
		return fmt.Sprintf("%s: %s", p, difference(got, n.Data))
	})
}

func compare(dir string, m *Model, content func(p string, got []byte, n *Node) string) []string {
	var found []string
	there := map[string]fs.FileInfo{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		fi, err := d.Info()
		rel, _ := filepath.Rel(dir, p)
		there[rel] = fi
		return err
	})
	if err != nil {
		return []string{err.Error()}
	}
	inodes := map[*Node]uint64{}
	m.Walk(func(p string, n *Node) {
		fi := there[p]
		delete(there, p)
		if fi == nil {
			found = append(found, p+": missing")
			return
		}
		if what := n.compare(filepath.Join(dir, p), p, fi, content); what != "" {
			found = append(found, what)
		}
		ino := fi.Sys().(*syscall.Stat_t).Ino
		if was, ok := inodes[n]; ok && was != ino {
			found = append(found, p+": no link to the other name any more")
		}
		inodes[n] = ino
	})
	for _, p := range slices.Sorted(maps.Keys(there)) {
		found = append(found, p+": should not be there")
	}
	return found
}

func (n *Node) compare(name, p string, fi fs.FileInfo, content func(string, []byte, *Node) string) string {
	kind := fi.Mode().Type()
	switch {
	case n.Dir != nil:
		if kind != fs.ModeDir {
			return p + ": no directory"
		}
		return ""
	case n.Target != "":
		if target, err := os.Readlink(name); err != nil || target != n.Target {
			return fmt.Sprintf("%s: leads to %q, not %q: %v", p, target, n.Target, err)
		}
		return ""
	case kind != 0:
		return p + ": no file"
	case uint32(fi.Mode().Perm()) != n.Mode:
		return fmt.Sprintf("%s: mode %o, not %o", p, fi.Mode().Perm(), n.Mode)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	if int64(len(got)) != fi.Size() {
		return fmt.Sprintf("%s: stat says %d bytes, and %d are read", p, fi.Size(), len(got))
	}
	return content(p, got, n)
}

func difference(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes, not %d", len(got), len(want))
	}
	var at, count int
	for i := len(got) - 1; i >= 0; i-- {
		if got[i] != want[i] {
			at, count = i, count+1
		}
	}
	return fmt.Sprintf("%d of %d bytes differ, from %d on: %d, not %d", count, len(got), at, got[at], want[at])
}

// possible checks content after a loss of power.
func (n *Node) possible(p string, got []byte) string {
	if len(got) < n.Min || len(got) > n.Max {
		return fmt.Sprintf("%s: %d bytes, and it had %d to %d since its fsync", p, len(got), n.Min, n.Max)
	}
	right := make([]bool, len(got))
	for i := range got {
		right[i] = i < len(n.Synced) && got[i] == n.Synced[i] || i >= n.Min && got[i] == 0
	}
	for _, o := range n.Later {
		if o.Do == "truncate" {
			continue // Min knows it
		}
		for i, b := range o.Bytes() {
			if at := int(o.Off) + i; at < len(got) {
				right[at] = right[at] || got[at] == b
			}
		}
	}
	for i := range got {
		if !right[i] {
			return fmt.Sprintf("%s: byte %d is %d, which it never was since its fsync", p, i, got[i])
		}
	}
	return ""
}

// Contents are the hashes of every content that any file had at any moment.
func Contents(files []File, ops []Op) map[[sha256.Size]byte]bool {
	seen := map[[sha256.Size]byte]bool{}
	m := NewModel(files)
	m.Walk(func(_ string, n *Node) { seen[sha256.Sum256(n.Data)] = true })
	seen[sha256.Sum256(nil)] = true
	for _, o := range ops {
		n := m.Open[o.H]
		if o.Do == "truncate" {
			n = m.find(o.A)
		}
		m.Apply(o)
		if n != nil && (o.Do == "write" || o.Do == "store" || o.Do == "truncate") {
			seen[sha256.Sum256(n.Data)] = true
		}
	}
	return seen
}

// CheckPrefix says how a directory differs from the state after the first k
// operations, when power was lost at some moment behind them: names are as they
// were then, and a file that was ever synced has each byte as of then or as
// written since. Behind k no fsync is acknowledged.
func CheckPrefix(dir string, files []File, ops []Op, k int) []string {
	m := Replay(files, ops[:k])
	copies := map[*Node]*Node{}
	root := m.Root.freeze(copies)
	for _, o := range ops[k:] {
		m.Apply(o)
	}
	for n, c := range copies {
		mode, dir := c.Mode, c.Dir
		*c = *n
		c.Mode, c.Dir = mode, dir
	}
	return compare(dir, &Model{Root: root}, func(p string, got []byte, n *Node) string {
		if n.Synced == nil {
			return ""
		}
		return n.possible(p, got)
	})
}

// freeze copies a tree; what is one node stays one.
func (n *Node) freeze(copies map[*Node]*Node) *Node {
	if c := copies[n]; c != nil {
		return c
	}
	c := &Node{Mode: n.Mode}
	copies[n] = c
	if n.Dir != nil {
		c.Dir = map[string]*Node{}
		for name, child := range n.Dir {
			c.Dir[name] = child.freeze(copies)
		}
	}
	return c
}

// Story lists what was done to the file that has a path after the first k
// operations, for a person who looks for the reason of a difference.
func Story(files []File, ops []Op, k int, p string) (lines []string) {
	m := NewModel(files)
	touched, over := make([]*Node, len(ops)), make([]*Node, len(ops))
	var file *Node
	for i, o := range ops {
		before := m.find(o.A)
		if o.Do == "rename" || o.Do == "exchange" {
			over[i] = m.find(o.B)
		}
		if o.H != 0 {
			before = m.Open[o.H]
		}
		if m.Apply(o); before == nil {
			before = m.find(o.A)
		}
		touched[i] = before
		if i == k-1 {
			file = m.find(p)
		}
	}
	for i, o := range ops {
		if file != nil && (touched[i] == file || over[i] == file) {
			lines = append(lines, fmt.Sprintf("%d: %v", i, o))
		}
	}
	return lines
}
