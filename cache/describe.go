package cache

import (
	"fmt"

	"github.com/wsmount/wsmount/fs"
)

// Describe implements fs.Describer. state is "clean", "remote" (clean, the
// content not here yet), "unsaved", "conflict" or "local" (never sent).
func (v *Volume) Describe(_ *fs.Op, ino fs.Ino, what string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return "", false
	}
	var k known
	for _, l := range v.locators(ino, n) {
		if at := v.base.get(l); at != nil && at.ino == ino {
			k = *at
		}
	}
	switch what {
	case "provider":
		return v.o.Provider, true
	case "state":
		return v.state(n), true
	case "reason":
		return n.rare().reason, n.rare().reason != ""
	case "etag":
		return k.version.ETag, k.version.ETag != ""
	case "version":
		return fmt.Sprintf("%s;%d;%d", k.version.ETag, k.version.Modified, k.version.Size), !k.version.IsZero()
	}
	return "", false
}

func (v *Volume) state(n *node) string {
	switch {
	case !v.sendable(n):
		return "local"
	case n.conflict && n.dirty():
		return "conflict"
	case n.dirty():
		return "unsaved"
	case n.isRegular() && !n.present && n.size > 0:
		return "remote"
	}
	return "clean"
}
