package cache

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// kept is what a set is to have of content that programs change, or remove, after
// the moment that the set is made of and before the set has read it. Else a set
// would be of many moments: it could have the second of two files that were written
// one after the other and not the first, or one that is half written; and as long
// as programs go on writing, it would be made anew again and again.
//
// Nobody waits for that. Who is about to change content, first has a snapshot taken of
// it, which costs as little as the opening of a file; what loses its last name stays
// without one. At the end of the set all of it goes. The volume's lock guards it.
type kept struct {
	parcels map[table.Ino]*upload.Payload // the states of the moment of what has changed since
	read    map[table.Ino]struct{}        // what the set holds a snapshot of
	nowhere map[table.Ino]struct{}        // what has no name any more
	most    int                           // payloads
}

// mostKept is how many states are kept at a time: each of them is an open file, of
// which programs want some, too. When more than these are changed while a set is made
// and sent, it is made anew.
func mostKept() int {
	const most, share = 4096, 8
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(l.Cur/share, most))
}

// beginKeeping keeps content for a set of this moment, and returns what is an exception:
// programs are writing it and it goes all the same. From here on the next change of each
// content comes by keepState.
func (v *View) beginKeeping() (loose map[table.Ino]struct{}) {
	v.kept = &kept{map[table.Ino]*upload.Payload{}, map[table.Ino]struct{}{}, map[table.Ino]struct{}{}, mostKept()}
	return v.open.EndIntents(v.View)
}

// endKeeping lets go of all that was kept, if anything was.
func (v *Volume) endKeeping() {
	locked := v.lock()
	k := locked.kept
	locked.kept = nil
	locked.unlock()
	if k == nil {
		return
	}
	for _, p := range k.parcels {
		p.Kept = false
		p.Close()
	}
	for piece := range slices.Chunk(slices.Collect(maps.Keys(k.nowhere)), setPiece) {
		v.abandon(piece...)
	}
}

// keepNameless reports whether an inode that has lost its last name stays for a set: its
// content, and the place of what is in a directory.
func (v *View) keepNameless(ino table.Ino, n *table.Inode) bool {
	if v.kept == nil {
		return false
	}
	if _, known := v.kept.nowhere[ino]; known {
		return true
	}
	if !v.pending.IsUnsaved(ino) && !n.IsDir() && !n.IsSymlink() {
		return false
	}
	v.kept.nowhere[ino] = struct{}{}
	return true
}

// keepState has the state of content that is about to change kept for the set that is
// under way, if any, and returns what it was kept in.
func (v *Volume) keepState(oi files.LockedInode) *kept {
	locked := v.lock()
	k, n := locked.kept, locked.table.Inode(oi.Ino)
	if k == nil || n == nil || oi.Content() == nil || !k.wants(oi.Ino) || !v.pending.IsUnsaved(oi.Ino) {
		locked.unlock()
		return k
	}
	oi.Retain(locked.View)
	p := upload.NewPayload(oi.OpenInode, n.ContentVersion, v.opener.Release)
	p.Kept = true
	locked.unlock()
	err := upload.ErrAgain
	if oi.Content().Whole() { // else a program would wait for the backend
		err = p.Take(context.Background())
	}
	locked = v.lock()
	has := err == nil && locked.kept == k
	if has {
		k.parcels[oi.Ino] = p
	}
	locked.unlock()
	if !has {
		p.Kept = false
		p.Close()
	}
	return k
}

// wants reports whether the state of an inode is to be kept before it changes.
func (k *kept) wants(ino table.Ino) bool {
	_, read := k.read[ino]
	return !read && k.parcels[ino] == nil && len(k.parcels) < k.most
}

// pack has p.payload be the content that a name had at the moment of the set. upload.ErrAgain
// says that nobody has that any more.
func (s *set) pack(ctx context.Context, p *body) (err error) {
	if p.parcel, err = s.atMoment(p, false); p.parcel != nil || err != nil {
		return err
	}
	now, err := s.c.v.engine.exec.Pack(ctx, p.Ino)
	switch {
	case errors.Is(err, upload.ErrMoot):
		return upload.ErrAgain
	case err != nil:
		return err
	}
	if p.parcel, err = s.atMoment(p, true); p.parcel != nil || err != nil { // it was changed just now
		now.Close()
		return err
	}
	p.parcel = now
	return nil
}

// atMoment is the state that was kept for a name of the set; nil: it has not changed
// since the moment of the set. From there on no state of it is kept when it is taken.
func (s *set) atMoment(p *body, taken bool) (*upload.Payload, error) {
	v := s.c.v
	locked := v.lock()
	defer locked.unlock()
	if locked.kept == nil || p.Kind != providers.KindFile || p.Loose {
		return nil, nil
	}
	if was := locked.kept.parcels[p.Ino]; was != nil {
		return was, nil
	}
	n, oi := locked.table.Inode(p.Ino), locked.open.Of(locked.View, p.Ino)
	if n == nil || n.ContentVersion != p.Gen || n.Writing && !p.Writing || oi != nil && oi.IsTouched() {
		return nil, upload.ErrAgain
	}
	if taken && len(n.Links) < 2 { // else it may be read once more
		locked.kept.read[p.Ino] = struct{}{}
	}
	return nil, nil
}
