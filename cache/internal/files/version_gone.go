package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Only the caller that asked for the bytes looks for a version that is gone, and not the
// fetch: its requests to the remote could need a fetch again.

var (
	// ErrVersionGone says that the remote does not have a version where it was known to be.
	ErrVersionGone = errors.New("the listed version is gone")
	// ErrNotServed says that the remote does not give content that an inode lacks, after
	// the remote was searched for it.
	ErrNotServed = errors.New("the remote does not serve the content")
	// ErrPartial says that part of a content does not exist any more.
	ErrPartial = errors.New("part of the version that it is based on was modified or deleted on the remote before it was fetched")
)

// GoneError is ErrVersionGone of the content of an inode. errors.Is does not reach its
// cause: a version that is elsewhere is no conflict.
type GoneError struct {
	Ino   table.Ino
	Was   Whereabouts // where it was looked for
	Cause error       // nil: no place was known
}

func (e *GoneError) Error() string {
	if e.Cause == nil || errors.Is(e.Cause, providers.ErrNotExist) { // the cause adds nothing
		return ErrVersionGone.Error()
	}
	return fmt.Sprintf("%v: %v", ErrVersionGone, e.Cause)
}

// Is makes a GoneError match ErrVersionGone.
func (e *GoneError) Is(target error) bool { return target == ErrVersionGone }

// IsElsewhere reports whether an error says that a version is not at a place any more:
// another entry is, or there is no such place.
func IsElsewhere(err error) bool {
	for _, kind := range []error{providers.ErrConflict, providers.ErrIsDir, providers.ErrNotExist, providers.ErrNotDir} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Revalidator finds out the remote state of an inode.
type Revalidator interface {
	// Revalidate asks the remote whether the known state of an inode still holds.
	Revalidate(ctx context.Context, x table.Ino) error
	// AwaitPlace waits until no change of ours is under way where the remote has an inode,
	// and reports whether it had to wait.
	AwaitPlace(ctx context.Context, x table.Ino) (waited bool)
}

// followed is how often in a row a version is looked for.
const followed = 4

// Follow runs do, which may fetch content, and repeats it when a version that was gone turns out
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

// FindVersion looks for a version that is gone. nil says that it is at another place by
// now: a change of ours was under way. ErrOutdated says that the inode has another version,
// that of the remote. ErrNotServed says that the inode keeps its version, with ErrPartial
// that part of it does not exist any more.
func (h *Hydrator) FindVersion(ctx context.Context, gone *GoneError) error {
	return h.o.Remote.Patiently(ctx, func(ctx context.Context, _ func()) error {
		for asked := false; ; asked = true {
			// The name is left alone while a change of ours is under way at that place, or
			// meets a change of the other side.
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
