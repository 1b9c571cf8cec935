package providers

import (
	"bytes"
	"context"
	"io"
	"strings"
)

// Provider is a place where the bytes of a workspace live.
//
// All methods may be called at the same time from any goroutine. When ctx
// ends, a call returns soon with an error that is ctx.Err(); whether a change
// happened is then open. Arguments belong to the caller again when the call
// returns; results belong to the caller, except that maps in them must not be
// changed. After Close every call fails with ErrClosed.
//
// Errors are *Error of one of the kinds in this package, or the context's.
// Beside those that a method names, each may fail with ErrUnavailable,
// ErrUnauthenticated or ErrPermission, and a change with ErrReadOnly or
// ErrQuota.
type Provider interface {
	// Capabilities says what this provider promises. It is constant for the
	// life of the provider, and does no I/O.
	Capabilities() Capabilities

	// Stat describes the entry at l. The root always exists. ErrNotExist when
	// nothing is there, also when a parent is missing or no directory.
	Stat(ctx context.Context, l Locator) (Info, error)

	// List gives one page of the immediate children of the directory l, or
	// with Recursive of all entries below it. An entry that exists throughout
	// a listing is in exactly one of its pages. ErrNotExist when nothing is
	// there; ErrNotDir for a file, or ErrNotExist where the provider would
	// need another request to know; ErrInvalid for a token that it did not
	// give, and for an After that is not below l; ErrUnsupported for Recursive
	// without Capabilities.RecursiveList, or where the store turns out to list in no
	// order in which that could go on, and After without Capabilities.ListAfter.
	List(ctx context.Context, l Locator, opts ListOptions) (Page, error)

	// Read opens the content of the file or symbolic link at l. ctx also ends
	// the reading of the body. ErrNotExist, ErrIsDir; ErrConflict when
	// opts.Version is given and is not there; ErrInvalid for a negative range.
	// A range beyond the end is an empty body.
	Read(ctx context.Context, l Locator, opts ReadOptions) (Content, error)

	// Write puts body at l in one step, makes missing parents, and returns
	// what is there then. ErrExist and ErrConflict as opts.If says; ErrIsDir
	// over a directory, and ErrNotDir below a file, if Capabilities.StrictTree:
	// elsewhere both may be there then, and a listing shows the directory
	// under another name;
	// ErrTooLarge; ErrInvalid without a condition, at the root, or when body
	// is shorter or longer than it said; ErrBody, with the error of body's
	// Reader, when that fails. In all these cases nothing changed.
	Write(ctx context.Context, l Locator, body Body, opts WriteOptions) (Info, error)

	// Delete removes a file or symbolic link, or on IfDir an empty directory.
	// ErrNotExist, ErrConflict, ErrNotDir as opts.If says; Unconditional
	// succeeds when nothing is there. ErrIsDir for a directory without IfDir;
	// ErrNotEmpty; ErrInvalid without a condition, with IfAbsent, or at the
	// root.
	Delete(ctx context.Context, l Locator, opts DeleteOptions) error

	// Mkdir makes a directory and its missing parents. A directory that is
	// there stays as it is, and that is no error. ErrExist when something else
	// is there; ErrNotDir below a file if Capabilities.StrictTree;
	// ErrUnsupported without Capabilities.EmptyDirs.
	Mkdir(ctx context.Context, l Locator, opts MkdirOptions) (Info, error)

	// Close lets go of what the provider holds. Calls under way may fail. A
	// second Close does nothing.
	Close() error
}

// ListOptions asks for a page. The zero value asks for the first page of the
// children, in the provider's own page size.
type ListOptions struct {
	Recursive bool
	Limit     int    // at most so many entries; 0: as the provider likes
	Token     string // Page.Next of the page before; "": the first
	// After is a directory below the listed one: a Recursive listing begins after
	// it in the provider's order, so with what is in it, and goes on to the end;
	// if nothing is left the page is empty. With a Token it is ignored. The root: at
	// the beginning.
	After Locator
	// Ahead, if it is set, is called with Page.Next before List returns, at most once,
	// by a provider that knows it before it knows all of the page: so the next page can
	// be asked for meanwhile. It must not wait. What it was told counts for nothing when
	// List fails.
	Ahead func(next string)
}

// Page is a part of a listing. A page may be empty and still have a next one.
type Page struct {
	Entries []Info // in the provider's order; see Capabilities.ListComplete
	Next    string // "" after the last page
}

// ReadOptions asks for a range. The zero value asks for all of whatever
// version is there.
type ReadOptions struct {
	Offset  int64
	Length  int64   // 0: to the end
	Version Version // zero: any
	// Past looks for Version also in what the store keeps of the entry's past, as a
	// bucket with versioning does. Where there is no such version either, or the store
	// keeps none, it is ErrNotExist or ErrConflict as without Past; ErrPermission or
	// ErrUnsupported, when the store does not let that be known.
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

// WriteOptions says what is written. If is required.
type WriteOptions struct {
	If       Condition
	Kind     Kind // KindFile, the zero value too, or KindSymlink (ErrUnsupported without Capabilities.Symlinks)
	Attr     Attr // stored as far as Capabilities.Attributes has them
	Metadata map[string]string
	Op       string // operation id, the same in each attempt and never used again; "": none
	// Looked: the caller knows from a listing that no directory is there. Where
	// the service would let the entry hide one, it need not be asked again.
	Looked bool
}

// DeleteOptions: If is required. There is no operation id: what is gone cannot
// carry one. A repetition that finds nothing, or another version than IfVersion
// asked for, says with its error that the work is done.
type DeleteOptions struct {
	If Condition
}

// MkdirOptions are for the directory that is made, not for parents.
type MkdirOptions struct {
	Attr     Attr
	Metadata map[string]string
}
