package direct

import (
	"slices"
	"sync"

	wsfs "github.com/wsmount/wsmount/fs"
)

// maxOtherMounts bounds how many names that lead to another mount are kept.
const maxOtherMounts = 20

// otherMounts are the names that were found to lead to another mount.
type otherMounts struct {
	mu    sync.Mutex // guards the fields below
	count int64
	paths []string
}

// add counts a lookup, and reports whether its path is a new one.
func (o *otherMounts) add(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	if len(o.paths) >= maxOtherMounts || slices.Contains(o.paths, path) {
		return false
	}
	o.paths = append(o.paths, path)
	return true
}

func (o *otherMounts) known() (count int64, paths []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count, slices.Clone(o.paths)
}

// refuse counts a lookup that led to another mount. Each path is logged once: a program that
// lists a directory repeats the lookup.
func (v *Volume) refuse(dir wsfs.Ino, name string) {
	path, _ := v.tab.pathOf(dir, name)
	if v.others.add(path) {
		v.log.Warn("not served: another file system is mounted there", "path", path)
	}
}
