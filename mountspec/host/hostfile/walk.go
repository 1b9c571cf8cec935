package hostfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links one path may go through (ELOOP
// after that, as in the kernel).
const maxLinks = 40

// Resolve follows path from the root, component by component, and returns
// it without symbolic links. Each directory on the way, and each link,
// must be safe from other users: a link that another user can replace
// decides which file is read, however safe that file is.
func Resolve(path string, o Options) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: not an absolute path", path)
	}
	w := walker{o: o, todo: split(path)}
	for w.at = "/"; len(w.todo) > 0; {
		if err := w.step(); err != nil {
			return "", err
		}
	}
	return w.at, nil
}

type walker struct {
	o     Options
	at    string // resolved so far, a checked directory while todo is not empty
	todo  []string
	links int
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func (w *walker) step() error {
	name := w.todo[0]
	w.todo = w.todo[1:]
	switch name {
	case ".":
		return nil
	case "..":
		w.at = filepath.Dir(w.at)
		return nil
	}
	if err := w.checkAt(); err != nil {
		return err
	}
	next := filepath.Join(w.at, name)
	var st unix.Stat_t
	if err := unix.Lstat(next, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: next, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return w.follow(next, &st)
	}
	w.at = next
	return nil
}

// checkAt checks the directory that the next name is looked up in. In a
// sticky one others can make names, but not replace ours; any file that they
// make in it is refused for its owner when it is used.
func (w *walker) checkAt() error {
	var st unix.Stat_t
	if err := unix.Lstat(w.at, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: w.at, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return &fs.PathError{Op: "open", Path: w.at, Err: unix.ENOTDIR}
	}
	return checkDirStat(w.at, &st, w.o, true)
}

// checkDirStat refuses a directory in which another user can put names in
// place of ours. stickyOK is for directories on the way, such as /tmp.
func checkDirStat(path string, st *unix.Stat_t, o Options, stickyOK bool) error {
	if err := checkOwner(path, st, o); err != nil {
		return err
	}
	if st.Mode&0o022 == 0 || stickyOK && st.Mode&unix.S_ISVTX != 0 {
		return nil
	}
	return &Error{Path: path, Reason: fmt.Sprintf("is a directory that others can write (mode %04o)", st.Mode&0o7777), Hint: "chmod go-w " + path}
}

func (w *walker) follow(link string, st *unix.Stat_t) error {
	if err := checkOwner(link, st, w.o); err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "open", Path: link, Err: unix.ELOOP}
	}
	target, err := os.Readlink(link)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		w.at = "/"
	}
	w.todo = append(split(target), w.todo...)
	return nil
}
