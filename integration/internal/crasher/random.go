package crasher

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
)

const (
	maxFiles = 40
	maxDirs  = 8
	maxOpen  = 6
	maxSize  = 96 << 10
	page     = 4096
)

// MaxNames is how many names a client has at most: of files, directories and links.
const MaxNames = maxFiles + 2*maxDirs

// A chooser makes operations that are possible in the state that a model has.
type chooser struct {
	*rand.Rand
	m     *Model
	names int
	files []string
	dirs  []string // "" is the root
	empty []string
	links []string
	open  []int
}

// next chooses the next operation.
func (c *chooser) next() Op {
	c.look()
	for {
		if o, ok := c.try(c.IntN(100)); ok {
			return o
		}
	}
}

// look lists what there is.
func (c *chooser) look() {
	c.files, c.dirs, c.empty, c.links, c.open = nil, []string{""}, nil, nil, nil
	c.m.Walk(func(p string, n *Node) {
		switch {
		case n.Dir != nil:
			if c.dirs = append(c.dirs, p); len(n.Dir) == 0 {
				c.empty = append(c.empty, p)
			}
		case n.Target != "":
			c.links = append(c.links, p)
		default:
			c.files = append(c.files, p)
		}
	})
	for h := range 1 << 10 {
		if c.m.Open[h] != nil {
			c.open = append(c.open, h)
		}
	}
}

func pick[T any](c *chooser, of []T) (one T, ok bool) {
	if len(of) == 0 {
		return one, false
	}
	return of[c.IntN(len(of))], true
}

// fresh is a path that nothing has.
func (c *chooser) fresh(kind string) string {
	dir, _ := pick(c, c.dirs)
	c.names++
	return path.Join(dir, fmt.Sprint(kind, c.names))
}

// try makes an operation of one kind, if it is possible now.
func (c *chooser) try(kind int) (o Op, ok bool) {
	switch {
	case kind < 30:
		return c.write("write")
	case kind < 36:
		return c.write("store")
	case kind < 48:
		o.Do = "close"
		o.H, ok = pick(c, c.open)
		return o, ok
	case kind < 54:
		o.Do = "fsync"
		o.H, ok = pick(c, c.open)
		return o, ok
	case kind < 72:
		return c.opens(kind)
	}
	return c.name(kind)
}

// write changes one page of an open file: a system call that a kill can only
// let happen or not.
func (c *chooser) write(do string) (Op, bool) {
	h, ok := pick(c, c.open)
	if !ok {
		return Op{}, false
	}
	size := len(c.m.Open[h].Data)
	at := c.IntN(min(size+1, maxSize-page))
	if c.IntN(8) == 0 {
		at = c.IntN(maxSize - page) // may leave a hole
	}
	length := 1 + c.IntN(page-at%page)
	if do == "store" {
		if at >= size {
			return Op{}, false
		}
		length = min(length, size-at)
	}
	return Op{Do: do, H: h, Off: int64(at), Len: length, Seed: c.Uint64()}, true
}

// opens makes or opens a file.
func (c *chooser) opens(kind int) (Op, bool) {
	if len(c.open) >= maxOpen {
		return Op{}, false
	}
	h := 1
	for c.m.Open[h] != nil {
		h++
	}
	if kind < 62 {
		return Op{Do: "create", A: c.fresh("f"), H: h}, len(c.files) < maxFiles
	}
	file, ok := pick(c, c.files)
	if kind < 64 {
		return Op{Do: "opentrunc", A: file, H: h}, ok
	}
	return Op{Do: "open", A: file, H: h}, ok
}

// name changes names and attributes.
func (c *chooser) name(kind int) (o Op, ok bool) {
	file, ok := pick(c, c.files)
	other, _ := pick(c, c.files)
	dir := c.dirs[c.IntN(len(c.dirs))]
	switch {
	case kind < 76:
		return Op{Do: "mkdir", A: c.fresh("d")}, len(c.dirs) < maxDirs
	case kind < 82:
		return Op{Do: "rename", A: file, B: c.fresh("f")}, ok
	case kind < 85:
		return Op{Do: "rename", A: file, B: other}, ok && file != other
	case kind < 87:
		return Op{Do: "exchange", A: file, B: other}, ok && c.m.find(file) != c.m.find(other)
	case kind < 89:
		to := c.fresh("d")
		return Op{Do: "rename", A: dir, B: to}, dir != "" && !strings.HasPrefix(to, dir+"/")
	case kind < 91:
		return Op{Do: "link", A: file, B: c.fresh("f")}, ok && len(c.files) < maxFiles
	case kind < 93:
		return Op{Do: "unlink", A: file}, ok && len(c.files) > maxFiles/4
	case kind < 95:
		o.Do = "rmdir"
		o.A, ok = pick(c, c.empty)
		return o, ok
	case kind < 96:
		return Op{Do: "symlink", A: c.fresh("l"), B: "to/" + fmt.Sprint(c.IntN(100))}, len(c.links) < maxDirs
	case kind < 97:
		link, ok := pick(c, c.links)
		return Op{Do: "unlink", A: link}, ok
	case kind < 98:
		return Op{Do: "truncate", A: file, Len: c.IntN(maxSize / 2)}, ok
	}
	return Op{Do: "chmod", A: file, Mode: 0o600 | uint32(c.IntN(0o100))}, ok
}
