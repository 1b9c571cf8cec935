package fs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// Kinds of failure that a volume may return, wrapped or alone, where no errno
// of its own says it better.
var (
	ErrReadOnly    = errors.New("read-only (storage_read_only)")
	ErrRefused     = errors.New("refused by policy")
	ErrConflict    = errors.New("changed by another writer (storage_conflict)")
	ErrUnavailable = errors.New("the store cannot be reached")
	ErrStale       = errors.New("the inode is gone")
	ErrQuota       = errors.New("quota exceeded")
	ErrName        = errors.New("a name that the store cannot have")
	ErrUnsupported = errors.New("not supported by this volume")
)

type errnoRow struct {
	kind  error
	errno syscall.Errno
}

// ourErrnos maps the kinds of this package. They win over an errno that the
// same error wraps: the volume chose them knowing it.
var ourErrnos = []errnoRow{
	{ErrReadOnly, syscall.EROFS},
	{ErrRefused, syscall.EACCES},
	// A program that meets a conflict has bytes that did not become the file.
	// EIO is what close and fsync may say; ESTALE would make some retry.
	{ErrConflict, syscall.EIO},
	{ErrUnavailable, syscall.EIO},
	{ErrStale, syscall.ESTALE}, // the kernel looks the name up again, once
	{ErrQuota, syscall.EDQUOT},
	{ErrName, syscall.EINVAL}, // as vfat says of a name that it cannot have
	{ErrUnsupported, syscall.ENOTSUP},
}

// otherErrnos maps the kinds of the standard library, for errors that carry no
// errno.
var otherErrnos = []errnoRow{
	{context.Canceled, syscall.EINTR},
	// Waiting was ours, not the caller's, so it is not EINTR; ETIMEDOUT is
	// not among the errors that programs expect of a file.
	{context.DeadlineExceeded, syscall.EIO},
	{fs.ErrNotExist, syscall.ENOENT},
	{fs.ErrExist, syscall.EEXIST},
	{fs.ErrPermission, syscall.EACCES},
	{fs.ErrInvalid, syscall.EINVAL},
	{fs.ErrClosed, syscall.EBADF},
}

// Errno is the errno that a caller of the kernel sees for err: 0 for nil, what
// the tables say of its kind, what a wrapped syscall.Errno says, else EIO. It is
// the only place where an error becomes a number.
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok { // the common case, without unwrapping
		return e
	}
	if e, ok := find(ourErrnos, err); ok {
		return e
	}
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	if e, ok := find(otherErrnos, err); ok {
		return e
	}
	return syscall.EIO
}

func find(rows []errnoRow, err error) (syscall.Errno, bool) {
	for _, row := range rows {
		if errors.Is(err, row.kind) {
			return row.errno, true
		}
	}
	return 0, false
}

// worthTelling reports whether a person should hear of a failure. What POSIX
// programs provoke in normal work (a missing name, an existing one) is not.
func worthTelling(e syscall.Errno, err error) bool {
	switch e {
	case syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM, syscall.EROFS, syscall.EUCLEAN:
		return true
	case 0, syscall.EINTR, syscall.ENOENT:
		return false
	}
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrName)
}
