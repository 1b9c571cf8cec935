package cache

import (
	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// attrs is how attributes of the backend and of inodes belong together.
func (v *Volume) attrs() attrs.Mapping {
	return attrs.Mapping{
		UID: v.o.Owner.UID, GID: v.o.Owner.GID, Umask: v.o.Umask, MapIDs: v.o.MapIDs,
		Kept: v.caps.Attributes, Listed: v.caps.ListComplete,
	}
}

var _ fs.Notifier = nobody{}

// gone reports whether nothing leads to an inode here any more: then its content
// may be gone too.
func (v *Volume) gone(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	return locked.IsGone(ino)
}
