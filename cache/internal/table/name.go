package table

// Name is what is known of a name; false when nothing is.
func (t *Table) Name(dir Ino, name string) (Name, bool) {
	l := Link{Dir: dir, Name: name}
	record, closer := t.read(nameKey(dir, name))
	if closer == nil {
		t.lookups.add(lookup{link: l})
		return Name{}, false
	}
	n, err := decodeName(record)
	if err := closer.Close(); err != nil {
		t.fail(err)
		return Name{}, false
	}
	if err != nil {
		t.damaged("name %q in %d: %w", name, dir, err)
		return Name{}, false
	}
	t.lookups.add(lookup{l, true, indexed{n.Ino, n.Cookie, n.baseIno(), n.Seq}})
	return n, true
}

// indexed is the part of a Name that hangs together with other records.
type indexed struct {
	ino    Ino
	cookie uint64
	home   Ino
	seq    uint64
}

// lookups are the last answers of Name: who sets a name has looked at it just
// before, and a search of the database takes longer than all else that SetName
// does.
type lookups struct {
	last [4]lookup
	next int
}

type lookup struct {
	link  Link
	there bool
	indexed
}

func (ls *lookups) add(l lookup) {
	ls.last[ls.next] = l
	ls.next = (ls.next + 1) % len(ls.last)
}

// take finds an answer, which the caller is about to make wrong.
func (ls *lookups) take(l Link) (found lookup, ok bool) {
	for i := range ls.last {
		if ls.last[i].link == l {
			found, ok = ls.last[i], true
			ls.last[i] = lookup{}
		}
	}
	return found, ok
}

// before is what the table holds under a name that is about to change.
func (t *Table) before(l Link) lookup {
	found, ok := t.lookups.take(l)
	if !ok {
		t.Name(l.Dir, l.Name)
		found, _ = t.lookups.take(l)
	}
	return found
}

// SetName says what is known of a name from now on. A record that says
// nothing (Ino 0, no Base, Seq 0, no Attempt) disappears.
//
// It keeps what hangs on names: Links and Homes of the inodes that have or had
// it, Subdirs, Entries and Cookies of dir, the order of readdir and the order
// of what is to be sent. These inodes, and dir when its entries change, must
// be there; they are edited. A name gets a cookie, which its directory never
// had before, when Ino was 0 and is no more.
func (t *Table) SetName(dir Ino, name string, n Name) {
	l := Link{Dir: dir, Name: name}
	if t.options.Strict && (name == "" || t.Inode(dir) == nil) {
		t.misuse("SetName of %q in directory %d, which is not there", name, dir)
		return
	}
	old := t.before(l)
	n.Cookie = old.cookie
	if n.Ino != old.ino && !t.setEntry(l, old.ino, &n) {
		return
	}
	if !t.setHome(l, old.home, n.baseIno()) {
		return
	}
	t.setDirty(l, old.seq, n.Seq)
	t.changes++
	switch {
	case !n.gone():
		t.write(nameKey(dir, name), n.encode(nil))
	case old.there:
		t.delete(nameKey(dir, name))
	}
}

// setEntry changes which inode l stands for here.
func (t *Table) setEntry(l Link, old Ino, n *Name) bool {
	dir := t.Edit(l.Dir)
	if dir == nil {
		t.misuse("SetName of %q in directory %d, which is not there", l.Name, l.Dir)
		return false
	}
	if old != 0 {
		if !t.unlink(dir, l, old) {
			return false
		}
	} else {
		dir.Cookies++
		n.Cookie = dir.Cookies
	}
	if n.Ino != 0 && !t.link(dir, l, n.Ino) {
		return false
	}
	t.cursors.forget(l.Dir)
	if n.Ino == 0 {
		t.delete(cookieKey(l.Dir, n.Cookie))
		n.Cookie = 0
		return true
	}
	t.write(cookieKey(l.Dir, n.Cookie), encodeEntry(n.Ino, l.Name))
	return true
}

func (t *Table) link(dir *Inode, l Link, ino Ino) bool {
	n := t.Edit(ino)
	if n == nil {
		t.misuse("SetName of %q in %d to inode %d, which is not there", l.Name, l.Dir, ino)
		return false
	}
	n.Links = append(n.Links, l)
	dir.Entries++
	if n.isDir() {
		dir.Subdirs++
	}
	return true
}

func (t *Table) unlink(dir *Inode, l Link, ino Ino) bool {
	n := t.Edit(ino)
	if n == nil {
		t.misuse("the name %q in %d stands for inode %d, which is not there", l.Name, l.Dir, ino)
		return false
	}
	n.Links = without(n.Links, l)
	dir.Entries--
	if n.isDir() {
		dir.Subdirs--
	}
	return true
}

// setHome changes which inode has the name l at the backend.
func (t *Table) setHome(l Link, old, now Ino) bool {
	if old == now {
		return true
	}
	if old != 0 {
		n := t.Edit(old)
		if n == nil {
			t.misuse("the name %q in %d is at the backend inode %d, which is not there", l.Name, l.Dir, old)
			return false
		}
		n.Homes = without(n.Homes, l)
	}
	if now != 0 {
		n := t.Edit(now)
		if n == nil {
			t.misuse("SetName of %q in %d with base inode %d, which is not there", l.Name, l.Dir, now)
			return false
		}
		n.Homes = append(n.Homes, l)
	}
	return true
}
