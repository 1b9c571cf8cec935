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

// StampOf is the Stamp of a file when st was taken.
func StampOf(st *unix.Stat_t) Stamp {
	return Stamp{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// tooFresh is longer than a tick of the clock from which the kernel takes ctimes.
const tooFresh = 2 * time.Second

// Settled says whether every later change gives another stamp to a file that had this one
// when it was read, at a time: a file that changed shortly before may change again without
// another ctime.
func (s Stamp) Settled(read time.Time) bool { return s.CTime < read.Add(-tooFresh).UnixNano() }

// IsOf says whether the file at a path, links followed, still has the stamp.
func (s Stamp) IsOf(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && StampOf(&st) == s
}
