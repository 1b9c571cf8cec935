// Package replace puts content at a place of a store that has a working copy, on a condition
// about the present content.
//
// A working copy shows the store as it was a moment ago, and sends changes of programs after
// they were made: a condition that was compared in it would hold for neither. So the
// store compares, in the step in which it changes. The working copy learns of that as it does
// of changes of others, before the call returns.
//
//	err := replace.Through(ctx, replace.Part{Store: seam.New(provider), Copy: volume}, l, old, text)
//
// It promises the same as seam.Conditional, and that a program that then looks into the working
// copy finds the state of the store at the end of the call, refused or not. Where it cannot keep
// that it refuses: in a working copy that sends later, and for a file with changes in it that
// the store lacks. It waits for changes that are on their way to the store, as a directory that
// was just made.
package replace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"syscall"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Copy is a working copy.
type Copy interface {
	fs.Volume
	fs.Describer
	Commit(ctx context.Context, o cache.CommitOptions) (cache.CommitReport, error)
	Pull(ctx context.Context, o cache.PullOptions) (cache.PullReport, error)
}

// Part is a store and its working copy.
type Part struct {
	Store   seam.Conditional
	Copy    Copy
	Later   bool                  // changes of programs are sent later than the programs are told
	Exclude *mountspec.ExcludeSet // names that the store never has
}

// Through is Store.WriteIf. The error has a kind of package providers; that the working copy
// could not be brought up to date is none of a change that was made.
func Through(ctx context.Context, p Part, l seam.Locator, old seam.ETag, content string) error {
	switch {
	case p.Later:
		return refuse(l, providers.ErrUnsupported, "a condition cannot be kept in a mount that sends later: write it through the mount, or where the workspace is not mounted")
	case p.Exclude.Match(l.Key(), false):
		return refuse(l, providers.ErrPermission, "storage.exclude of the workspace keeps it out of the store")
	}
	err := sent(ctx, p.Copy, l)
	if errors.Is(err, providers.ErrConflict) { // the missing change may be on its way
		if _, late := p.Copy.Commit(ctx, cache.CommitOptions{}); late == nil {
			err = sent(ctx, p.Copy, l)
		}
	}
	if err != nil {
		return err
	}
	_, err = p.Store.WriteIf(ctx, l, old, content)
	if err == nil || errors.Is(err, providers.ErrConflict) {
		_, _ = p.Copy.Pull(ctx, cache.PullOptions{}) // a failure is reported by the volume
	}
	return err
}

func refuse(l seam.Locator, kind error, format string, args ...any) error {
	return providers.Fail("", providers.MethodWrite, l.Place(), fmt.Errorf(format, args...), kind)
}

// sent refuses a file that the working copy does not show as the store has it: the caller has
// seen another one than the store would compare.
func sent(ctx context.Context, c Copy, l seam.Locator) error {
	op := fs.Op{Cancel: ctx.Done()}
	at := fs.RootIno
	for i, name := range l.Parts() {
		e, err := c.Lookup(&op, at, name)
		if err == nil && e.Ino == 0 || errors.Is(err, syscall.ENOTDIR) {
			return nil // the store says the rest
		}
		if err != nil {
			return providers.Fail("", providers.MethodWrite, l.Place(), err, seam.KindOf(fs.Errno(err)))
		}
		defer c.Forget(e.Ino, 1)
		at = e.Ino
		switch state, _ := c.Describe(&op, at, "state"); state {
		case "clean", "remote":
		default:
			return refuse(l, providers.ErrConflict, "%s is changed in the mount, and the store does not have that yet (%s)", path.Join(l.Parts()[:i+1]...), state)
		}
	}
	return nil
}
