package table

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// failure is the reason why a table answers nothing any more, and whether the changes at
// hand may be committed.
type failure struct {
	o       *Options // of the table
	log     *slog.Logger
	first   atomic.Pointer[error]
	misused error // since the last Abort
}

// fail keeps the first error.
func (f *failure) fail(err error) {
	err = damage(err)
	if f.first.CompareAndSwap(nil, &err) {
		f.log.Error("the table of the working copy failed", slog.Any("error", err))
	}
}

// Err is the first error after which the table answers nothing: a read or a
// write that failed, or damage. Reads then find nothing, and Commit and Sync
// fail with it. It needs no lock.
func (f *failure) Err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// damaged notes that a record makes no sense.
func (f *failure) damaged(format string, args ...any) {
	f.fail(fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...)))
}

// misuse notes a broken rule: the changes at hand are not to be trusted.
func (f *failure) misuse(format string, args ...any) {
	if f.Err() != nil {
		return // a failed table answers nothing, which can look like misuse
	}
	err := fmt.Errorf("%w: %s", ErrMisuse, fmt.Sprintf(format, args...))
	if f.o.Strict {
		panic(err)
	}
	f.log.Error("a bug of wsmount", slog.Any("error", err))
	if f.misused == nil {
		f.misused = err
	}
}
