package cache

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Path implements fs.Pather. An inode with several names has any one of them.
func (v *Volume) Path(ino fs.Ino) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return "", false
	}
	all := v.locators(ino, n)
	if len(all) == 0 {
		return "", false
	}
	return all[0].String(), true
}

// locators are all names of an inode. v.mu is held.
func (v *Volume) locators(ino fs.Ino, n *node) []providers.Locator {
	if ino == fs.RootIno {
		return []providers.Locator{{}}
	}
	all := make([]providers.Locator, 0, len(n.links))
	for _, l := range n.links {
		if at, ok := v.locate(l.dir, l.name); ok {
			all = append(all, at)
		}
	}
	return all
}

// locate is the place of a name. ok is false when it lies below a directory
// that was removed. v.mu is held.
func (v *Volume) locate(dir fs.Ino, name string) (providers.Locator, bool) {
	names := []string{name}
	for dir != fs.RootIno {
		n := v.table.node(dir)
		if n == nil || len(n.links) == 0 {
			return providers.Locator{}, false
		}
		names = append(names, n.links[0].name)
		dir = n.links[0].dir
	}
	slices.Reverse(names)
	l, err := providers.ParseLocator(strings.Join(names, "/"))
	return l, err == nil
}
