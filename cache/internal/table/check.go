package table

import (
	"errors"
	"fmt"
	"slices"
)

// Check reads everything, changes at hand included, and verifies the invariants between the
// records. It reports the first hundred breaches, each as an error, joined.
func (t *Table) Check() error {
	if t.misused != nil {
		return t.misused
	}
	c := checker{t: t}
	t.stage()
	c.names()
	c.inodes()
	c.cookies()
	c.dirty()
	c.local()
	if err := t.Err(); err != nil {
		c.found = append(c.found, err)
	}
	return errors.Join(c.found...)
}

// checker counts while it goes over the records.
type checker struct {
	t     *Table
	found []error

	dir                         Ino // whose names are being read
	entries, subdirs            uint64
	allEntries, allCookies      int
	allDirty, allLocal          int
	allLinks, allHomes, atHomes int
}

func (c *checker) wrong(format string, args ...any) {
	if len(c.found) < 100 {
		c.found = append(c.found, fmt.Errorf(format, args...))
	}
}

// names checks each name against the records that depend on it.
func (c *checker) names() {
	c.t.walk([]byte{keyName}, behind([]byte{keyName}), func(key, record []byte) bool {
		if len(key) < 10 {
			c.wrong("the key %q is no name's", key)
			return true
		}
		l := Link{Dir: tail(key[:9]), Name: string(key[9:])}
		if l.Dir != c.dir {
			c.endDir()
			c.dir = l.Dir
		}
		n, err := decodeName(record)
		if err != nil {
			c.wrong("%q in %d: %w", l.Name, l.Dir, err)
			return true
		}
		c.name(l, n)
		return true
	})
	c.endDir()
}

func (c *checker) name(l Link, n Name) {
	if n.gone() {
		c.wrong("%q in %d says nothing", l.Name, l.Dir)
	}
	if n.Ino != 0 {
		c.entry(l, n)
	}
	if home := n.baseIno(); home != 0 {
		c.atHomes++
		if i := c.t.Inode(home); i == nil || !slices.Contains(i.RemoteLinks, l) {
			c.wrong("%q in %d is at the store inode %d, which does not know it", l.Name, l.Dir, home)
		}
	}
	if n.Local {
		c.allLocal++
		if !c.t.has(localKey(l.Dir, l.Name)) {
			c.wrong("%q in %d is local, and not listed as such", l.Name, l.Dir)
		}
	}
	if n.Seq != 0 {
		c.allDirty++
		record, closer := c.t.read(dirtyKey(n.Seq))
		if closer == nil {
			c.wrong("%q in %d has place %d, which is empty", l.Name, l.Dir, n.Seq)
			return
		}
		if got, err := decodeLink(record); err != nil || got != l {
			c.wrong("%q in %d has place %d, where %v is: %v", l.Name, l.Dir, n.Seq, got, err)
		}
		closer.Close()
	}
}

// entry checks a name that stands for a local inode.
func (c *checker) entry(l Link, n Name) {
	c.entries++
	c.allEntries++
	i := c.t.Inode(n.Ino)
	if i == nil || !slices.Contains(i.Links, l) {
		c.wrong("%q in %d stands for inode %d, which does not know it", l.Name, l.Dir, n.Ino)
	}
	if i != nil && i.IsDir() {
		c.subdirs++
	}
	if d := c.t.Inode(l.Dir); d == nil || n.Cookie < FirstCookie || n.Cookie > d.Cookies {
		c.wrong("%q in %d has cookie %d, which its directory never gave", l.Name, l.Dir, n.Cookie)
	}
	record, closer := c.t.read(cookieKey(l.Dir, n.Cookie))
	if closer == nil {
		c.wrong("%q in %d has cookie %d, where nothing is", l.Name, l.Dir, n.Cookie)
		return
	}
	if ino, name, err := decodeEntry(record); err != nil || ino != n.Ino || name != l.Name {
		c.wrong("%q in %d has cookie %d, where %q is: %v", l.Name, l.Dir, n.Cookie, name, err)
	}
	closer.Close()
}

// endDir compares the counts with those in the directory's record.
func (c *checker) endDir() {
	if c.dir != 0 {
		d := c.t.Inode(c.dir)
		switch {
		case d == nil || !d.IsDir():
			c.wrong("there are names in %d, which is no directory", c.dir)
		case d.Entries != c.entries || d.Subdirs != c.subdirs:
			c.wrong("directory %d says %d entries and %d directories in it, and has %d and %d",
				c.dir, d.Entries, d.Subdirs, c.entries, c.subdirs)
		}
	}
	c.entries, c.subdirs = 0, 0
}

// inodes checks that each inode has the names that it says it has. Since each
// name was found in its inode, equal numbers mean equal sets.
func (c *checker) inodes() {
	entries := uint64(0)
	c.t.walk([]byte{keyInode}, behind([]byte{keyInode}), func(key, record []byte) bool {
		n, err := decodeInode(record)
		if err != nil {
			c.wrong("inode %d: %w", tail(key), err)
			return true
		}
		entries += n.Entries
		c.allLinks += len(n.Links)
		c.allHomes += len(n.RemoteLinks)
		if ino := tail(key); ino != Root && ino >= c.t.numbers.ino.next {
			c.wrong("inode %d has a number that was not given", ino)
		}
		if n.IsDir() && len(n.Links) > 1 {
			c.wrong("directory %d has %d names", tail(key), len(n.Links))
		}
		return true
	})
	if c.allLinks != c.allEntries || entries != uint64(c.allEntries) {
		c.wrong("inodes have %d names, directories say %d, and there are %d", c.allLinks, entries, c.allEntries)
	}
	if c.allHomes != c.atHomes {
		c.wrong("inodes have %d names at the store, and there are %d", c.allHomes, c.atHomes)
	}
}

func (c *checker) cookies() {
	c.t.walk([]byte{keyCookie}, behind([]byte{keyCookie}), func(key, _ []byte) bool {
		c.allCookies++
		return true
	})
	if c.allCookies != c.allEntries {
		c.wrong("%d entries are in the order of readdir, and there are %d", c.allCookies, c.allEntries)
	}
}

func (c *checker) local() {
	count := 0
	c.t.Local(func(Ino) bool { return true }, func(Link) bool { count++; return true })
	if count != c.allLocal {
		c.wrong("%d names are listed as local, and %d are", count, c.allLocal)
	}
}

func (c *checker) dirty() {
	count := 0
	first := uint64(0)
	c.t.walk([]byte{keyDirty}, behind([]byte{keyDirty}), func(key, _ []byte) bool {
		if count == 0 {
			first = tail(key)
		}
		count++
		return true
	})
	if count != c.allDirty || count != c.t.DirtyCount() {
		c.wrong("%d names are in the order to send, %d say so, and %d are counted", count, c.allDirty, c.t.DirtyCount())
	}
	if count > 0 && first < c.t.dirty.now.first {
		c.wrong("the order to send begins at %d, and is taken to begin at %d", first, c.t.dirty.now.first)
	}
}
