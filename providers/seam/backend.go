package seam

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

// Backend is a place that memory lies in. All methods may be called at the same time from any
// goroutine. When ctx ends, a call returns soon with an error that is ctx.Err(); whether a write
// happened is then open.
//
// Package seamtest holds a Backend to this contract.
type Backend interface {
	// Resolve makes a Locator of parts, the root of none. It does no I/O.
	Resolve(parts ...string) (Locator, error)

	// Read is the text of the file at l. providers.ErrNotExist for a missing one,
	// providers.ErrIsDir, and a TextError when the file is no text.
	Read(ctx context.Context, l Locator) (string, error)

	// Write puts content at l in one step, whatever file is there, makes missing
	// parents, and returns l. providers.ErrIsDir over a directory and at the root,
	// providers.ErrUnsupported over a symbolic link, a TextError when content is not
	// UTF-8. When it fails nothing changed, unless ctx ended or the error is
	// providers.ErrUnavailable.
	Write(ctx context.Context, l Locator, content string) (Locator, error)

	// List is the immediate children of l, sorted by Key, hidden ones too. A file and a missing
	// directory have none. Children that no Locator can name are listed in an UnnamedError,
	// beside all others.
	List(ctx context.Context, l Locator) ([]Locator, error)

	// Exists reports whether a file or directory is at l. An error means that it could not be
	// known.
	Exists(ctx context.Context, l Locator) (bool, error)

	// Info describes the entry at l; providers.ErrNotExist when there is none.
	Info(ctx context.Context, l Locator) (Info, error)

	// Mkdir makes a directory and its missing parents, and returns l. An existing one is no
	// error; providers.ErrExist when l is something else.
	Mkdir(ctx context.Context, l Locator) (Locator, error)

	// Capabilities are the backend's promises. They are constant; the call does no I/O.
	Capabilities() Capabilities

	// Close releases the backend's resources. No verb may be called after it.
	Close() error
}

// Info describes a place.
type Info struct {
	Locator Locator
	IsDir   bool
	Size    int64 // bytes of UTF-8, 0 for a directory
	// ModTime is when the content last changed; zero where the storage keeps no
	// times, as git does not. Where the tree is replicated it is a hint:
	// replication sets times too, and not in order.
	ModTime time.Time
}

// Capabilities are promises; the zero value makes none.
type Capabilities struct {
	ConcurrentWriters bool // safe with writers in several processes
	ConflictFiles     bool // copies that a sync layer made of a conflict may appear
	Encryption        bool // content is encrypted at rest
	Sync              bool // a program outside replicates the tree; no database belongs in it
}

// flags names each promise, in the order in which they are told.
var flags = []struct {
	name string
	of   func(*Capabilities) *bool
}{
	{"concurrent_writers", func(c *Capabilities) *bool { return &c.ConcurrentWriters }},
	{"conflict_files", func(c *Capabilities) *bool { return &c.ConflictFiles }},
	{"encryption", func(c *Capabilities) *bool { return &c.Encryption }},
	{"sync", func(c *Capabilities) *bool { return &c.Sync }},
}

// ParseCapabilities reads names that commas separate: "sync,encryption". "" is none of them. An
// unknown name is providers.ErrInvalid.
func ParseCapabilities(list string) (Capabilities, error) {
	var c Capabilities
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !c.set(name) {
			return Capabilities{}, fmt.Errorf("there is no capability %q, only %s: %w",
				name, strings.Join(allFlags.names(), ", "), providers.ErrInvalid)
		}
	}
	return c, nil
}

func (c *Capabilities) set(name string) bool {
	for _, flag := range flags {
		if flag.name == name {
			*flag.of(c) = true
			return true
		}
	}
	return false
}

var allFlags = Capabilities{ConcurrentWriters: true, ConflictFiles: true, Encryption: true, Sync: true}

func (c Capabilities) names() []string {
	var names []string
	for _, flag := range flags {
		if *flag.of(&c) {
			names = append(names, flag.name)
		}
	}
	return names
}

// String is the names of the promises: "concurrent_writers,sync".
func (c Capabilities) String() string { return strings.Join(c.names(), ",") }

// Missing names each promise of required that c does not make.
func (c Capabilities) Missing(required Capabilities) []string {
	for _, flag := range flags {
		if *flag.of(&c) {
			*flag.of(&required) = false
		}
	}
	return required.names()
}

// TextError says that content is no UTF-8 text, and from which byte on. It is
// providers.ErrUnsupported; nothing changed.
type TextError struct {
	Locator Locator
	Offset  int // of the first byte that is no text
}

// CheckText refuses content that is no UTF-8 with a TextError.
func CheckText(l Locator, content string) error {
	if utf8.ValidString(content) {
		return nil
	}
	for i, c := range content {
		if c == utf8.RuneError && !strings.HasPrefix(content[i:], string(utf8.RuneError)) {
			return &TextError{l, i}
		}
	}
	return nil // not reached: invalid text has such a place
}

// Error names the place.
func (e *TextError) Error() string {
	return fmt.Sprintf("%q is not UTF-8 text from byte %d on", e.Locator, e.Offset)
}

// Unwrap is providers.ErrUnsupported.
func (e *TextError) Unwrap() error { return providers.ErrUnsupported }

// KindOf is the kind of an error number for which package os has no error;
// providers.ErrUnavailable for all that tell nothing of the request.
func KindOf(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOTDIR:
		return providers.ErrNotDir
	case syscall.EISDIR:
		return providers.ErrIsDir
	case syscall.EROFS:
		return providers.ErrReadOnly
	case syscall.ENOSPC, syscall.EDQUOT:
		return providers.ErrQuota
	case syscall.ENAMETOOLONG:
		return providers.ErrNameTooLong
	}
	return providers.ErrUnavailable
}
