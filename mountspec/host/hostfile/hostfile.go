// Package hostfile reads files that carry the host's authority: its
// configuration, its registry, its secrets.
//
// It knows which users could have written a file, and promises that a file it
// returns was written by root or by the user that runs the program, and
// that no other user could have put another file in its place: every
// directory and every symbolic link on the way is checked, as sshd does
// with authorized_keys.
//
//	f, err := hostfile.Read("/etc/wsmount/config.yaml", hostfile.Options{})
package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Options of the checks. The zero value is: at most 1 MiB, readable by
// every user, owned by root or by the user of this process.
type Options struct {
	// Private refuses files that the group or others can read.
	Private bool
	// MaxBytes bounds the file. Zero: 1 MiB.
	MaxBytes int64
	// UID is the user that may own files besides root. Zero: the effective
	// user of this process (which is also right for root).
	UID int
	// NoSync lets WriteAtomic leave to the kernel when the disk has the file: a power
	// loss may damage it. It is for content that can be made again.
	NoSync bool
}

// A File is the result of Read.
type File struct {
	// Path is where the bytes really lie: absolute, without symbolic links.
	Path string
	Data []byte
	Stat unix.Stat_t // of before it was read
}

// ErrUntrusted matches refusals for reasons of owner or mode. A missing
// file matches fs.ErrNotExist instead.
var ErrUntrusted = errors.New("can be changed or read by others")

// An Error says which path was refused, why, and what to do about it.
type Error struct {
	Path, Reason, Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }

// Is makes every Error match ErrUntrusted.
func (e *Error) Is(target error) bool { return target == ErrUntrusted }

// Read returns the contents of the file at path, or why it is not trusted.
func Read(path string, o Options) (*File, error) {
	real, err := Resolve(path, o)
	if err != nil {
		return nil, err
	}
	// The directory was checked, so no other user can swap the last name;
	// O_NONBLOCK keeps a FIFO from hanging the open.
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: real, Err: err}
	}
	f := os.NewFile(uintptr(fd), real)
	defer f.Close()
	out := &File{Path: real}
	out.Data, err = readChecked(f, &out.Stat, o)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func readChecked(f *os.File, st *unix.Stat_t, o Options) ([]byte, error) {
	if err := unix.Fstat(int(f.Fd()), st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	if err := checkFile(f.Name(), st, o); err != nil {
		return nil, err
	}
	max := o.MaxBytes
	if max == 0 {
		max = 1 << 20
	}
	var data bytes.Buffer
	data.Grow(int(min(st.Size, max)) + bytes.MinRead) // memory is not free of charge: a registry is large
	_, err := data.ReadFrom(io.LimitReader(f, max+1))
	if err == nil && int64(data.Len()) > max {
		return nil, &Error{Path: f.Name(), Reason: fmt.Sprintf("is larger than %d bytes", max), Hint: "this is not the file that was meant"}
	}
	return data.Bytes(), err
}

func checkFile(path string, st *unix.Stat_t, o Options) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &Error{Path: path, Reason: "is not a regular file", Hint: "point to a regular file"}
	}
	if err := checkOwner(path, st, o); err != nil {
		return err
	}
	if st.Mode&0o022 != 0 {
		return &Error{Path: path, Reason: fmt.Sprintf("can be written by others (mode %04o)", st.Mode&0o7777), Hint: "chmod go-w " + path}
	}
	if o.Private && st.Mode&0o077 != 0 {
		return &Error{Path: path, Reason: fmt.Sprintf("can be read by others (mode %04o)", st.Mode&0o7777), Hint: "chmod 600 " + path}
	}
	return nil
}

func checkOwner(path string, st *unix.Stat_t, o Options) error {
	if uid := o.uid(); st.Uid != 0 && int(st.Uid) != uid {
		return &Error{Path: path, Reason: fmt.Sprintf("belongs to user %d, neither root nor user %d", st.Uid, uid), Hint: "chown it, or run as its owner"}
	}
	return nil
}

func (o Options) uid() int {
	if o.UID != 0 {
		return o.UID
	}
	return os.Geteuid()
}

// CheckDir says whether dir and everything above it can be changed by root
// and the user only. It returns dir without symbolic links.
func CheckDir(dir string, o Options) (string, error) {
	real, err := Resolve(dir, o)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: real, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", &fs.PathError{Op: "open", Path: real, Err: unix.ENOTDIR}
	}
	return real, checkDirStat(real, &st, o, false)
}

// CheckProgram says whether the file at path is a program that only root
// and the user can change, and returns its real path.
func CheckProgram(path string, o Options) (string, error) {
	real, err := Resolve(path, o)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: real, Err: err}
	}
	o.Private = false
	if err := checkFile(real, &st, o); err != nil {
		return "", err
	}
	if st.Mode&0o111 == 0 {
		return "", &Error{Path: real, Reason: "is not executable", Hint: "chmod +x " + real}
	}
	return real, nil
}

// IsAbsent says whether err means that there is no such file: only then
// may a caller look elsewhere.
func IsAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Expand makes a path of a configuration file absolute: "~/" is home, a
// relative one is below base.
func Expand(path, home, base string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case path == "~":
		path = home
	case len(path) > 1 && path[:2] == "~/":
		path = filepath.Join(home, path[2:])
	case path[0] == '~':
		return "", fmt.Errorf("%s: only ~/ is understood, not the home of another user", path)
	case !filepath.IsAbs(path):
		path = filepath.Join(base, path)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: the home directory is not known", path)
	}
	return filepath.Clean(path), nil
}
