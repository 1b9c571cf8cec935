package model

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// A tree is one of the two: a directory and the files that are open in it.
type tree struct {
	root string
	open [slots]int // descriptor + 1; 0 is none
}

func (t *tree) path(p string) string { return filepath.Join(t.root, p) }

func (t *tree) closeAll() {
	for i := range t.open {
		t.close(i)
	}
}

func (t *tree) close(i int) string {
	fd := t.open[i] - 1
	if fd < 0 {
		return "none"
	}
	t.open[i] = 0
	return result(unix.Close(fd))
}

func (t *tree) keep(i, fd int, err error) string {
	if err == nil {
		t.close(i)
		t.open[i] = fd + 1
	}
	return result(err)
}

// result is an errno's name, or ok.
func result(err error) string {
	var e unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// removeAll removes a tree in which a directory may be closed to its owner.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// snapshot is all that can be seen of a tree, by path.
func (t *tree) snapshot() map[string]string {
	seen := map[string]string{}
	for _, p := range everyPath() {
		seen[p] = t.describe(p)
	}
	return seen
}

// everyPath lists all paths that an operation can name.
func everyPath() []string {
	var paths []string
	var add func(dir string, depth int)
	add = func(dir string, depth int) {
		for _, n := range names {
			p := filepath.Join(dir, n)
			paths = append(paths, p)
			if depth < 3 {
				add(p, depth+1)
			}
		}
	}
	add("", 1)
	return append(paths, ".")
}

// existing lists the paths that exist, of one type or (0) of any.
func (t *tree) existing(want uint32) []string {
	var paths []string
	for _, p := range everyPath() {
		var st unix.Stat_t
		if p != "." && unix.Lstat(t.path(p), &st) == nil && (want == 0 || st.Mode&unix.S_IFMT == want) {
			paths = append(paths, p)
		}
	}
	return paths
}

// describe tells what is at a path, as one line.
func (t *tree) describe(p string) string {
	var st unix.Stat_t
	if err := unix.Lstat(t.path(p), &st); err != nil {
		return result(err)
	}
	kind := st.Mode & unix.S_IFMT
	line := fmt.Sprintf("mode %o links %d owner %d:%d", st.Mode, st.Nlink, st.Uid, st.Gid)
	switch kind {
	case unix.S_IFREG:
		return fmt.Sprintf("%s size %d content %s attributes %s", line, st.Size, t.content(p), t.attributes(p))
	case unix.S_IFLNK:
		target, err := os.Readlink(t.path(p))
		return fmt.Sprintf("%s to %q %s", line, target, result(err))
	case unix.S_IFDIR:
		return fmt.Sprintf("%s names %s attributes %s", line, t.list(p), t.attributes(p))
	}
	return line
}

func (t *tree) content(p string) string {
	fd, err := unix.Open(t.path(p), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return result(err)
	}
	defer unix.Close(fd)
	var data []byte
	for buf := make([]byte, 1<<16); ; {
		n, err := unix.Read(fd, buf)
		if n <= 0 {
			return digest(data) + " " + result(err)
		}
		data = append(data, buf[:n]...)
	}
}

// put writes a whole file. It does not wait for the reader of a fifo.
func (t *tree) put(p string, data []byte) string {
	fd, err := unix.Open(t.path(p), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return result(err)
	}
	n, err := unix.Write(fd, data)
	return fmt.Sprint(n, " ", result(err), " ", result(unix.Close(fd)))
}

func (t *tree) isFifo(p string) bool {
	info, err := os.Stat(t.path(p))
	return err == nil && info.Mode().Type() == os.ModeNamedPipe
}

// digest is short enough to be read in a message.
func digest(data []byte) string {
	return fmt.Sprintf("%d:%.4x", len(data), sha256.Sum256(data))
}

func (t *tree) list(p string) string {
	entries, err := os.ReadDir(t.path(p))
	if err != nil {
		return result(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name()+e.Type().String()[:1])
	}
	sort.Strings(list)
	return strings.Join(list, ",")
}

// attributes lists the user attributes with their values.
func (t *tree) attributes(p string) string {
	var list []string
	for _, name := range attributeNames {
		buf := make([]byte, 1000)
		if n, err := unix.Lgetxattr(t.path(p), name, buf); err == nil {
			list = append(list, name+"="+string(buf[:n]))
		} else if err != unix.ENODATA {
			list = append(list, name+" "+result(err))
		}
	}
	return strings.Join(list, ",")
}

var attributeNames = []string{"user.a", "user.b"}

// difference names the first path at which two snapshots differ.
func difference(got, want map[string]string) string {
	for _, p := range everyPath() {
		if got[p] != want[p] {
			return fmt.Sprintf("%s: got %s, want %s", p, got[p], want[p])
		}
	}
	return ""
}
