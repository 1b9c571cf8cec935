package past

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

var (
	// ErrNoVersion says that the history has no such version, or not any more.
	ErrNoVersion = errors.New("no such version in the history")

	// ErrNotThere says that a path is free.
	ErrNotThere = fmt.Errorf("nothing is there: %w", iofs.ErrNotExist)
)

// Volume is a working copy, which may have to ask the remote.
type Volume interface {
	// Find walks to a local path. An inode of 0 says that the name is free; the directory of the
	// link is 0 when not even that exists.
	Find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error)
	// Load loads the names in a directory.
	Load(ctx context.Context, dir table.Ino) error
	// Open opens all present content of an inode.
	Open(ctx context.Context, ino table.Ino) (r io.ReadCloser, size int64, err error)
	// Readlink is the target of a symbolic link, or history.ErrNotKept for one that is gone.
	Readlink(ctx context.Context, ino table.Ino) (string, error)
	// Differing are the paths at which something may differ from a revision.
	Differing(ctx context.Context, r providers.Revision) ([]string, error)
	// StaysLocal reports whether the inode of a name never goes to the remote.
	StaysLocal(v *tree.View, l table.Link, n *table.Inode) bool
}

// Options are the dependencies of a Past.
type Options struct {
	Tree    *tree.Tree
	Store   *content.Store
	Keeper  *history.Keeper
	Remote  providers.Provider
	Volume  Volume
	Context context.Context // ends with the working copy
}

// Past describes the earlier states of a working copy.
type Past struct{ o Options }

// New makes the past of a working copy.
func New(o Options) *Past { return &Past{o} }

// IsNow reports whether a path exists now, and is a directory.
func (h *Past) IsNow(ctx context.Context, path string) (found, dir bool) {
	_, ino, err := h.o.Volume.Find(ctx, path)
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	n := v.Inode(ino)
	found = err == nil && n != nil
	return found, found && n.IsDir()
}

// Split is the directory of a path, and its last name.
func Split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
