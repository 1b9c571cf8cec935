package cache

import (
	"context"
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// The metadata of an entry are the backend's own and go back with every write. What is
// true of old bytes only does not outlive them (contentChanged), and an entry that
// takes the place of another is served as that was: most programs save by writing a
// new file and renaming it.

// takeMetadata takes what the backend has with a state of content.
func (v *Tx) takeMetadata(ino table.Ino, gen uint64, metadata map[string]string) {
	n := v.table.Inode(ino)
	if n == nil || !v.caps.Metadata {
		return
	}
	if n.ContentVersion != gen {
		metadata = providers.MetadataOfNew(metadata)
	}
	if !maps.Equal(n.Metadata, metadata) {
		v.table.Edit(ino).Metadata = metadata
	}
}

// inherited is an inode whose place at the backend that of an operation takes, if it may
// have metadata to inherit; 0: none.
func (e *executor) inherited(v *View, s *operation) table.Ino {
	base := v.Record(s.Link).Remote
	if !v.caps.Metadata || base == nil || base.Ino == s.Ino || base.Kind != providers.KindFile || v.table.Inode(base.Ino) == nil {
		return 0
	}
	return base.Ino
}

// fetchInheritedAttrs asks for the metadata of what an operation replaces.
func (e *executor) fetchInheritedAttrs(ctx context.Context, s *operation) error {
	locked := e.v.lock()
	old := e.inherited(locked, s)
	locked.unlock()
	if old == 0 {
		return nil
	}
	return e.fetchAttrs(ctx, old)
}

// metadataFor is what the backend is to have of an inode with an operation.
func (e *executor) metadataFor(v *View, s *operation, n *table.Inode) map[string]string {
	if old := e.inherited(v, s); old != 0 {
		return providers.MetadataInPlaceOf(n.Metadata, v.table.Inode(old).Metadata)
	}
	return n.Metadata
}
