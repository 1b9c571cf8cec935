package hostfile

import "golang.org/x/sys/unix"

// A Stamp changes with the contents of a file, its owner and its mode: ctime cannot be set.
type Stamp struct {
	Dev, Ino           uint64
	Size, MTime, CTime int64 // times in ns
}

// StampOf is that of a file as it was when it was looked at.
func StampOf(st *unix.Stat_t) Stamp {
	return Stamp{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// IsOf says whether the file at a path, links followed, still has it.
func (s Stamp) IsOf(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && StampOf(&st) == s
}
