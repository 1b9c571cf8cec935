// Package replace puts content at a place of a store that has a working copy, on a condition
// of what is there.
//
// A working copy shows what the store had a moment ago, and sends what programs changed after
// they have changed it: a condition that was compared here would hold for neither. So the
// store is asked, in the step in which it changes. The working copy learns of that as it does
// of what others change, before the call returns.
//
//	err := replace.Through(ctx, replace.Part{Store: seam.New(provider), Copy: volume}, l, old, text)
//
// It promises what seam.Conditional does, and that whoever then looks into the working copy
// finds what the store had at the end of the call, refused or not. Where it cannot keep that
// it refuses: in a working copy that sends later, and for a file of which that has something
// which the store lacks. What is on its way to the store, as a directory that was just made, is
// waited for.
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
	Later   bool                  // what programs change is sent later than they are told
	Exclude *mountspec.ExcludeSet // what the store never has
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
	if errors.Is(err, providers.ErrConflict) { // what the store lacks may be on its way there
		if _, late := p.Copy.Commit(ctx, cache.CommitOptions{}); late == nil {
			err = sent(ctx, p.Copy, l)
		}
	}
	if err != nil {
		return err
	}
	_, err = p.Store.WriteIf(ctx, l, old, content)
	if err == nil || errors.Is(err, providers.ErrConflict) {
		_, _ = p.Copy.Pull(ctx, cache.PullOptions{}) // it tells by itself when it fails
	}
	return err
}

func refuse(l seam.Locator, kind error, format string, args ...any) error {
	return providers.Fail("", providers.MethodWrite, l.Place(), fmt.Errorf(format, args...), kind)
}

// sent refuses a file that the working copy does not show as the store has it: who asks has
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
