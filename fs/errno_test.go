package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestErrno(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"nil", nil, 0},
		{"errno", syscall.ENOTEMPTY, syscall.ENOTEMPTY},
		{"wrapped errno", fmt.Errorf("x: %w", syscall.EXDEV), syscall.EXDEV},
		{"path error", &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, syscall.EMFILE},
		{"read-only", ErrReadOnly, syscall.EROFS},
		{"wrapped read-only", fmt.Errorf("x: %w", ErrReadOnly), syscall.EROFS},
		{"refused", ErrRefused, syscall.EACCES},
		{"conflict", ErrConflict, syscall.EIO},
		{"unavailable", ErrUnavailable, syscall.EIO},
		{"our kind wins over an errno in the same error", fmt.Errorf("%w: %w", ErrReadOnly, syscall.ENOENT), syscall.EROFS},
		{"stale", ErrStale, syscall.ESTALE},
		{"quota", ErrQuota, syscall.EDQUOT},
		{"name", fmt.Errorf("%w: why", ErrName), syscall.EINVAL},
		{"unsupported", ErrUnsupported, syscall.ENOTSUP},
		{"interrupted", context.Canceled, syscall.EINTR},
		{"deadline of ours", context.DeadlineExceeded, syscall.EIO},
		{"not exist", fs.ErrNotExist, syscall.ENOENT},
		{"exist", fs.ErrExist, syscall.EEXIST},
		{"permission", fs.ErrPermission, syscall.EACCES},
		{"invalid", fs.ErrInvalid, syscall.EINVAL},
		{"closed", os.ErrClosed, syscall.EBADF},
		{"unknown", errors.New("x"), syscall.EIO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Errno(tt.err), tt.want, "Errno", tt.err, "=")
		})
	}
}
