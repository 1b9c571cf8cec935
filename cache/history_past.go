package cache

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// pastOf is where the store has content of an inode; nil: nowhere that is known.
func (v *View) pastOf(ino table.Ino, n *table.Inode, is func(contentVersion uint64) bool) *history.Past {
	_, keeps := providers.As[providers.Snapshotter](v.p)
	level := revision.Synced(v.table, v.o.shown())
	if keeps && level == "" || !n.IsRegular() {
		return nil
	}
	for _, h := range n.RemoteLinks {
		rec, _ := v.table.Name(h.Dir, h.Name)
		at, ok := v.RemotePath(h)
		if ok && rec.Remote != nil && rec.Remote.Ino == ino && is(rec.Remote.ContentVersion) && !rec.Remote.Version.IsZero() {
			return &history.Past{Revision: level, Path: at.String(), Version: history.VersionText(rec.Remote.Version), Size: rec.Remote.Version.Size}
		}
	}
	return nil
}

// pastNow is pastOf for the content that the inode has now.
func pastNow(v *View, ino table.Ino, n *table.Inode) *history.Past {
	return v.pastOf(ino, n, func(at uint64) bool { return at == n.ContentVersion })
}

// notePast notes in the record of what an inode had before, or if there is none in the
// new one, where the store has that. It is part of the update that adds the new one.
func notePast(v *Tx, r, old *history.Record, prev uint64, ino table.Ino, n *table.Inode) {
	past := v.pastOf(ino, n, func(at uint64) bool { return at != n.ContentVersion && (old == nil || at == old.Gen) })
	if old == nil {
		r.Before = past
	} else if past != nil && old.Past == nil {
		old.Past = past
		history.Put(v, prev, old)
	}
}

// pastSource is the content at a place of the past, of so many bytes.
func pastSource(p *history.Past, size int64) contentSource {
	if p == nil {
		return contentSource{}
	}
	at, err := providers.ParseLocator(p.Path)
	switch size = cmp.Or(p.Size, size); {
	case err != nil:
		return contentSource{}
	case size == 0:
		return contentSource{kind: contentEmpty}
	}
	return contentSource{kind: contentPast, revision: p.Revision, at: at, size: size, version: p.Version}
}

// notKept says that a revision which the history remembers has gone from the store, or
// what was in it, or that the store does not let that be known.
func (s *contentSource) notKept(err error) error {
	switch {
	case s.version == "":
		return err
	case notThere(err), errors.Is(err, providers.ErrConflict), errors.Is(err, providers.ErrIsDir):
		return ErrNotKept
	case errors.Is(err, providers.ErrPermission), errors.Is(err, providers.ErrUnsupported):
		return fmt.Errorf("%w here, and the store's past cannot be asked: %w", ErrNotKept, err)
	}
	return err
}
