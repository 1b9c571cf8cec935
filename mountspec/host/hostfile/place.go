package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenBeneath opens rel below the directory root. The kernel refuses a path
// that leaves root, by ".." or by a symbolic link.
func OpenBeneath(root, rel string) (*os.File, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(dir, rel, how)
	for try := 0; try < 100 && (err == unix.EINTR || err == unix.EAGAIN); try++ { // a rename ran beside the lookup
		fd, err = unix.Openat2(dir, rel, how)
	}
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), filepath.Join(root, rel)), nil
	case unix.EXDEV:
		return nil, ErrEscapes
	}
	return nil, &fs.PathError{Op: "open", Path: filepath.Join(root, rel), Err: err}
}

// ErrEscapes matches the refusal of a path that leaves its directory.
var ErrEscapes = errors.New("leads out of its directory")

// CheckPrivate refuses a path that is not a directory of this user that only the user can open.
func CheckPrivate(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return &Error{Path: dir, Reason: "is not a directory of this user that only the user can open", Hint: "remove it, or set TMPDIR to a directory of your own"}
	}
	return nil
}
