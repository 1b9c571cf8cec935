package cache

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// pastAt is where a store that keeps its revisions has content, also when it is gone
// from here and from the head.
type pastAt struct {
	Revision providers.Revision `json:"r"`
	Path     string             `json:"p"`
	Version  string             `json:"v"` // that it has there: else it is not that content
}

// pastOf is where the store has the content that an inode has now; nil: nowhere, as far
// as is known. mu is held.
func (v *Volume) pastOf(ino table.Ino, n *table.Inode) *pastAt {
	_, keeps := providers.As[providers.Snapshotter](v.p)
	level := v.syncedRevisionHeld()
	if !keeps || level == "" || !isRegular(n) {
		return nil
	}
	for _, h := range n.RemoteLinks {
		rec, _ := v.table.Name(h.Dir, h.Name)
		at, ok := v.remotePath(h)
		if ok && rec.Remote != nil && rec.Remote.Ino == ino && rec.Remote.ContentVersion == n.ContentVersion && !rec.Remote.Version.IsZero() {
			return &pastAt{level, at.String(), versionText(rec.Remote.Version)}
		}
	}
	return nil
}

// source is the content there, of so many bytes.
func (p *pastAt) source(size int64) contentSource {
	if p == nil {
		return contentSource{}
	}
	at, err := providers.ParseLocator(p.Path)
	if err != nil {
		return contentSource{}
	}
	return contentSource{kind: contentPast, revision: p.Revision, at: at, size: size, version: p.Version}
}

// notKept says that a revision which the history remembers has gone from the store, or
// what was in it.
func (s *contentSource) notKept(err error) error {
	if s.version == "" || !notThere(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotKept, err)
}
