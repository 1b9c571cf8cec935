package providers

import (
	"context"
)

// Copier copies inside the backend, without moving bytes through this machine.
type Copier interface {
	// Copy makes to an entry with the content of the file or symbolic link from, and returns
	// it. ErrNotExist, or ErrConflict when opts.Version is given and is not the version of
	// from; ErrExist, ErrConflict and ErrIsDir for to as in Write.
	Copy(ctx context.Context, from, to Locator, opts CopyOptions) (Info, error)
}

// CopyOptions: If, on the target, is required.
type CopyOptions struct {
	If       Condition
	Version  Version // of the source; zero: any
	Attr     Attr    // replace the source's where Valid
	Metadata map[string]string
	Op       string
	Looked   bool // as in WriteOptions
}

// Mover renames in one step: at no time do both names, or neither, exist.
type Mover interface {
	// Move gives the entry from, a directory with all below it too, the name to, whose parent
	// must exist. Below a directory, versions stay. opts.Source is IfVersion, IfDir or
	// Unconditional; the last moves files and links only. opts.Target is IfAbsent, or for files
	// IfVersion or Unconditional. Errors are those of Delete for from and of Write for to;
	// ErrExist for a directory over anything, ErrInvalid below itself. With
	// Capabilities.OperationIDs, a Move whose Op made the entry at to succeeds again, whatever
	// is at from by now.
	Move(ctx context.Context, from, to Locator, opts MoveOptions) (Info, error)
}

// MoveOptions: both conditions are required.
type MoveOptions struct {
	Source Condition
	Target Condition
	Op     string // operation id, as in WriteOptions
}

// AttrSetter changes attributes and leaves the content alone.
type AttrSetter interface {
	// SetAttr stores the attributes that are Valid, and replaces the metadata unless they are
	// nil. With UniqueVersions the version changes, in its ETag or not. opts.If is IfVersion,
	// IfDir, or Unconditional for any entry. ErrNotExist, ErrConflict, ErrNotDir;
	// ErrUnsupported for attributes that are not in Capabilities.
	SetAttr(ctx context.Context, l Locator, opts SetAttrOptions) (Info, error)
	// Fits checks, without asking the service, that an entry can have such attributes and
	// metadata, for any value of the numbers in them; else ErrTooLarge. So a program gets the
	// error before anything is stored.
	Fits(attr Attr, metadata map[string]string) error
}

// SetAttrOptions: If is required.
type SetAttrOptions struct {
	If       Condition
	Attr     Attr
	Metadata map[string]string
	Op       string // operation id, as in WriteOptions
}
