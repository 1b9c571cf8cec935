package hostfile

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Stamp changes with the contents of a file, its owner and its mode: ctime cannot be set.
type Stamp struct {
	Dev, Ino           uint64
	Size, MTime, CTime int64 // times in ns
}

// StampOf is that of a file as it was when it was looked at.
func StampOf(st *unix.Stat_t) Stamp {
	return Stamp{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// tooFresh is more than a tick of the clock that the kernel has ctimes from.
const tooFresh = 2 * time.Second

// Settled says whether a file that had the stamp when it was read, at a time, has another
// one after every later change: one that changed shortly before may change again without
// another ctime.
func (s Stamp) Settled(read time.Time) bool { return s.CTime < read.Add(-tooFresh).UnixNano() }

// IsOf says whether the file at a path, links followed, still has it.
func (s Stamp) IsOf(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && StampOf(&st) == s
}
