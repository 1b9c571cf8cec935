package content

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// errFloor is the error of room.take: the disk has less than the floor left, and no clean
// content can be evicted. Another try does not help.
var errFloor = fmt.Errorf("content: no room above the floor that stays free: %w", unix.ENOSPC)

// fullTries bounds how often a write to a full disk is tried: each try but the first comes
// after an eviction, whose room others may have taken since.
const fullTries = 8

// whileFull runs do, which writes n bytes of content, or with 0 only names and maps. When
// the disk turns out to be full, despite its last figures, clean content is evicted
// and do runs again. It may be called under no lock that do, or an evictor, takes; do must
// be able to go on after it has failed.
func (r *room) whileFull(n int64, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !IsFull(err) || errors.Is(err, errFloor) || try == fullTries || !r.makeRoom(n) {
			return err
		}
	}
}

// IsFull reports whether an error says that a disk, or a quota, is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// makeRoom evicts clean content after the disk said that it is full, and reports whether
// another try may help. Names and maps may use the ballast's space, content may not: it is
// for the table, without whose record nothing is evicted, and for removals.
func (r *room) makeRoom(n int64) bool {
	if n == 0 {
		return r.makeAnyRoom(0)
	}
	if r.makeAbove(n, r.lacking(n)) {
		return true
	}
	r.relieve()
	return false
}

// MakeRoom evicts clean content for n bytes, or else gives the ballast up, for callers
// that found the disk full. It reports whether another try may help.
func (s *Store) MakeRoom(n int64) bool { return s.room.makeAnyRoom(n) }

// makeAnyRoom is makeRoom for writes that may use the ballast's space.
func (r *room) makeAnyRoom(n int64) bool {
	before := r.available()
	return r.evictor.run(r.lacking(n)) || r.available() > before || r.relieve()
}

// lacking is how many bytes are wanted of the evictor for n, after the disk said that it is
// full: its last figures were wrong, and it may have bytes, but no inodes or not for us.
func (r *room) lacking(n int64) int64 {
	r.forget()
	return max(n, n+1-r.short(n))
}
