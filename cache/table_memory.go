package cache

import (
	"sort"

	"github.com/wsmount/wsmount/fs"
)

// memTable is a table in the memory of this process.
type memTable struct {
	nodes map[fs.Ino]*node
	dirs  map[fs.Ino]*memDir
	last  fs.Ino
}

var _ table = (*memTable)(nil)

func newMemTable() *memTable {
	return &memTable{nodes: map[fs.Ino]*node{}, dirs: map[fs.Ino]*memDir{}, last: fs.RootIno}
}

func (t *memTable) alloc() fs.Ino {
	t.last++
	return t.last
}

func (t *memTable) node(ino fs.Ino) *node    { return t.nodes[ino] }
func (t *memTable) save(ino fs.Ino, n *node) { t.nodes[ino] = n }

func (t *memTable) drop(ino fs.Ino) {
	delete(t.nodes, ino)
	delete(t.dirs, ino)
}

func (t *memTable) entry(dir fs.Ino, name string) (dirent, bool) {
	d := t.dirs[dir]
	if d == nil {
		return dirent{}, false
	}
	cookie, ok := d.cookies[name]
	if !ok {
		return dirent{}, false
	}
	return d.list[d.behind(cookie-1)], true
}

func (t *memTable) setEntry(dir fs.Ino, name string, ino fs.Ino) {
	d := t.dirs[dir]
	if d == nil {
		d = &memDir{cookies: map[string]uint64{}, last: cookieParent}
		t.dirs[dir] = d
	}
	if cookie, ok := d.cookies[name]; ok {
		d.list[d.behind(cookie-1)].ino = ino
		return
	}
	d.last++
	d.cookies[name] = d.last
	d.list = append(d.list, dirent{name, ino, d.last})
}

func (t *memTable) dropEntry(dir fs.Ino, name string) {
	d := t.dirs[dir]
	if d == nil {
		return
	}
	if cookie, ok := d.cookies[name]; ok {
		delete(d.cookies, name)
		d.list[d.behind(cookie-1)] = dirent{cookie: cookie}
		d.compact()
	}
}

func (t *memTable) next(dir fs.Ino, after uint64) (dirent, bool) {
	d := t.dirs[dir]
	if d == nil {
		return dirent{}, false
	}
	for i := d.behind(after); i < len(d.list); i++ {
		if d.list[i].ino != 0 {
			return d.list[i], true
		}
	}
	return dirent{}, false
}

func (t *memTable) count(dir fs.Ino) int {
	if d := t.dirs[dir]; d != nil {
		return len(d.cookies)
	}
	return 0
}

// memDir is the entries of a directory, in the order of their cookies. It
// outlives its last entry, so that cookies are not given twice.
type memDir struct {
	cookies map[string]uint64
	list    []dirent // ascending; a removed one has ino 0
	last    uint64   // the cookie that was given last
}

// behind is the index of the first element with a greater cookie.
func (d *memDir) behind(cookie uint64) int {
	return sort.Search(len(d.list), func(i int) bool { return d.list[i].cookie > cookie })
}

// compact closes gaps once most of the list is gaps.
func (d *memDir) compact() {
	if len(d.list) < 16 || len(d.cookies) > len(d.list)/2 {
		return
	}
	kept := make([]dirent, 0, len(d.cookies)+8)
	for _, e := range d.list {
		if e.ino != 0 {
			kept = append(kept, e)
		}
	}
	d.list = kept
}
