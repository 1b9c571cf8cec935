package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	wsfs "github.com/wsmount/wsmount/fs"
)

// store is the directory with one content file per inode. A content file that
// another version from the backend replaces is unlinked, never rewritten: the
// kernel may still have it mapped. What a program in the mount does to its own
// file, truncation too, happens in place, as on a local disk.
type store struct {
	dir  string
	lock *os.File
}

// pathXattr names a content file's place in the volume, for whoever has to
// rescue content without its table.
const pathXattr = "user.wsmount.path"

// openStore takes a state directory for this process. It fails when another
// process has it, and when content is left over that an unclean end may have
// kept from the backend: nothing here may be lost, and without a database
// nothing here can be told apart.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return nil, fmt.Errorf("cache: state directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache: state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cache: state directory: %w", err)
	}
	s := &store{dir, lock}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		err = fmt.Errorf("cache: %s is in use by another mount: %w", dir, err)
	} else if left := s.leftovers(); left != "" {
		err = fmt.Errorf("cache: %w: %s", ErrLeftovers, left)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

// leftovers is a content file that is there already, "" for none.
func (s *store) leftovers() string {
	found, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", "*"))
	for _, path := range found {
		if filepath.Ext(path) != partSuffix {
			return path
		}
		os.Remove(path) // a download that never ended
	}
	return ""
}

// close frees the state directory.
func (s *store) close() error {
	shards, _ := filepath.Glob(filepath.Join(s.dir, "data", "*"))
	for _, shard := range shards {
		os.Remove(shard) // stays if something is in it
	}
	return s.lock.Close()
}

const partSuffix = ".part"

func (s *store) path(ino wsfs.Ino) string {
	return filepath.Join(s.dir, "data", fmt.Sprintf("%02x", uint64(ino)&0xff), fmt.Sprint(uint64(ino)))
}

// create makes the empty content file of an inode that has none.
func (s *store) create(ino wsfs.Ino) (*os.File, error) {
	return s.make(s.path(ino), os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// open opens the content file of an inode that has one.
func (s *store) open(ino wsfs.Ino) (*os.File, error) {
	return os.OpenFile(s.path(ino), os.O_RDWR, 0)
}

// part makes a file for content on its way here.
func (s *store) part(ino wsfs.Ino) (*os.File, error) {
	return s.make(s.path(ino)+partSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// adopt makes a complete part the content file.
func (s *store) adopt(ino wsfs.Ino) error {
	return os.Rename(s.path(ino)+partSuffix, s.path(ino))
}

// discard removes a part.
func (s *store) discard(ino wsfs.Ino) { os.Remove(s.path(ino) + partSuffix) }

// remove unlinks a content file, if there is one. Numbers are never reused, so
// it may happen at any time after its inode is gone.
func (s *store) remove(ino wsfs.Ino) { os.Remove(s.path(ino)) }

// each visits every inode that has a content file.
func (s *store) each(visit func(wsfs.Ino)) {
	found, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", "*"))
	for _, path := range found {
		if ino, err := strconv.ParseUint(filepath.Base(path), 10, 64); err == nil {
			visit(wsfs.Ino(ino))
		}
	}
}

func (s *store) make(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			f, err = os.OpenFile(path, flags, 0o600)
		}
	}
	return f, err
}

// name writes the place that a content file belongs to beside it. State
// directories without extended attributes go without.
func (s *store) name(f *os.File, place string) {
	_ = unix.Fsetxattr(int(f.Fd()), pathXattr, []byte(place), 0)
}

// statfs describes the disk that content lies on.
func (s *store) statfs() (wsfs.Statfs, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return wsfs.Statfs{}, err
	}
	return wsfs.Statfs{Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail,
		Files: st.Files, Ffree: st.Ffree, Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize),
		NameLen: providerNameMax}, nil
}
