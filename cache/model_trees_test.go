package cache

import (
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// diskTree is a directory of this machine.
type diskTree struct{ dir string }

func (d diskTree) at(path string) string { return filepath.Join(d.dir, path) }

func (d diskTree) put(path, content string, flags int) error {
	f, err := d.open(path, unix.O_RDWR|unix.O_CREAT|flags)
	if err != nil {
		return err
	}
	defer f.close()
	_, err = unix.Write(int(f.(diskFile)), []byte(content))
	return err
}

func (d diskTree) open(path string, flags int) (modelFile, error) {
	var st unix.Stat_t
	if err := unix.Lstat(d.at(path), &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && flags&unix.O_EXCL == 0 {
		return nil, unix.ENXIO // the kernel opens pipes, not the volume
	}
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	fd, err := unix.Open(d.at(path), flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	return diskFile(fd), err
}

func (d diskTree) truncate(path string, size int) error {
	f, err := d.open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.close()
	return unix.Ftruncate(int(f.(diskFile)), int64(size))
}

func (d diskTree) rename(from, to string) error { return unix.Rename(d.at(from), d.at(to)) }
func (d diskTree) exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, d.at(a), unix.AT_FDCWD, d.at(b), unix.RENAME_EXCHANGE)
}
func (d diskTree) unlink(path string) error   { return unix.Unlink(d.at(path)) }
func (d diskTree) mkdir(path string) error    { return unix.Mkdir(d.at(path), 0o755) }
func (d diskTree) mkfifo(path string) error   { return unix.Mkfifo(d.at(path), 0o644) }
func (d diskTree) rmdir(path string) error    { return unix.Rmdir(d.at(path)) }
func (d diskTree) link(from, to string) error { return unix.Link(d.at(from), d.at(to)) }
func (d diskTree) symlink(path, target string) error {
	return unix.Symlink(target, d.at(path))
}

func (d diskTree) chmod(path string, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Lstat(d.at(path), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return syscall.EOPNOTSUPP
	}
	return unix.Chmod(d.at(path), mode)
}

func (d diskTree) all() []string {
	var lines []string
	filepath.WalkDir(d.dir, func(path string, e iofs.DirEntry, err error) error {
		if path == d.dir || err != nil {
			return err
		}
		var st unix.Stat_t
		unix.Lstat(path, &st)
		content := ""
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, _ := os.ReadFile(path)
			content = string(data)
		case unix.S_IFLNK:
			content, _ = os.Readlink(path)
		}
		rel, _ := filepath.Rel(d.dir, path)
		lines = append(lines, inWords(st.Mode, st.Nlink, rel, content))
		return nil
	})
	return sorted(lines)
}

type diskFile int

func (f diskFile) write(content string, off int) error {
	_, err := unix.Pwrite(int(f), []byte(content), int64(off))
	return err
}

func (f diskFile) read() (string, error) {
	buf := make([]byte, 100)
	n, err := unix.Pread(int(f), buf, 0)
	return string(buf[:max(n, 0)]), err
}

func (f diskFile) close() error { return unix.Close(int(f)) }

// volTree is a working copy, asked as the kernel would.
type volTree struct{ v *Volume }

// walk finds a directory and the inode of a name in it, 0 for none.
func (t volTree) walk(path string) (dir fs.Ino, name string, e fs.Entry, err error) {
	parts := at(path).Parts()
	dir = fs.RootIno
	for i, name := range parts {
		if e, err = t.v.Lookup(me, dir, name); err != nil || i == len(parts)-1 {
			return dir, name, e, err
		}
		switch {
		case e.Ino == 0 || e.Attr.Mode&unix.S_IFMT == unix.S_IFLNK: // links lead nowhere
			return 0, "", e, syscall.ENOENT
		case e.Attr.Mode&unix.S_IFMT != unix.S_IFDIR:
			return 0, "", e, syscall.ENOTDIR
		}
		dir = e.Ino
	}
	return
}

// there is walk for a name that must exist.
func (t volTree) there(path string) (fs.Ino, string, fs.Entry, error) {
	dir, name, e, err := t.walk(path)
	if err == nil && e.Ino == 0 {
		err = syscall.ENOENT
	}
	return dir, name, e, err
}

func (t volTree) open(path string, flags int) (modelFile, error) {
	dir, name, e, err := t.walk(path)
	switch {
	case err != nil:
		return nil, err
	case e.Ino == 0 && flags&unix.O_CREAT == 0:
		return nil, syscall.ENOENT
	case e.Ino == 0:
		_, o, err := t.v.Create(me, dir, name, uint32(flags), 0o666)
		return volFile{t.v, o}, err
	case flags&unix.O_EXCL != 0:
		return nil, syscall.EEXIST
	case e.Attr.Mode&unix.S_IFMT == unix.S_IFLNK:
		return nil, syscall.ELOOP
	}
	o, err := t.v.Open(me, e.Ino, uint32(flags))
	return volFile{t.v, o}, err
}

