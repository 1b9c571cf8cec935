package localdir

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Replace gives the file from, which only the caller uses, the name to, and removes the
// previous entry of that name. compare returns why the entry of a name in an open directory
// must stay; nil: it may be replaced. The error is compare's, or the kernel's, ENOENT if there
// is no previous entry; then the caller removes from, unless it is a *LeftError.
//
// The two are exchanged (RENAME_EXCHANGE), and the entry that came out is compared: the last
// one that had the name, whichever program made it. An entry that must stay is exchanged back,
// until the one that comes out is the one put there the time before, so that no newer entry is
// replaced. Until then the name shows from, which a program may change, or replace by a file
// made from it: then from, or the previous entry, has no other name, and stays under the one
// that it has got; the error is a *LeftError. An entry that was removed or moved meanwhile is
// back: which of the two happened, the name does not tell. Where the file system cannot
// exchange, an entry that gets the name between the comparison and the rename is replaced.
//
// open: the caller has from open. Else from is not given up while a program has it open, which
// opened it by the name to and may still write to it.
func Replace(fromDir int, from string, toDir int, to string, open bool, compare func(dir int, name string) error) error {
	s := swap{fromDir, from, toDir, to}
	ours, err := s.hold()
	if err != nil {
		return err
	}
	defer ours.close()
	if err = s.rename(unix.RENAME_EXCHANGE); err == unix.EINVAL {
		if err = compare(toDir, to); err == nil {
			err = s.rename(0)
		}
		return err
	}
	if err != nil {
		return err
	}
	refused := compare(fromDir, from)
	if refused == nil {
		return Happened(unix.Unlinkat(fromDir, from, 0))
	}
	if err := s.back(ours); err != nil {
		return &LeftError{to, from, err}
	}
	if !s.only(ours, open) {
		return &LeftError{to, from, refused}
	}
	return refused
}

// LeftError is the error that a program's file could not get its name back, with the name that
// it has now. It is providers.ErrUnavailable.
type LeftError struct {
	Name, Left string
	err        error
}

// Error has both names.
func (e *LeftError) Error() string {
	return fmt.Sprintf("a program has changed %s meanwhile, and what it put there is left in %s beside it: %v", e.Name, e.Left, e.err)
}

// Unwrap is providers.ErrUnavailable.
func (e *LeftError) Unwrap() error { return providers.ErrUnavailable }

// swap is two names that are exchanged.
type swap struct {
	fromDir int
	from    string
	toDir   int
	to      string
}

func (s swap) rename(flags uint) error { return Rename(s.fromDir, s.from, s.toDir, s.to, flags) }

// held is a file that is open, so that no other can get its inode number.
type held struct {
	fd int
	is unix.Statx_t
}

func (h held) close() { unix.Close(h.fd) }

func (h held) same(other held) bool {
	return h.is.Ino == other.is.Ino && h.is.Dev_major == other.is.Dev_major && h.is.Dev_minor == other.is.Dev_minor
}

// hold opens the entry named from. The file system's server is asked for its state, past any
// cached one.
func (s swap) hold() (h held, err error) {
	err = unix.Statx(s.fromDir, s.from, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_FORCE_SYNC, unix.STATX_INO|unix.STATX_SIZE|unix.STATX_MTIME, &h.is)
	if err == nil {
		h.fd, err = unix.Openat(s.fromDir, s.from, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	return h, err
}

// only reports whether the entry named from is the file put, unchanged, or does not exist: then
// its removal loses nothing. Unless open, no program may have it open, where that can be told.
func (s swap) only(put held, open bool) bool {
	is, err := s.hold()
	if err == unix.ENOENT {
		return true
	}
	if err != nil {
		return false
	}
	defer is.close()
	if !is.same(put) || is.is.Size != put.is.Size || is.is.Mtime != put.is.Mtime {
		return false
	}
	if open {
		return true
	}
	fd, err := unix.Openat(s.fromDir, s.from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil { // a link, which cannot be changed, or an unreadable file
		return true
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK) // granted only if no other descriptor is open
	return err != unix.EAGAIN
}

// back gives the entry named from its name back, in the place of the file put.
func (s swap) back(put held) error {
	for {
		next, err := s.hold()
		if err != nil {
			return err
		}
		defer next.close() // one for each time a program was quicker
		if err = s.rename(unix.RENAME_EXCHANGE); err == unix.ENOENT {
			if err = s.rename(unix.RENAME_NOREPLACE); err == nil {
				return nil
			}
		}
		if err == unix.EEXIST { // it was made anew
			continue
		}
		if err != nil {
			return err
		}
		out, err := s.hold()
		if err != nil {
			return err
		}
		defer out.close()
		if out.same(put) {
			return nil
		}
		put = next
	}
}
