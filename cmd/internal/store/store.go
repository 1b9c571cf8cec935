// Package store is the verbs of a memory engine for programs that are not written in Go: each is
// one call of the command line, on memory that agentm's configuration places, or on a workspace,
// mounted or not.
//
//	answer, code, err := verb.Do(ctx, store.Call{Args: []string{"projects/atlas/plan.md"}, Host: host})
//
// It promises that a workspace is used as a mount of it would use it: with the same grants,
// read-only if it would be, and through its mount if there is one, so that no change that programs
// made there is bypassed. Its own rules hold even if its directory, or its working copy, is
// mounted elsewhere. A workspace whose changes are gathered into commits is used by its working
// copy, and the call ends when they are sent. It refuses calls that it cannot do so.
//
// A condition of a write is checked by the store, in the same step as the change, also if the
// workspace is mounted. A mount that sends changes later takes no condition, nor does a workspace
// in which the last writer wins. Without a mount, changes that are gathered into commits are
// compared with the working copy, and changes of others meanwhile are conflicts when it is sent.
package store

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/project"
)

// CodeOf is the exit code for a refused choice of memory.
func CodeOf(r seam.Reason) exit.Code {
	switch r {
	case seam.ConfigCorrupt, seam.ConfigNoString, seam.NoVaultPath:
		return exit.Manifest
	case seam.VaultAbsent, seam.Silent:
		return exit.Unreachable
	case seam.PersonalSpace, seam.HostPlace:
		return exit.Denied
	}
	return exit.Failed
}

// refusals are the exit code and the hint for each kind of error. The first that fits counts.
var refusals = []struct {
	kind error
	code exit.Code
	hint string
}{
	{context.Canceled, exit.Failed, "it was interrupted: see whether it was done by then"},
	{providers.ErrReadOnly, exit.Denied, "`wsmount resolve`, or `wsmount status` where it is mounted, says what makes it so"},
	{providers.ErrConflict, exit.Conflict, "read it again, and give --if-match the etag that `wsmount store read --json` tells"},
	{providers.ErrNotExist, exit.Unresolvable, "`wsmount store list` shows what there is"},
	{providers.ErrPermission, exit.Denied, "let this user, or the credentials that are used, do it"},
	{providers.ErrUnauthenticated, exit.Denied, "check the secret that is used: `wsmount resolve --explain` names it"},
	{providers.ErrIsDir, exit.Failed, "name a file in it"},
	{providers.ErrNotDir, exit.Failed, "choose a name that does not lie below a file"},
	{providers.ErrExist, exit.Failed, "choose another name"},
	{providers.ErrCorrupt, exit.Failed, "mend it by hand: nothing here replaces what it cannot read"},
	{providers.ErrQuota, exit.Failed, "make room there"},
	{providers.ErrNameTooLong, exit.Failed, "choose a shorter name"},
	{providers.ErrUnsupported, exit.Failed, "keep it elsewhere, or do without"},
	{providers.ErrUnavailable, exit.Unreachable, "check that the store can be reached"},
	{context.DeadlineExceeded, exit.Unreachable, "check that the store can be reached"},
}

// Refusal gives an error its exit code and advice.
func Refusal(err error) error {
	var selection *seam.SelectionError
	var locator *seam.InvalidLocatorError
	var text *seam.TextError
	var mode *project.ModeError
	var unclear *project.UnclearError
	var personal *seam.ApartError
	var told *exit.Error // an error that has advice
	switch {
	case err == nil, errors.As(err, &told):
		return err
	case errors.As(err, &selection):
		return exit.New(CodeOf(selection.Reason), "%w", err).Hint("%s", selection.Do)
	case errors.As(err, &personal):
		return exit.New(exit.Denied, "%w", err).Hint("%s", personal.Do)
	case errors.As(err, &locator):
		return exit.New(exit.Usage, "%w", err).Hint("a locator names a place from the root on, as projects/atlas/plan.md does")
	case errors.As(err, &mode):
		return exit.New(exit.Manifest, "%w", err).Hint("write %s or %s there, or take it out", project.Local, project.OnBackend)
	case errors.As(err, &unclear):
		return exit.New(exit.Manifest, "%w", err).Hint("%s", unclear.Do)
	case errors.Is(err, providers.ErrInvalid):
		return exit.New(exit.Usage, "%w", err).Hint("see `wsmount store --help`")
	case errors.As(err, &text):
		return exit.New(exit.Failed, "%w", err).Hint("the store keeps text: write bytes through a mount")
	}
	for _, r := range refusals {
		if errors.Is(err, r.kind) {
			if code := providers.KindOf(r.kind).Code; code != "" {
				return exit.New(r.code, "%s: %w", code, err).Hint("%s", r.hint)
			}
			return exit.New(r.code, "%w", err).Hint("%s", r.hint)
		}
	}
	return exit.New(exit.Failed, "%w", err).Hint("`wsmount doctor` looks for what is wrong with this machine")
}
