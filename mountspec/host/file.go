package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// A file is a governing file as it was read once. It is not read twice, so that the
// checked content is the one used.
type file struct {
	path  string         // real and absolute
	asked string         // the path by which it was reached
	stamp hostfile.Stamp // taken before it was read; zero: it was not read
	data  []byte
}

func (f *file) source() mountspec.Source { return mountspec.Source{Name: f.path, Data: f.data} }

// readBeneath reads the regular file rel below root.
func readBeneath(root, rel string) (*file, error) {
	f, err := hostfile.OpenBeneath(root, rel)
	if err != nil {
		return nil, err
	}
	return readOpen(f)
}

// readManifest reads a manifest by its absolute path. Its directory may be
// reached through links, the file itself is none: a link's target would
// decide which directory is the workspace's own.
func readManifest(path string) (*file, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	asked := path
	path = filepath.Join(dir, filepath.Base(path))
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		return nil, fmt.Errorf("%s is a symbolic link: a manifest must be a file", path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f, err := readOpen(os.NewFile(uintptr(fd), path))
	if err == nil {
		f.asked = asked
	}
	return f, err
}

func readOpen(f *os.File) (*file, error) {
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s is not a regular file", f.Name())
	}
	src, err := mountspec.ReadSource(f.Name(), f)
	if err != nil {
		return nil, err
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, err
	}
	return &file{path: real, asked: f.Name(), stamp: hostfile.StampOf(&st), data: src.Data}, nil
}

// readTrusted reads a file that the host configuration names, or one that is
// trusted for its place: no other user may be able to write it.
func readTrusted(path string) (*file, error) {
	f, err := hostfile.Read(path, hostfile.Options{MaxBytes: 16 << 20})
	if err != nil {
		return nil, err
	}
	return &file{path: f.Path, asked: path, stamp: hostfile.StampOf(&f.Stat), data: f.Data}, nil
}

// makeConfigDir makes the directory of the configuration, private.
func makeConfigDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err := hostfile.CheckDir(dir, hostfile.Options{})
	return err
}
