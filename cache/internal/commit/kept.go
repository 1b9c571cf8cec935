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

// KeptOptions are what a Kept needs of those who use it.
type KeptOptions struct {
	Tree *tree.Tree
	Open *files.OpenSet
	// IsUnsaved reports whether the remote does not have the content of an inode yet.
	IsUnsaved func(v *tree.View, ino table.Ino) bool
	Release   func(*files.OpenInode)
	// Abandon forgets inodes without a name, if nothing holds them any more.
	Abandon func(...table.Ino)
}

// Kept is what a set is to have of content that programs change, or remove, after the moment
// that the set is made of and before the set has read it. Else a set would be of many
// moments: it could have the second of two files that were written one after the other and
// not the first, or one that is half written; and as long as programs go on writing, it
// would be made anew again and again.
//
// No one waits for that. Who is about to change content, first has a snapshot taken of it,
// which costs as little as the opening of a file; what loses its last name stays without one.
// At the end of the set all of it goes. The lock of the tree guards it.
type Kept struct {
	o   KeptOptions
	now *moment // nil: there is no set under way
}

// moment is the one of a set that is under way.
type moment struct {
	payloads map[table.Ino]*upload.Payload // the states of that moment of what has changed since
	read     map[table.Ino]struct{}        // what the set holds a snapshot of
	nameless map[table.Ino]struct{}        // what has no name any more
	most     int                           // payloads
}

// NewKept is nothing.
func NewKept(o KeptOptions) *Kept { return &Kept{o: o} }

// mostKept is how many states are kept at a time: each of them is an open file, of which
// programs want some, too. When more than these are changed while a set is made and sent, it
// is made anew.
func mostKept() int {
	const most, share = 4096, 8
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(l.Cur/share, most))
}

// Begin keeps content for a set of this moment, and returns what is an exception: programs
// are writing it and it goes all the same. From here on the next change of each content comes
// by KeepState.
func (k *Kept) Begin(v *tree.View) (loose map[table.Ino]struct{}) {
	k.now = &moment{map[table.Ino]*upload.Payload{}, map[table.Ino]struct{}{}, map[table.Ino]struct{}{}, mostKept()}
	return k.o.Open.EndIntents(v)
}

// End lets go of all that was kept, if anything was. It is called without the lock.
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

// Nameless reports whether an inode that has lost its last name stays for a set: its content,
// and the place of what is in a directory.
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

// KeepState has the state of content that is about to change kept for the set that is under
// way, if any. isCurrent reports whether it is that set still, or none: else the state is to
// be kept for another before the content changes. KeepState is called without the lock.
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

// Pack is the content that a name of a set had at the moment of that; now takes the present
// state of an inode. ErrAgain says that no one has the state of the moment any more. It is
// called without the lock.
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

// atMoment is the state that was kept for a name of the set; nil: it has not changed since
// the moment of the set. From there on no state of it is kept when it is taken.
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
