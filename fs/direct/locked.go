package direct

import wsfs "github.com/wsmount/wsmount/fs"

// A locked is an inode whose shard is locked: its record is valid, and may be changed, until
// unlock or settle. A table returns inodes in no other form.
type locked struct {
	*inode
	ino   wsfs.Ino
	tab   *table
	shard *shard
}

func (l locked) unlock() { l.shard.mu.Unlock() }

// settle is unlock, and forgets the inode if nothing holds it.
func (l locked) settle() {
	if l.held() {
		l.unlock()
		return
	}
	pin, dir := l.drop()
	l.unlock()
	pin.dropLater()
	dir.drop()
}

// drop forgets the record. It returns handles to release after unlock.
func (l locked) drop() (pin, dir *handle) {
	sh, place, _ := split(l.ino)
	l.tab.unname(l.inode, sh, place)
	l.shard.ids.del(uint32(l.ident().hash()>>32), place)
	if l.ext != nil {
		pin, dir = l.ext.pin, l.ext.dir
	}
	l.shard.live--
	l.shard.free(l.inode, place)
	return pin, dir
}

// setName notes where the inode was seen, and reports whether that is new.
func (l locked) setName(dir wsfs.Ino, name string) bool {
	if l.parent == dir && l.name == name {
		return false
	}
	sh, place, _ := split(l.ino)
	l.tab.unname(l.inode, sh, place)
	l.parent, l.name = dir, name
	if name != "" {
		l.tab.putName(dir, name, sh, place)
	}
	return true
}

// loseName takes the name away if it is the inode's name.
func (l locked) loseName(dir wsfs.Ino, name string) bool {
	return l.name == name && l.parent == dir && l.setName(dir, "")
}
