package content

import (
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// BallastName is the ballast of a store that shares none with others.
const BallastName = "ballast"

// ballast is a file that holds space which is given up on a full disk. It is locked from
// the lock of its room until unlock.
type ballast struct {
	mu   sync.Mutex
	path string
	size int64 // 0: no ballast is wanted
	have bool  // it exists, as far as is known
	log  *slog.Logger

	unusable int64     // bytes above the floor that were free when the disk said that it is full
	until    time.Time // when that is checked again
}

// unusableFor is how long bytes stay out of account that the disk calls free and does not
// give, as under a quota that statfs does not show.
const unusableFor = time.Minute

func (b *ballast) unlock() { b.mu.Unlock() }

// look checks whether the ballast exists: another store may have given it up, or made it.
func (b *ballast) look() {
	var st unix.Stat_t
	b.have = b.size > 0 && unix.Lstat(b.path, &st) == nil && st.Size == b.size && st.Blocks*512 >= b.size
}

// owed is the space that the ballast held when it was given up: not for content.
func (b *ballast) owed() int64 {
	if b.have {
		return 0
	}
	return b.size
}

// spare is the free space above the floor with which the ballast is made: twice its size, so that
// as much as it takes is left, or it would soon go again. 0 when there is a ballast.
func (b *ballast) spare() int64 { return 2 * b.owed() }

// relieve gives the ballast up, and reports whether there was one.
func (b *ballast) relieve() bool {
	if !b.have {
		return false
	}
	if err := unix.Unlink(b.path); err != nil && err != unix.ENOENT {
		b.log.Error("content: the disk is full, and the ballast cannot be removed", "error", err)
		return false
	}
	b.have = false
	b.log.Warn("content: the disk is full; gave up the ballast", "bytes", b.size)
	return true
}

// distrust notes how many bytes above the floor are free on a disk that is full: with no
// more than these the ballast would take back the space that it was given up for.
func (b *ballast) distrust(above int64, now time.Time) {
	b.unusable, b.until = max(above, 0), now.Add(unusableFor)
}

// rebuild makes the ballast when there is room for it among so many bytes above the floor,
// and reports whether it did.
func (b *ballast) rebuild(above int64, now time.Time) bool {
	if now.Before(b.until) {
		above -= b.unusable
	}
	if b.have || b.size == 0 || above < b.spare() {
		return false
	}
	fd, err := unix.Open(b.path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		err = retry(func() error { return unix.Fallocate(fd, 0, 0, b.size) })
		unix.Close(fd)
	}
	if err != nil {
		_ = unix.Unlink(b.path)
		b.log.Warn("content: no ballast", "error", err)
		return false
	}
	b.have = true
	return true
}
