package table

// Name is the record of a name; false when there is none. Values that it points to are the
// table's, and must not be changed.
func (t *Table) Name(dir Ino, name string) (Name, bool) {
	if t.Err() != nil {
		return Name{}, false
	}
	l := Link{Dir: dir, Name: name}
	if known, ok := t.names.get(l); ok {
		return known.Name, known.there
	}
	record, closer := t.read(nameKey(dir, name))
	if closer == nil {
		if t.Err() == nil {
			t.names.put(l, known{})
		}
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
	t.names.put(l, known{n, true})
	return n, true
}

// known is an answer of Name.
type known struct {
	Name
	there bool
}

// SetName sets the record of a name. An empty record (Ino 0, no Remote, Seq 0, no Attempt)
// disappears.
//
// It keeps the dependent records: Links and RemoteLinks of the inodes that have or had the
// name, Subdirs, Entries and Cookies of dir, the order of readdir, the order of dirty names
// and the list of Local names. These inodes, and dir when its entries change, must exist;
// they are edited. Values that n points to are the table's from now on. A name gets a
// cookie, which its directory never had before, when Ino changes from 0.
func (t *Table) SetName(dir Ino, name string, n Name) {
	l := Link{Dir: dir, Name: name}
	if t.options.Strict && (name == "" || t.Inode(dir) == nil) {
		t.misuse("SetName of %q in directory %d, which is not there", name, dir)
		return
	}
	old, there := t.Name(dir, name)
	n.Cookie = old.Cookie
	if n.Ino != old.Ino && !t.setEntry(l, old.Ino, &n) {
		return
	}
	if !t.setHome(l, old.baseIno(), n.baseIno()) {
		return
	}
	t.setDirty(l, old.Seq, n.Seq)
	t.changes++
	if there && isNews(old.Remote, n.Remote) {
		t.news++
	}
	switch {
	case !n.gone():
		t.write(nameKey(dir, name), n.encode(nil))
	case there:
		t.delete(nameKey(dir, name))
	}
	if n.gone() {
		n = Name{}
	}
	t.setLocal(l, old.Local, n.Local)
	t.names.put(l, known{n, !n.gone()})
	t.named = append(t.named, l)
}

// setEntry changes the local inode of l.
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
	if n.IsDir() {
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
	if n.IsDir() {
		dir.Subdirs--
	}
	return true
}

// setHome changes the inode that has the name l at the remote.
func (t *Table) setHome(l Link, old, now Ino) bool {
	if old == now {
		return true
	}
	if old != 0 {
		n := t.Edit(old)
		if n == nil {
			t.misuse("the name %q in %d is at the store inode %d, which is not there", l.Name, l.Dir, old)
			return false
		}
		n.RemoteLinks = without(n.RemoteLinks, l)
	}
	if now != 0 {
		n := t.Edit(now)
		if n == nil {
			t.misuse("SetName of %q in %d with base inode %d, which is not there", l.Name, l.Dir, now)
			return false
		}
		n.RemoteLinks = append(n.RemoteLinks, l)
	}
	return true
}
