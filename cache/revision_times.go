package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// keyCame is since when names that are listed for the first time are those of
// the present revision.
const keyCame = "pull/since"

func (v *Volume) noteRevision() error {
	return v.update(func(v *Tx) error {
		v.revisionComes()
		return nil
	})
}

// revisionComes notes that another revision is shown from now on.
func (v *Tx) revisionComes() { v.table.Set(keyCame, fmt.Appendf(nil, "%x", v.now())) }

// revisionSince is how old what the backend tells no time of is at least: of a store of
// whole revisions as old as the pull that brought this one; 0: nothing is known.
func (v *View) revisionSince() int64 {
	at, _ := strconv.ParseInt(string(v.table.Get(keyCame)), 16, 64)
	return at
}

// keyFirst is when the revision was made that was here first: all of its content is
// as old, whenever somebody lists it.
const keyFirst = "pull/first"

// begins is the revision that a working copy begins with, and when it was made.
func begins(ctx context.Context, s revisions) (head providers.Revision, made time.Time, err error) {
	if head, err = s.Head(ctx); err != nil || head == "" {
		return head, made, err
	}
	found, err := s.Find(ctx, string(head))
	if errors.Is(err, providers.ErrNotExist) {
		err = nil
	}
	return head, found.Time, err
}

// setFirst notes when the first revision was made; zero: nobody says.
func (v *Tx) setFirst(made time.Time) {
	if made.Unix() > 0 && made.Before(v.o.Now()) {
		v.table.Set(keyFirst, fmt.Appendf(nil, "%x", made.UnixNano()))
	}
}

// firstListed is the time of change of what is listed for the first time: that of the
// first revision until another came, of which others may have seen something before.
func (v *View) firstListed(now table.Time) table.Time {
	at, err := strconv.ParseInt(string(v.table.Get(keyFirst)), 16, 64)
	if err != nil || v.revisionSince() != 0 {
		return now
	}
	return table.Stamp(at)
}
