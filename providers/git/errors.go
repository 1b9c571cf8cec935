package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/hub"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// kinds are the kinds, for callers, of the errors of this provider's parts.
var kinds = []struct{ err, kind error }{
	{odb.ErrNotFound, providers.ErrCorrupt}, {odb.ErrCorrupt, providers.ErrCorrupt}, {object.ErrMalformed, providers.ErrCorrupt},
	{odb.ErrTooLarge, providers.ErrTooLarge}, {refs.ErrDamaged, providers.ErrCorrupt},
	{refs.ErrLocked, providers.ErrUnavailable}, {refs.ErrChanged, providers.ErrConflict},
	{errNoPulls, providers.ErrUnsupported}, {lfs.ErrNotOffered, providers.ErrUnsupported},
	{syscall.ENOSPC, providers.ErrQuota}, {syscall.EDQUOT, providers.ErrQuota},
}

// fail wraps err as a verb reports it: nil stays nil.
func fail(ctx context.Context, m providers.Method, l providers.Locator, err error) error {
	if err == nil {
		return nil
	}
	var asked *remote.Error
	var api *hub.Error
	var large *lfs.Error
	switch {
	case errors.Is(err, providers.ErrBody):
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.As(err, &asked):
		return &providers.Error{Provider: name, Op: m, Locator: l, Kind: asked.Kind, Code: asked.Code, Err: asked}
	case errors.As(err, &api):
		return &providers.Error{Provider: name, Op: m, Locator: l, Kind: api.Kind, Code: api.Code, Err: api}
	case errors.As(err, &large):
		return &providers.Error{Provider: name, Op: m, Locator: l, Kind: large.Kind, Code: large.Code, Err: err}
	case isSystem(err):
		// A missing file of the clone does not mean that the file at l is missing.
		return &providers.Error{Provider: name, Op: m, Locator: l, Kind: kindOf(err, providers.ErrUnavailable), Err: errors.New(err.Error())}
	default:
		if kind := kindOf(err, nil); kind != nil {
			return &providers.Error{Provider: name, Op: m, Locator: l, Kind: kind, Err: err}
		}
	}
	return providers.Fail(name, m, l, err, providers.ErrUnavailable)
}

func kindOf(err, otherwise error) error {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return otherwise
}

// isSystem reports whether err is of a system call.
func isSystem(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	var errno syscall.Errno
	var done *providers.Error
	return !errors.As(err, &done) && (errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.As(err, &errno))
}
