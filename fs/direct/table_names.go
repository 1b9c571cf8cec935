package direct

import (
	"hash/maphash"
	"sync"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A nameShard finds records by the directory and name they were last seen at.
type nameShard struct {
	mu  sync.Mutex
	idx index // -> place and shard
}

func (t *table) nameHash(dir wsfs.Ino, name string) uint64 {
	return mix(maphash.String(t.seed, name) ^ uint64(dir)*0x9e3779b97f4a7c15)
}

func (t *table) putName(dir wsfs.Ino, name string, sh, place uint32) {
	h := t.nameHash(dir, name)
	ns := &t.names[h&(shardCount-1)]
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.idx.put(uint32(h>>32), place<<shardBits|sh)
}

func (t *table) unname(n *inode, sh, place uint32) {
	if n.name == "" {
		return
	}
	h := t.nameHash(n.parent, n.name)
	ns := &t.names[h&(shardCount-1)]
	ns.mu.Lock()
	ns.idx.del(uint32(h>>32), place<<shardBits|sh)
	ns.mu.Unlock()
	n.name = ""
}

// named returns an inode other than not that was last seen at a name, or 0. Of the names of a
// file with several links only the last seen one is known.
func (t *table) named(dir wsfs.Ino, name string, not wsfs.Ino) wsfs.Ino {
	h := t.nameHash(dir, name)
	ns := &t.names[h&(shardCount-1)]
	var room [4]uint32
	found := room[:0]
	ns.mu.Lock()
	ns.idx.find(uint32(h>>32), func(num uint32) bool {
		found = append(found, num)
		return false
	})
	ns.mu.Unlock()
	for _, num := range found {
		if ino := t.check(num, dir, name); ino != 0 && ino != not {
			return ino
		}
	}
	return 0
}

// displace takes a name from every inode but one, since it leads to that one now, and returns
// one that lost it, or 0. It stops at one to which the name leads by now.
func (t *table) displace(dir wsfs.Ino, name string, ino wsfs.Ino, leads func(ident) bool) (lost wsfs.Ino) {
	for old := t.named(dir, name, ino); old != 0; old = t.named(dir, name, ino) {
		n, ok := t.lock(old)
		if !ok {
			continue
		}
		if n.name == name && n.parent == dir && leads(n.ident()) {
			n.unlock()
			return lost
		}
		if n.loseName(dir, name) {
			n.flags |= flagTaken
			lost = old
		}
		n.unlock()
	}
	return lost
}

// unnamed takes a name from an inode, if it has it; with taken it sets flagTaken.
func (t *table) unnamed(ino, dir wsfs.Ino, name string, taken bool) bool {
	n, ok := t.lock(ino)
	if !ok {
		return false
	}
	defer n.unlock()
	if !n.loseName(dir, name) {
		return false
	}
	if taken {
		n.flags |= flagTaken
	}
	return true
}

func (t *table) check(num uint32, dir wsfs.Ino, name string) wsfs.Ino {
	sh, place := num&(shardCount-1), num>>shardBits
	s := &t.shards[sh]
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.at(place)
	if n == nil || n.flags&flagLive == 0 || n.parent != dir || n.name != name {
		return 0
	}
	return number(sh, place, n.gen)
}

// path names an inode by a path from the root.
func (t *table) path(ino wsfs.Ino) (string, bool) {
	if ino == wsfs.RootIno {
		return "", true
	}
	var names []string
	size := 0
	for ino != wsfs.RootIno {
		n, ok := t.lock(ino)
		if !ok {
			return "", false
		}
		parent, name := n.parent, n.name
		n.unlock()
		if name == "" || len(names) > unix.PathMax {
			return "", false
		}
		names = append(names, name)
		size += len(name) + 1
		ino = parent
	}
	path := make([]byte, 0, size)
	for i := len(names) - 1; i >= 0; i-- {
		path = append(path, names[i]...)
		if i > 0 {
			path = append(path, '/')
		}
	}
	return string(path), true
}

// pathOf is path for a name in a directory.
func (t *table) pathOf(dir wsfs.Ino, name string) (string, bool) {
	p, ok := t.path(dir)
	if ok && p != "" {
		p += "/"
	}
	return p + name, ok
}
