package past

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Item is an entry that a restore brings back, or removes.
type Item struct {
	Path   string
	Of     string    // of a version: the path of its file
	Was    string    // of an entry to remove: its path then, "" if none
	Ino    table.Ino // that it was
	Mode   uint32
	Target string         // of a symbolic link, if it is known: see Past.Target
	Attr   providers.Attr // of a commit
	src    source
	id     uint64 // the record
}

// kind is the type in the mode.
func (it *Item) kind() uint32 { return it.Mode & syscall.S_IFMT }

// Open opens the content that an item had.
func (h *Past) Open(it Item) (r io.ReadCloser, size int64, err error) { return h.open(it.src) }

// IsGone reports whether content that an item had is known not to be kept.
func (it *Item) IsGone() bool { return it.kind() == syscall.S_IFREG && it.src.kind == contentGone }

// Check fails where the remote does not keep content that it may keep. Only the remote knows.
func (h *Past) Check(it Item) error {
	if it.src.kind != contentPast || it.src.revision != "" {
		return nil
	}
	r, _, err := h.open(it.src)
	if err == nil {
		err = r.Close()
	}
	return err
}

// Target is the target of an item that is a link; the remote is asked if its target was never
// read.
func (h *Past) Target(ctx context.Context, it Item) (string, error) {
	if it.kind() != syscall.S_IFLNK || it.Target != "" {
		return it.Target, nil
	}
	return h.o.Volume.Readlink(ctx, it.Ino)
}

// IsNowSo reports whether a path is as an item says.
func (h *Past) IsNowSo(ctx context.Context, it Item) (bool, error) {
	_, ino, err := h.o.Volume.Find(ctx, it.Path)
	if err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return false, err
	}
	v := h.o.Tree.Lock()
	n := v.Inode(ino)
	if it.src.kind == contentPast && err == nil && n != nil && n.IsRegular() {
		now := *n
		h.o.Tree.Unlock()
		return h.hasPast(ctx, it, ino, now)
	}
	defer h.o.Tree.Unlock()
	if err != nil || n == nil || n.Mode&syscall.S_IFMT != it.kind() {
		return false, nil
	}
	switch it.kind() {
	case syscall.S_IFDIR:
		return true, nil
	case syscall.S_IFLNK:
		return n.Target == it.Target, nil
	case syscall.S_IFREG:
		return (it.src.kind == contentHere || it.src.kind == contentAway) && it.src.ino == ino && it.src.gen == n.ContentVersion ||
			it.src.kind == contentEmpty && n.Size == 0, nil
	}
	return false, nil
}

// hasPast reports whether a file has the content and the mode bits of a revision's file.
func (h *Past) hasPast(ctx context.Context, it Item, ino table.Ino, n table.Inode) (bool, error) {
	if it.src.size != n.Size || attrs.TakeMode(n.Mode, it.Attr) != n.Mode {
		return false, nil
	}
	theirs, _, err := h.open(it.src)
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	ours, _, err := h.o.Volume.Open(ctx, ino) // last: it may have to be fetched
	if err != nil {
		return false, err
	}
	defer ours.Close()
	return content.Equal(ours, theirs)
}

// isSame reports whether two items are known to have the same content.
func (it *Item) isSame(other *Item) bool {
	return it.kind() == other.kind() && it.src == other.src && it.Target == other.Target && it.src.kind != contentGone
}
