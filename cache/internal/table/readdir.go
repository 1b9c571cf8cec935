package table

// Next is the first entry of a directory after a cookie, among the names that have an inode.
func (t *Table) Next(dir Ino, cookie uint64) (DirEnt, bool) {
	if n := t.Inode(dir); n == nil || cookie >= n.Cookies || n.Entries == 0 {
		return DirEnt{}, false
	}
	c := t.cursors.of(dir)
	if c.at != cookie || len(c.ahead) == 0 {
		if c.at != cookie {
			c.size = 0
		}
		t.refill(c, cookie)
	}
	if len(c.ahead) == 0 {
		return DirEnt{}, false
	}
	e := c.ahead[0]
	c.ahead, c.at = c.ahead[1:], e.Cookie
	return e, true
}

// refill reads the entries after a cookie.
func (t *Table) refill(c *cursor, cookie uint64) {
	c.size = min(max(2*c.size, pieceMin), pieceMax)
	c.ahead = c.ahead[:0]
	lower, upper := cookieKey(c.dir, cookie+1), behind(cookieKey(c.dir, 0)[:9])
	for _, p := range t.piece(lower, upper, c.size) {
		ino, name, err := decodeEntry(p.record)
		if err != nil {
			t.damaged("entry %d of %d: %w", tail(p.key), c.dir, err)
			c.ahead = nil
			return
		}
		c.ahead = append(c.ahead, DirEnt{Name: name, Ino: ino, Cookie: tail(p.key)})
	}
}

// cursors are places in directories that were read last, with the next entries: readdir
// asks for one entry after the other.
type cursors [4]cursor

type cursor struct {
	dir   Ino // 0: none
	at    uint64
	ahead []DirEnt
	size  int // of the last piece
}

// of is the cursor of a directory. The one used last stands first.
func (cs *cursors) of(dir Ino) *cursor {
	for i := range cs {
		if cs[i].dir == dir {
			cs[0], cs[i] = cs[i], cs[0]
			return &cs[0]
		}
	}
	copy(cs[1:], cs[:len(cs)-1])
	cs[0] = cursor{dir: dir, at: ^uint64(0)}
	return &cs[0]
}

// forget is for a directory whose entries change.
func (cs *cursors) forget(dir Ino) {
	for i := range cs {
		if cs[i].dir == dir {
			cs[i] = cursor{}
		}
	}
}

func (cs *cursors) clear() { *cs = cursors{} }
