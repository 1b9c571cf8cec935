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

// takeMetadata takes what the backend has with a state of content. mu is held, in an
// update.
func (v *Volume) takeMetadata(ino table.Ino, gen uint64, metadata map[string]string) {
	n := v.table.Inode(ino)
	if n == nil || !v.caps.Metadata {
		return
	}
	if n.Gen != gen {
		metadata = providers.MetadataOfNew(metadata)
	}
	if !maps.Equal(n.Metadata, metadata) {
		v.table.Edit(ino).Metadata = metadata
	}
}

// inherited is an inode whose place at the backend that of a step takes, if it may
// have metadata to inherit; 0: none. mu is held.
func (e *engine) inherited(s *step) table.Ino {
	base := e.record(s.link).Base
	if !e.v.caps.Metadata || base == nil || base.Ino == s.ino || base.Kind != providers.KindFile || e.v.table.Inode(base.Ino) == nil {
		return 0
	}
	return base.Ino
}

// revealInherited asks for the metadata of what a step replaces.
func (e *engine) revealInherited(ctx context.Context, s *step) error {
	e.v.mu.Lock()
	old := e.inherited(s)
	e.v.mu.Unlock()
	if old == 0 {
		return nil
	}
	return e.reveal(ctx, old)
}

// metadataFor is what the backend is to have of an inode with a step. mu is held.
func (e *engine) metadataFor(s *step, n *table.Inode) map[string]string {
	if old := e.inherited(s); old != 0 {
		return providers.MetadataInPlaceOf(n.Metadata, e.v.table.Inode(old).Metadata)
	}
	return n.Metadata
}
