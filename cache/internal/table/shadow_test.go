package table

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// shadow is the table as maps: what it should hold.
type shadow struct {
	inodes  map[Ino]*Inode
	names   map[Link]Name
	records map[string][]byte
}

func newShadow() *shadow {
	return &shadow{map[Ino]*Inode{}, map[Link]Name{}, map[string][]byte{}}
}

func (p *shadow) clone() *shadow {
	c := newShadow()
	for ino, n := range p.inodes {
		c.inodes[ino] = n.clone()
	}
	maps.Copy(c.names, p.names) // their pointers are never written through
	maps.Copy(c.records, p.records)
	return c
}

func (p *shadow) setName(l Link, n Name) {
	old := p.names[l]
	n.Cookie = old.Cookie
	dir := p.inodes[l.Dir]
	if old.Ino == 0 && n.Ino != 0 {
		dir.Cookies++
		n.Cookie = dir.Cookies
	}
	if n.Ino == 0 {
		n.Cookie = 0
	}
	if n.Ino == 0 && n.Remote == nil && n.Seq == 0 && n.Attempt == nil {
		delete(p.names, l)
	} else {
		p.names[l] = n
	}
	for ino, i := range p.inodes { // counted anew, rather than kept
		i.Links, i.RemoteLinks = nil, nil
		i.Entries, i.Subdirs = 0, 0
		for l, n := range p.names {
			if n.Ino == ino {
				i.Links = append(i.Links, l)
			}
			if n.Remote != nil && n.Remote.Ino == ino {
				i.RemoteLinks = append(i.RemoteLinks, l)
			}
			if l.Dir == ino && n.Ino != 0 {
				i.Entries++
				if p.inodes[n.Ino].IsDir() {
					i.Subdirs++
				}
			}
		}
		i.Links, i.RemoteLinks = sorted(i.Links), sorted(i.RemoteLinks) // so that what is set again is as it was
	}
}

// differs compares the table with p through everything that it offers.
func (p *shadow) differs(t *Table, inos []Ino) error {
	for _, ino := range inos {
		if got, want := t.Inode(ino), p.inodes[ino]; !sameInode(got, want) {
			return fmt.Errorf("inode %d is\n%+v, not\n%+v", ino, got, want)
		}
	}
	if got := dumpNames(t, p.inodes); !reflect.DeepEqual(got, p.names) {
		return fmt.Errorf("names are\n%v, not\n%v", got, p.names)
	}
	for l, want := range p.names {
		if got, ok := t.Name(l.Dir, l.Name); !ok || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("name %v is %v, not %v", l, got, want)
		}
	}
	if err := p.differsInOrder(t); err != nil {
		return err
	}
	got := map[string][]byte{}
	t.Scan("", "", func(k string, v []byte) bool {
		got[k] = v
		return true
	})
	if !maps.EqualFunc(got, p.records, bytes.Equal) {
		return fmt.Errorf("records are %q, not %q", got, p.records)
	}
	return nil
}

func dumpNames(t *Table, dirs map[Ino]*Inode) map[Link]Name {
	got := map[Link]Name{}
	for ino, n := range dirs {
		if n.IsDir() {
			t.Names(ino, "", func(name string, n Name) bool {
				got[Link{ino, name}] = n
				return true
			})
		}
	}
	return got
}

// differsInOrder compares the orders of readdir and of what is to be sent.
func (p *shadow) differsInOrder(t *Table) error {
	dirty, wantDirty := map[uint64]Link{}, map[uint64]Link{}
	last := uint64(0)
	t.Dirty(0, func(seq uint64, l Link) bool {
		if seq <= last {
			last = ^uint64(0)
		}
		last = seq
		dirty[seq] = l
		return true
	})
	entries, wantEntries := map[Link]DirEnt{}, map[Link]DirEnt{}
	for l, n := range p.names {
		if n.Seq != 0 {
			wantDirty[n.Seq] = l
		}
		if n.Ino != 0 {
			wantEntries[l] = DirEnt{l.Name, n.Ino, n.Cookie}
		}
	}
	if !maps.Equal(dirty, wantDirty) || last == ^uint64(0) || t.DirtyCount() != len(wantDirty) {
		return fmt.Errorf("to send are %v (%d), not %v", dirty, t.DirtyCount(), wantDirty)
	}
	for ino := range p.inodes {
		for e, ok := t.Next(ino, 0); ok; e, ok = t.Next(ino, e.Cookie) {
			if entries[Link{ino, e.Name}].Cookie != 0 {
				return fmt.Errorf("directory %d has %q twice", ino, e.Name)
			}
			entries[Link{ino, e.Name}] = e
		}
	}
	if !maps.Equal(entries, wantEntries) {
		return fmt.Errorf("entries are %v, not %v", entries, wantEntries)
	}
	return nil
}

// sameInode compares, with names in any order.
func sameInode(a, b *Inode) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	for _, n := range []*Inode{&x, &y} {
		n.Links, n.RemoteLinks = sorted(n.Links), sorted(n.RemoteLinks)
		if len(n.Xattrs) == 0 {
			n.Xattrs = nil
		}
		if len(n.Metadata) == 0 {
			n.Metadata = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

func sorted(links []Link) []Link {
	if len(links) == 0 {
		return nil
	}
	return slices.SortedFunc(slices.Values(links), func(a, b Link) int {
		return strings.Compare(fmt.Sprint(a.Dir, a.Name), fmt.Sprint(b.Dir, b.Name))
	})
}
