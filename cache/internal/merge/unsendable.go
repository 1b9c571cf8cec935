package merge

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Unsendable implements upload.Content: it deals with a name whose content could not be sent
// because a part of it is gone: then the name is planned anew. Else the error is cause.
func (v *Merger) Unsendable(ctx context.Context, l table.Link, cause error) error {
	switch {
	case errors.Is(cause, files.ErrVersionGone):
		return v.lookFor(ctx, l, cause)
	case !errors.Is(cause, files.ErrPartial) && !errors.Is(cause, fs.ErrStale):
		return cause
	}
	m := v.New(ctx, v.o.Provider)
	err := m.Run(func(v *Tx) error {
		rec := v.Record(l)
		if rec.Ino == 0 || !v.isPartial(rec.Ino) {
			return upload.ErrMoot
		}
		if s := m.at(v, l, nil); s.saveRemnant(rec.Ino) {
			s.yield()
		}
		v.Own = true // the copy goes with the commit that asked for it
		return nil
	})
	if err == upload.ErrMoot { // never wrapped
		return cause
	}
	if err = errors.Join(err, m.unanswered()); err != nil {
		return err
	}
	return upload.ErrAgain
}

// lookFor looks for the content of a name, a part of which is not in its known place. It is then
// at another place, or a part of it is gone.
func (v *Merger) lookFor(ctx context.Context, l table.Link, cause error) error {
	rec, _ := v.record(l)
	x := rec.Ino
	if err := v.RevalidateInode(ctx, x); err != nil {
		return err
	}
	rec, n := v.record(l)
	if rec.Ino != x {
		return upload.ErrAgain
	}
	restIsGone := v.restIsGone
	if n != nil && n.IsSymlink() {
		restIsGone = v.isGone
	}
	gone, err := restIsGone(ctx, x)
	switch {
	case err != nil:
		return err
	case !gone:
		return upload.ErrAgain
	}
	return v.Unsendable(ctx, l, fmt.Errorf("%w: %v", files.ErrPartial, cause)) // not ErrVersionGone again
}

// isPartial reports whether part of an inode's content is nowhere any more. A file that a program
// is writing is left to the program: it may overwrite the rest.
func (v view) isPartial(x table.Ino) bool {
	n := v.Inode(x)
	if n == nil || !n.IsRegular() || n.State == table.Whole || n.Size == 0 {
		return false
	}
	if v.o.Open.IsWritten(v.View, x) {
		return false
	}
	_, _, there := v.OriginAt(x)
	return !there
}

// yield gives the name to the remote's entry: a file that is known, or none.
func (s *sides) yield() {
	if b := s.rec.Remote; b == nil || b.Kind == providers.KindDir {
		s.unname()
		return
	}
	theirs := s.tx.infoOf(s.l, s.rec)
	s.theirs = &theirs
	s.takeTheirs()
}
