package providers

import (
	"bytes"
	"context"
	"io"
	"strings"
)

// Provider is a place where the bytes of a workspace live.
//
// All methods may be called at the same time from any goroutine. When ctx ends, a call returns
// soon with an error that is ctx.Err(); whether a change happened is then unknown. Arguments
// belong to the caller again when the call returns; results belong to the caller, except that
// maps in them must not be changed. After Close every call fails with ErrClosed.
//
// Errors are *Error of one of the kinds in this package, or the context's.
// Beside those that a method names, each may fail with ErrUnavailable,
// ErrUnauthenticated or ErrPermission, and a change with ErrReadOnly or
// ErrQuota.
type Provider interface {
	// Capabilities are this provider's promises. They are constant for the life of the
	// provider, and the call does no I/O.
	Capabilities() Capabilities

	// Stat describes the entry at l. The root always exists. ErrNotExist when there is no
	// entry, also when a parent is missing or no directory.
	Stat(ctx context.Context, l Locator) (Info, error)

	// List gives one page of the immediate children of the directory l, or with Recursive of
	// all entries below it. An entry that exists throughout a listing is in exactly one of its
	// pages. ErrNotExist when there is no entry; ErrNotDir for a file, or ErrNotExist where the
	// provider would need another request to know; ErrInvalid for a token that it did not give,
	// and for an After that is not below l; ErrUnsupported for Recursive without
	// Capabilities.RecursiveList, or where the store turns out to list in no order in which
	// that could continue, and After without Capabilities.ListAfter.
	List(ctx context.Context, l Locator, opts ListOptions) (Page, error)

	// Read opens the content of the file or symbolic link at l. ctx also ends the reading of
	// the body. ErrNotExist, ErrIsDir; ErrConflict when opts.Version is given and is not the
	// present one; ErrInvalid for a negative range. A range beyond the end is an empty body.
	Read(ctx context.Context, l Locator, opts ReadOptions) (Content, error)

	// Write puts body at l in one step, makes missing parents, and returns the new entry.
	// ErrExist and ErrConflict by opts.If; ErrIsDir over a directory, and ErrNotDir below a
	// file, if Capabilities.StrictTree: elsewhere both may exist then, and a listing shows the
	// directory under another name; ErrTooLarge; ErrInvalid without a condition, at the root,
	// or when body is shorter or longer than its Size; ErrBody, with the error of body's
	// Reader, when that fails. In all these cases nothing changed.
	Write(ctx context.Context, l Locator, body Body, opts WriteOptions) (Info, error)

	// Delete removes a file or symbolic link, or on IfDir an empty directory. ErrNotExist,
	// ErrConflict, ErrNotDir by opts.If; Unconditional succeeds when there is no entry.
	// ErrIsDir for a directory without IfDir; ErrNotEmpty; ErrInvalid without a condition, with
	// IfAbsent, or at the root.
	Delete(ctx context.Context, l Locator, opts DeleteOptions) error

	// Mkdir makes a directory and its missing parents. An existing directory stays as it is,
	// and that is no error. ErrExist for another entry; ErrNotDir below a file if
	// Capabilities.StrictTree; ErrUnsupported without Capabilities.EmptyDirs.
	Mkdir(ctx context.Context, l Locator, opts MkdirOptions) (Info, error)

	// Close frees the provider's resources. Calls under way may fail. A second Close does
	// nothing.
	Close() error
}

// ListOptions asks for a page. The zero value asks for the first page of the
// children, in the provider's own page size.
type ListOptions struct {
	Recursive bool
	Limit     int    // at most so many entries; 0: the provider's choice
	Token     string // Page.Next of the page before; "": the first
	// After is a directory below the listed one: a Recursive listing begins after it in the
	// provider's order, so with that directory's entries, and continues to the end; if nothing
	// is left the page is empty. With a Token it is ignored. The root: from the beginning.
	After Locator
	// Ahead, if it is set, is called with Page.Next before List returns, at most once, by a
	// provider that knows it before it knows all of the page: so the next page can be requested
	// meanwhile. It must not wait. Its argument is void when List fails.
	Ahead func(next string)
}

// Page is a part of a listing. A page may be empty and still have a next one.
type Page struct {
	Entries []Info // in the provider's order; see Capabilities.ListComplete
	Next    string // "" after the last page
}

// ReadOptions asks for a range. The zero value asks for all of the present version.
type ReadOptions struct {
	Offset  int64
	Length  int64   // 0: to the end
	Version Version // zero: any
	// Past looks for Version also among the past versions that the store keeps, as a bucket
	// with versioning does. If there is no such version either, or the store keeps none, the
	// error is ErrNotExist or ErrConflict as without Past; ErrPermission or ErrUnsupported if
	// the store does not allow the search.
	Past bool
}

// Content is an open body. The caller closes Body.
type Content struct {
	Info Info // of the whole entry, in the version that Body belongs to
	Body io.ReadCloser
}

// Body is content on its way to a provider. The zero Body is empty.
type Body struct {
	Reader io.Reader
	Size   int64 // bytes that Reader gives, or SizeUnknown
}

// SizeUnknown is the Size of a Body that ends when its Reader ends. Some
// providers then buffer it.
const SizeUnknown = -1

// Bytes is a Body of b, which must not change during the call.
func Bytes(b []byte) Body { return Body{bytes.NewReader(b), int64(len(b))} }

// String is a Body of s.
func String(s string) Body { return Body{strings.NewReader(s), int64(len(s))} }

// WriteOptions describe a Write. If is required.
type WriteOptions struct {
	If       Condition
	Kind     Kind // KindFile, the zero value too, or KindSymlink (ErrUnsupported without Capabilities.Symlinks)
	Attr     Attr // stored as far as Capabilities.Attributes has them
	Metadata map[string]string
	Op       string // operation id, the same in each attempt and never used again; "": none
	// Looked: the caller knows from a listing that there is no directory. Where the service
	// would let the entry hide one, it need not be asked again.
	Looked bool
}

// DeleteOptions: If is required. There is no operation id: a deleted entry cannot carry one.
// When a repetition finds no entry, or another version than that of IfVersion, its error means
// that the work is done.
type DeleteOptions struct {
	If Condition
}

// MkdirOptions are for the directory that is made, not for parents.
type MkdirOptions struct {
	Attr     Attr
	Metadata map[string]string
}
