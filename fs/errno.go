package fs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// Kinds of failure that a volume may return, wrapped or alone, where no errno is more precise.
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

// ourErrnos maps the kinds of this package. They take precedence over an errno that the same
// error wraps: the volume chose the kind knowing that errno.
var ourErrnos = []errnoRow{
	{ErrReadOnly, syscall.EROFS},
	{ErrRefused, syscall.EACCES},
	// The bytes of a program that meets a conflict did not become the file's content. close and
	// fsync may fail with EIO; ESTALE would make some programs retry.
	{ErrConflict, syscall.EIO},
	{ErrUnavailable, syscall.EIO},
	{ErrStale, syscall.ESTALE}, // the kernel looks the name up again, once
	{ErrQuota, syscall.EDQUOT},
	{ErrName, syscall.EINVAL}, // as vfat answers for a name that it cannot store
	{ErrUnsupported, syscall.ENOTSUP},
}

// otherErrnos maps the kinds of the standard library, for errors that carry no
// errno.
var otherErrnos = []errnoRow{
	{context.Canceled, syscall.EINTR},
	// The deadline was ours, not the caller's, so it is not EINTR; ETIMEDOUT is not an error
	// that programs expect of a file.
	{context.DeadlineExceeded, syscall.EIO},
	{fs.ErrNotExist, syscall.ENOENT},
	{fs.ErrExist, syscall.EEXIST},
	{fs.ErrPermission, syscall.EACCES},
	{fs.ErrInvalid, syscall.EINVAL},
	{fs.ErrClosed, syscall.EBADF},
}

// Errno is the errno that a caller of the kernel sees for err: 0 for nil, else the errno of the
// kind in ourErrnos, a wrapped syscall.Errno, the errno of the kind in otherErrnos, or EIO, in
// this order. No other function turns an error into a number.
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

// worthTelling reports whether a person should know of a failure. Failures that POSIX programs
// provoke in normal work (a missing name, an existing one) are not reported.
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
