package upload

import (
	"context"
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// The metadata of an entry are the remote's own and go back with every write. Values that describe
// the old bytes do not outlive them (contentChanged), and an entry that takes the place of another
// inherits its metadata: most programs save by writing a new file and renaming it.

// TakeMetadata takes over the remote's metadata of a state of content.
func (x *Executor) TakeMetadata(tx *tree.Tx, ino table.Ino, gen uint64, metadata map[string]string) {
	n := tx.Inode(ino)
	if n == nil || !x.caps.Metadata {
		return
	}
	if n.ContentVersion != gen {
		metadata = providers.MetadataOfNew(metadata)
	}
	if !maps.Equal(n.Metadata, metadata) {
		tx.Edit(ino).Metadata = metadata
	}
}

// inherited is the inode whose place at the remote an operation takes, if it may have metadata to
// inherit; 0: none.
func (x *Executor) inherited(v *tree.View, s *Try) table.Ino {
	base := v.Record(s.Link).Remote
	if !x.caps.Metadata || base == nil || base.Ino == s.Ino || base.Kind != providers.KindFile || v.Inode(base.Ino) == nil {
		return 0
	}
	return base.Ino
}

// fetchInheritedAttrs asks for the metadata of the entry that an operation replaces.
func (x *Executor) fetchInheritedAttrs(ctx context.Context, s *Try) error {
	v := x.o.Tree.Lock()
	old := x.inherited(v, s)
	x.o.Tree.Unlock()
	if old == 0 {
		return nil
	}
	return x.o.Names.FetchAttrs(ctx, old)
}

// metadataFor is the metadata that the remote is to have of an inode with an operation.
func (x *Executor) metadataFor(v *tree.View, s *Try, n *table.Inode) map[string]string {
	if old := x.inherited(v, s); old != 0 {
		return providers.MetadataInPlaceOf(n.Metadata, v.Inode(old).Metadata)
	}
	return n.Metadata
}
