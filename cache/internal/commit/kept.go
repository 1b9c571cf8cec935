package commit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// KeptOptions are the dependencies of a Kept.
type KeptOptions struct {
	Tree *tree.Tree
	Open *files.OpenSet
	// IsUnsaved reports whether the remote does not have the content of an inode yet.
	IsUnsaved func(v *tree.View, ino table.Ino) bool
	Release   func(*files.OpenInode)
	// Abandon forgets inodes without a name, if nothing holds them any more.
	Abandon func(...table.Ino)
}

// Kept is the content of a set that programs change, or remove, after the moment that the set is
// made of and before the set has read it. Without it a set would mix several moments: it could
// have the second of two files that were written one after the other and not the first, or one
// that is half written; and as long as programs go on writing, it would be made anew again and
// again.
//
// No caller waits for that. Before a program changes content, a snapshot is taken of it, which
// costs as little as opening a file; content that loses its last name stays without one. At the
// end of the set all of it goes. The lock of the tree guards it.
type Kept struct {
	o   KeptOptions
	now *moment // nil: there is no set under way
}

// moment is the one of a set that is under way.
type moment struct {
	payloads map[table.Ino]*upload.Payload // at that moment, of content that changed since
	read     map[table.Ino]struct{}        // content of which the set holds a snapshot
	nameless map[table.Ino]struct{}        // inodes that have lost their last name
	most     int                           // payloads
}

// NewKept makes a Kept without content.
func NewKept(o KeptOptions) *Kept { return &Kept{o: o} }

// mostKept is how many states are kept at a time: each of them is an open file, and programs need
// open files too. When more content than that changes while a set is made and sent, the set is
// made anew.
func mostKept() int {
	const most, share = 4096, 8
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(l.Cur/share, most))
}

// Begin keeps content for a set of this moment, and returns the exceptions: content that programs
// are writing and that goes all the same. From then on KeepState is called before the next change
// of each content.
func (k *Kept) Begin(v *tree.View) (loose map[table.Ino]struct{}) {
	k.now = &moment{map[table.Ino]*upload.Payload{}, map[table.Ino]struct{}{}, map[table.Ino]struct{}{}, mostKept()}
	return k.o.Open.EndIntents(v)
}

// End lets go of all kept content. It is called without the lock.
func (k *Kept) End() {
	k.o.Tree.Lock()
	was := k.now
	k.now = nil
	k.o.Tree.Unlock()
	if was == nil {
		return
	}
	for _, p := range was.payloads {
		p.Kept = false
		p.Close()
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(was.nameless)), PieceSize) {
		k.o.Abandon(some...)
	}
}

// Nameless reports whether an inode that has lost its last name stays for a set: its content, and
// a directory as the place of its entries.
func (k *Kept) Nameless(v *tree.View, ino table.Ino, n *table.Inode) bool {
	if k.now == nil {
		return false
	}
	if _, known := k.now.nameless[ino]; known {
		return true
	}
	if !k.o.IsUnsaved(v, ino) && !n.IsDir() && !n.IsSymlink() {
		return false
	}
	k.now.nameless[ino] = struct{}{}
	return true
}

// KeepState keeps the state of content that is about to change for the set that is under way, if
// any. isCurrent reports whether that set is still under way, or none: else the state has to be
// kept for another before the content changes. KeepState is called without the lock.
func (k *Kept) KeepState(oi files.LockedInode) (isCurrent func(*tree.View) bool) {
	v := k.o.Tree.Lock()
	now, n := k.now, v.Inode(oi.Ino)
	isCurrent = func(*tree.View) bool { return k.now == now || k.now == nil }
	if now == nil || n == nil || oi.Content() == nil || !now.wants(oi.Ino) || !k.o.IsUnsaved(v, oi.Ino) {
		k.o.Tree.Unlock()
		return isCurrent
	}
	oi.Retain(v)
	p := upload.NewPayload(oi.OpenInode, n.ContentVersion, k.o.Release)
	p.Kept = true
	k.o.Tree.Unlock()
	err := upload.ErrAgain
	if oi.Content().Whole() { // else a program would wait for the remote
		err = p.Take(context.Background())
	}
	k.o.Tree.Lock()
	has := err == nil && k.now == now
	if has {
		now.payloads[oi.Ino] = p
	}
	k.o.Tree.Unlock()
	if !has {
		p.Kept = false
		p.Close()
	}
	return isCurrent
}

// wants reports whether the state of an inode is to be kept before it changes.
func (m *moment) wants(ino table.Ino) bool {
	_, read := m.read[ino]
	return !read && m.payloads[ino] == nil && len(m.payloads) < m.most
}

// Pack is the content that a name of a set had at the moment of the set; now takes the present
// state of an inode. ErrAgain says that the state of the moment is gone. Pack is called without
// the lock.
func (k *Kept) Pack(ctx context.Context, p *Planned, now func(context.Context, table.Ino) (*upload.Payload, error)) (*upload.Payload, error) {
	was, err := k.atMoment(p, false)
	if was != nil || err != nil {
		return was, err
	}
	is, err := now(ctx, p.Ino)
	switch {
	case errors.Is(err, upload.ErrMoot):
		return nil, upload.ErrAgain
	case err != nil:
		return nil, err
	}
	if was, err = k.atMoment(p, true); was != nil || err != nil { // it was changed just now
		is.Close()
		return was, err
	}
	return is, nil
}

// atMoment is the state that was kept for a name of the set; nil: it has not changed since the
// moment of the set. With taken, later changes of it are not kept any more.
func (k *Kept) atMoment(p *Planned, taken bool) (*upload.Payload, error) {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	if k.now == nil || p.Kind != providers.KindFile || p.Loose {
		return nil, nil
	}
	if was := k.now.payloads[p.Ino]; was != nil {
		return was, nil
	}
	n, oi := v.Inode(p.Ino), k.o.Open.Of(v, p.Ino)
	if n == nil || n.ContentVersion != p.Gen || n.Writing && !p.Writing || oi != nil && oi.IsTouched() {
		return nil, upload.ErrAgain
	}
	if taken && len(n.Links) < 2 { // else it may be read once more
		k.now.read[p.Ino] = struct{}{}
	}
	return nil, nil
}