func (t volTree) put(path, content string, flags int) error {
	f, err := t.open(path, unix.O_RDWR|unix.O_CREAT|flags)
	if err != nil {
		return err
	}
	if err := f.write(content, 0); err != nil {
		return err
	}
	return f.close()
}

func (t volTree) truncate(path string, size int) error {
	_, _, e, err := t.there(path)
	switch {
	case err != nil:
		return err
	case e.Attr.Mode&unix.S_IFMT == unix.S_IFLNK:
		return syscall.ELOOP
	}
	n := uint64(size)
	_, err = t.v.SetAttr(me, e.Ino, nil, &fs.SetAttr{Size: &n})
	return err
}

func (t volTree) rename(from, to string) error   { return t.move(from, to, 0) }
func (t volTree) exchange(from, to string) error { return t.move(from, to, unix.RENAME_EXCHANGE) }

func (t volTree) move(from, to string, flags uint32) error {
	dir, name, e, err := t.walk(from)
	if err != nil {
		return err
	}
	newDir, newName, _, err := t.walk(to)
	if err != nil {
		return err
	}
	if e.Ino == 0 {
		return syscall.ENOENT
	}
	return t.v.Rename(me, dir, name, newDir, newName, flags)
}

// in does something in the directory of a name, and of something to a name that is there.
func (t volTree) in(path string, do func(dir fs.Ino, name string) error) error {
	dir, name, _, err := t.walk(path)
	if err != nil {
		return err
	}
	return do(dir, name)
}

func (t volTree) of(path string, do func(dir fs.Ino, name string, ino fs.Ino) error) error {
	dir, name, e, err := t.there(path)
	if err != nil {
		return err
	}
	return do(dir, name, e.Ino)
}

func (t volTree) unlink(path string) error {
	return t.of(path, func(dir fs.Ino, name string, _ fs.Ino) error { return t.v.Unlink(me, dir, name) })
}

func (t volTree) rmdir(path string) error {
	return t.of(path, func(dir fs.Ino, name string, _ fs.Ino) error { return t.v.Rmdir(me, dir, name) })
}

func (t volTree) chmod(path string, mode uint32) error {
	return t.of(path, func(_ fs.Ino, _ string, ino fs.Ino) error {
		return assert.ErrOf(t.v.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &mode}))
	})
}

func (t volTree) mkdir(path string) error {
	return t.in(path, func(dir fs.Ino, name string) error { return assert.ErrOf(t.v.Mkdir(me, dir, name, 0o755)) })
}

func (t volTree) mkfifo(path string) error {
	return t.in(path, func(dir fs.Ino, name string) error {
		return assert.ErrOf(t.v.Mknod(me, dir, name, unix.S_IFIFO|0o644, 0))
	})
}

func (t volTree) symlink(path, target string) error {
	return t.in(path, func(dir fs.Ino, name string) error { return assert.ErrOf(t.v.Symlink(me, dir, name, target)) })
}

func (t volTree) link(from, to string) error {
	_, _, e, err := t.there(from)
	if err != nil {
		return err
	}
	dir, name, over, err := t.walk(to)
	switch {
	case err != nil:
		return err
	case over.Ino != 0:
		return syscall.EEXIST
	}
	_, err = t.v.Link(me, e.Ino, dir, name)
	return err
}

func (t volTree) all() []string {
	var lines []string
	t.below(fs.RootIno, "", &lines)
	return sorted(lines)
}

func (t volTree) below(dir fs.Ino, prefix string, lines *[]string) {
	d, _ := t.v.OpenDir(me, dir)
	defer d.Release()
	for e, more, err := d.Next(me); more && err == nil; e, more, err = d.Next(me) {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		if e.Mode == unix.S_IFDIR {
			t.below(e.Ino, prefix+e.Name+"/", lines) // before stat, so that nlink is known
		}
		a, _ := t.v.Attr(me, e.Ino, nil)
		content := ""
		switch e.Mode {
		case unix.S_IFREG:
			o, err := t.v.Open(me, e.Ino, unix.O_RDONLY)
			if err == nil {
				content, err = volFile{t.v, o}.read()
				o.File.Release()
			}
			if err != nil {
				content = err.Error()
			}
		case unix.S_IFLNK:
			content, _ = t.v.Readlink(me, e.Ino)
		}
		*lines = append(*lines, inWords(a.Mode, uint64(a.Nlink), prefix+e.Name, content))
	}
}

type volFile struct {
	v *Volume
	o fs.Opened
}

func (f volFile) write(content string, off int) error {
	_, err := f.o.File.Write(me, []byte(content), int64(off))
	return err
}

func (f volFile) read() (string, error) {
	d, err := f.o.File.Read(me, make([]byte, 100), 0)
	return string(d.Bytes), err
}

func (f volFile) close() error {
	defer f.o.File.Release()
	return f.o.File.Flush(me)
}
