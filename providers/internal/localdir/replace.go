package localdir

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Replace gives the file from, which is the caller's alone, the name to in the place of what has
// that. compare says why what has a name in an open directory must stay, nil: it may be replaced.
// The error is that one, or the kernel's, of ENOENT if nothing has the name; then from is the
// caller's to remove, unless it is a *LeftError.
//
// The two are exchanged (RENAME_EXCHANGE), and what came out is compared: that is what had the name
// last, whoever gave it. What must stay is exchanged back, until what comes out is what was put
// there the time before, so that nothing newer is replaced. Until then the name shows from, which
// a program may change, or replace by what it makes of it: then from, or what had the name before,
// is in no other place, and stays where it came to be; the error is a *LeftError. What was removed
// or moved meanwhile is there again: which of the two it was, the name does not tell.
// Where the file system cannot exchange, what gets the name between the comparison and the rename
// is replaced.
//
// open says that the caller has from open. Else it is not given up while a program has it open,
// which got it by the name to and may write to it yet.
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

// LeftError says that what had a name could not be given it back, and which name it has. It is
// providers.ErrUnavailable.
type LeftError struct {
	Name, Left string
	err        error
}

// Error names both.
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

// held is a file that is open, so that no other has its number.
type held struct {
	fd int
	is unix.Statx_t
}

func (h held) close() { unix.Close(h.fd) }

func (h held) same(other held) bool {
	return h.is.Ino == other.is.Ino && h.is.Dev_major == other.is.Dev_major && h.is.Dev_minor == other.is.Dev_minor
}

// hold opens what is called from. Who serves the directory is asked what that is, and not what it
// was known to be.
func (s swap) hold() (h held, err error) {
	err = unix.Statx(s.fromDir, s.from, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_FORCE_SYNC, unix.STATX_INO|unix.STATX_SIZE|unix.STATX_MTIME, &h.is)
	if err == nil {
		h.fd, err = unix.Openat(s.fromDir, s.from, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	return h, err
}

// only reports whether what is called from is the file put as it was, or nothing: then nothing is
// lost with it. No program may have it open, where that can be told.
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
	if err != nil { // a link, which cannot be changed, or a file that nobody may read
		return true
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK) // which is given to who has it open alone
	return err != unix.EAGAIN
}

// back gives what is called from its name back, in the place of the file put.
func (s swap) back(put held) error {
	for {
		next, err := s.hold()
		if err != nil {
			return err
		}
		defer next.close() // of as many as programs were quicker
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
