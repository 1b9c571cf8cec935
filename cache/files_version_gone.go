package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// A version that is gone is looked into by the caller that asked for its bytes, and only
// there: what a fetch asked for itself could need a fetch again.

// revalidator asks the remote whether what is known of an inode still holds.
type revalidator interface {
	Revalidate(ctx context.Context, x table.Ino) error
}

// fetching runs do, which may fetch content, and again when a version that was gone turns
// out to be at another place. The caller has neither puller.headLock nor a change of the
// table under way.
func (v *Volume) fetching(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		gone := (*goneError)(nil)
		if !errors.As(err, &gone) || try == maxTries {
			return err
		}
		if err := v.findVersion(ctx, remoteNames{v}, gone); err != nil {
			return err
		}
	}
}

// findVersion finds out what became of a version that is gone. nil says that it is at
// another place by now: a change of ours was under way. errOutdated says that the inode
// has another version, as what the remote has now. Any other error says that the inode
// keeps its version, of which some is nowhere any more.
func (v *Volume) findVersion(ctx context.Context, r revalidator, gone *goneError) error {
	w := v.wait(nil, v.o.Patience/2)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	for asked := false; ; asked = true {
		// While a change of ours is under way there, or meets the other's, the name
		// is left alone.
		unsettled := v.waitForPlace(w, gone.ino)
		switch now := v.whereabouts(gone.ino); {
		case now.ok && now.gen != gone.was.gen:
			return errOutdated
		case now.ok && now != gone.was:
			return nil
		case w.Err() != nil:
			return translate(w.cause(w.Err()))
		case asked && !unsettled && now.ok:
			return fmt.Errorf("%w: %w", fs.ErrUnavailable, gone)
		case asked && !unsettled:
			return fmt.Errorf("%w: %w: %w", fs.ErrUnavailable, errPartial, gone)
		}
		if err := r.Revalidate(w, gone.ino); err != nil {
			return translate(w.cause(err))
		}
	}
}

// staleOnce makes fs.ErrStale of an error that says that a version is gone, which has the
// kernel look the name up again: once for each state of the inode.
func (v *Volume) staleOnce(err error) error {
	gone := (*goneError)(nil)
	if !errors.As(err, &gone) {
		return err
	}
	locked := v.lock()
	defer locked.unlock()
	if !locked.tellStale(gone.ino, gone) {
		return err
	}
	return fmt.Errorf("%w: %v", fs.ErrStale, err)
}

// toldStale is the state of an inode of which a program was sent back to its name.
type toldStale struct {
	whereabouts
	named bool
	gone  *goneError // which it had fetched in vain; nil: nothing
}

// tellStale reports whether an open of an inode is to be sent back to its name, which
// leads elsewhere now: once, as long as nothing becomes of it, or with all the others who
// waited for the same fetch. A file that a sandbox has bind-mounted leads to the old inode
// however often it is looked up.
func (v *View) tellStale(x table.Ino, gone *goneError) bool {
	told, n := v.pulls.told, v.table.Inode(x)
	state := toldStale{v.whereaboutsOf(x), n != nil && len(n.Links) > 0, gone}
	if before, was := told[x]; was && before.whereabouts == state.whereabouts && before.named == state.named {
		return gone != nil && before.gone == gone
	}
	if len(told) > 4096 {
		for ino := range told {
			if v.table.Inode(ino) == nil {
				delete(told, ino)
			}
		}
	}
	told[x] = state
	return true
}
