package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// A version that is gone is looked into by the caller that asked for its bytes, and only
// there: what a fetch asked for itself could need a fetch again.

var (
	// ErrVersionGone says that the remote does not have a version where it was known to be.
	ErrVersionGone = errors.New("the listed version is gone")
	// ErrNotServed says that the remote does not give content that an inode lacks, now that
	// it was looked for.
	ErrNotServed = errors.New("the remote does not serve the content")
	// ErrPartial says that part of a content is nowhere any more.
	ErrPartial = errors.New("part of the version that it is based on was modified or deleted on the remote before it was fetched")
)

// GoneError is ErrVersionGone of the content of an inode. Its cause does not say what kind
// of error it is: a version that is elsewhere is no conflict.
type GoneError struct {
	Ino   table.Ino
	Was   Whereabouts // where it was looked for
	Cause error       // nil: it was known to be nowhere
}

func (e *GoneError) Error() string {
	if e.Cause == nil || errors.Is(e.Cause, providers.ErrNotExist) { // says no more
		return ErrVersionGone.Error()
	}
	return fmt.Sprintf("%v: %v", ErrVersionGone, e.Cause)
}

// Is has a GoneError be ErrVersionGone.
func (e *GoneError) Is(target error) bool { return target == ErrVersionGone }

// IsElsewhere reports whether an error says that a version is not at a place any more:
// something else is, or there is no such place.
func IsElsewhere(err error) bool {
	for _, kind := range []error{providers.ErrConflict, providers.ErrIsDir, providers.ErrNotExist, providers.ErrNotDir} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Revalidator finds out what became of an inode on the remote.
type Revalidator interface {
	// Revalidate asks the remote whether what is known of an inode still holds.
	Revalidate(ctx context.Context, x table.Ino) error
	// AwaitPlace waits until no change of ours is under way where the remote has an inode,
	// and reports whether there was anything to wait for.
	AwaitPlace(ctx context.Context, x table.Ino) (waited bool)
}

// followed is how often in a row a version is looked for.
const followed = 4

// Follow runs do, which may fetch content, and again when a version that was gone turns out
// to be at another place. The caller has no lock that a Revalidator takes, and no
// transaction under way.
func (h *Hydrator) Follow(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		gone := (*GoneError)(nil)
		if !errors.As(err, &gone) || try == followed {
			return err
		}
		if err := h.FindVersion(ctx, gone); err != nil {
			return err
		}
	}
}

// FindVersion finds out what became of a version that is gone. nil says that it is at
// another place by now: a change of ours was under way. ErrOutdated says that the inode has
// another version, as what the remote has now. ErrNotServed says that the inode keeps its
// version, with ErrPartial that some of that is nowhere any more.
func (h *Hydrator) FindVersion(ctx context.Context, gone *GoneError) error {
	return h.o.Remote.Patiently(ctx, func(ctx context.Context, _ func()) error {
		for asked := false; ; asked = true {
			// While a change of ours is under way there, or meets the other's, the name
			// is left alone.
			unsettled := h.o.Names.AwaitPlace(ctx, gone.Ino)
			switch now := h.Whereabouts(gone.Ino); {
			case now.Known && now.ContentVersion != gone.Was.ContentVersion:
				return ErrOutdated
			case now.Known && now != gone.Was:
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			case asked && !unsettled && now.Known:
				return fmt.Errorf("%w: %w", ErrNotServed, gone)
			case asked && !unsettled:
				return fmt.Errorf("%w: %w: %w", ErrNotServed, ErrPartial, gone)
			}
			if err := h.o.Names.Revalidate(ctx, gone.Ino); err != nil {
				return err
			}
		}
	})
}
