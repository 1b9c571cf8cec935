package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// crosses reports whether giving n the name to, in place of from, would change on which
// side of the border to what stays on this machine it is.
func (v *Tx) crosses(from, to table.Link, n *table.Inode) bool {
	if !v.sendable(n) || v.o.Exclude == nil && !v.ignoring() {
		return false
	}
	return v.stays(from, n) != v.stays(to, n)
}

// excluded reports whether what the backend has at a path is not shown.
func (v *Volume) excluded(at providers.Locator, kind providers.Kind) bool {
	return v.o.Exclude != nil && v.o.Exclude.Match(at.String(), kind == providers.KindDir)
}
