package table

import (
	"maps"
	"slices"
	"syscall"
)

// Inode is the inode, nil when there is none. The caller must not change it.
// It is valid until the next Edit of it, SetName of a name that concerns it,
// Commit or Abort.
func (t *Table) Inode(ino Ino) *Inode {
	if n, edited := t.edits[ino]; edited {
		return n
	}
	if n, ok := t.inodes.get(ino); ok {
		return n
	}
	n := t.load(ino)
	if n != nil {
		t.inodes.put(ino, n)
	}
	return n
}

// load reads an inode from the database.
func (t *Table) load(ino Ino) *Inode {
	record, closer := t.read(inodeKey(ino))
	if closer == nil {
		return nil
	}
	n, err := decodeInode(record)
	if err := closer.Close(); err != nil {
		t.fail(err)
		return nil
	}
	if err != nil {
		t.damaged("inode %d: %w", ino, err)
		return nil
	}
	return n
}

// Edit is the inode, to be changed, until Commit keeps it or Abort forgets the
// changes. Nil when there is none.
func (t *Table) Edit(ino Ino) *Inode {
	if n, edited := t.edits[ino]; edited {
		return n
	}
	n := t.Inode(ino)
	if n == nil {
		return nil
	}
	n = n.clone()
	t.edits[ino] = n
	return n
}

// clone copies everything that can be changed in place.
func (n *Inode) clone() *Inode {
	c := *n
	c.Links = slices.Clone(n.Links)
	c.RemoteLinks = slices.Clone(n.RemoteLinks)
	c.Metadata = maps.Clone(n.Metadata)
	if n.Xattrs != nil {
		c.Xattrs = make(map[string][]byte, len(n.Xattrs))
		for k, v := range n.Xattrs {
			c.Xattrs[k] = slices.Clone(v)
		}
	}
	if n.LostName != nil {
		claim := *n.LostName
		c.LostName = &claim
	}
	return &c
}

// Put adds an inode under a number of Alloc, or the root. The table keeps n,
// which may be changed like a result of Edit.
func (t *Table) Put(ino Ino, n *Inode) {
	if ino == 0 || len(n.Links)+len(n.RemoteLinks) != 0 || n.Subdirs|n.Entries|n.Cookies != 0 {
		t.misuse("Put of inode %d that has names already", ino)
		return
	}
	if t.options.Strict && t.Inode(ino) != nil {
		t.misuse("Put of inode %d that is there already", ino)
		return
	}
	if n.IsDir() {
		n.Cookies = FirstCookie - 1
	}
	t.edits[ino] = n
}

// Drop forgets an inode. It must have no local or remote name left, and a directory must
// have none in it.
func (t *Table) Drop(ino Ino) {
	n := t.Inode(ino)
	switch {
	case n == nil:
		t.misuse("Drop of inode %d, which is not there", ino)
		return
	case len(n.Links)+len(n.RemoteLinks) != 0 || n.Entries != 0:
		t.misuse("Drop of inode %d, which has names", ino)
		return
	case t.options.Strict && n.IsDir() && t.HasNames(ino):
		t.misuse("Drop of directory %d, which has names at the store or to send", ino)
		return
	}
	t.edits[ino] = nil
}

// HasNames reports whether there are records of names in a directory: local, remote, or of
// an attempt.
func (t *Table) HasNames(dir Ino) (has bool) {
	t.Names(dir, "", func(string, Name) bool {
		has = true
		return false
	})
	return has
}

// Kind is the file type in n's mode.
func (n *Inode) Kind() uint32 { return n.Mode & syscall.S_IFMT }

func (n *Inode) IsDir() bool     { return n.Kind() == syscall.S_IFDIR }
func (n *Inode) IsRegular() bool { return n.Kind() == syscall.S_IFREG }
func (n *Inode) IsSymlink() bool { return n.Kind() == syscall.S_IFLNK }

// IsComplete reports whether nothing of an inode has to be fetched.
func (n *Inode) IsComplete() bool {
	switch {
	case n.IsRegular():
		return n.State == Whole || n.Size == 0
	case n.IsSymlink():
		return n.Target != ""
	}
	return true
}

// without takes l away, in place.
func without(links []Link, l Link) []Link {
	return slices.DeleteFunc(links, func(o Link) bool { return o == l })
}
