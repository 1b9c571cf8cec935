package direct

import (
	"bytes"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Extended attributes of every name space are the disk's, by descriptor; an O_PATH descriptor
// needs the way over /proc, which also reaches a symbolic link itself.

// GetXattr returns a value.
func (v *Volume) GetXattr(_ *wsfs.Op, ino wsfs.Ino, name string) ([]byte, error) {
	h, err := v.res.hold(ino)
	if err != nil {
		return nil, err
	}
	defer h.drop()
	return sized(func(buf []byte) (int, error) { return getxattr(h, name, buf) })
}

// ListXattr returns all names.
func (v *Volume) ListXattr(_ *wsfs.Op, ino wsfs.Ino) ([]string, error) {
	h, err := v.res.hold(ino)
	if err != nil {
		return nil, err
	}
	defer h.drop()
	list, err := sized(func(buf []byte) (int, error) {
		if h.path {
			return unix.Listxattr(h.procPath(), buf)
		}
		return unix.Flistxattr(h.fd, buf)
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var names []string
	for _, n := range bytes.Split(bytes.TrimSuffix(list, []byte{0}), []byte{0}) {
		names = append(names, string(n))
	}
	return names, nil
}

// SetXattr sets a value; flags are XATTR_CREATE and XATTR_REPLACE.
func (v *Volume) SetXattr(_ *wsfs.Op, ino wsfs.Ino, name string, value []byte, flags uint32) error {
	return v.changeXattr(ino, func(h *handle) error {
		if h.path {
			return unix.Setxattr(h.procPath(), name, value, int(flags))
		}
		return unix.Fsetxattr(h.fd, name, value, int(flags))
	})
}

// RemoveXattr removes a value.
func (v *Volume) RemoveXattr(_ *wsfs.Op, ino wsfs.Ino, name string) error {
	return v.changeXattr(ino, func(h *handle) error { return removexattr(h, name) })
}

func (v *Volume) changeXattr(ino wsfs.Ino, f func(h *handle) error) error {
	h, err := v.res.hold(ino)
	if err != nil {
		return err
	}
	defer h.drop()
	v.tab.begin(ino)
	err = f(h)
	var st stat
	if serr := v.tab.end(ino, h.fd, &st); err == nil {
		err = serr
	}
	return err
}

// sized calls f, which behaves as getxattr(2), with a buffer that is large enough, also when
// the value grows meanwhile.
func sized(f func(buf []byte) (int, error)) ([]byte, error) {
	var room [256]byte
	n, err := f(room[:])
	if err == nil {
		return append(make([]byte, 0, n), room[:n]...), nil
	}
	for err == syscall.ERANGE {
		if n, err = f(nil); err != nil {
			break
		}
		buf := make([]byte, n+64)
		if n, err = f(buf); err == nil {
			return buf[:n], nil
		}
	}
	return nil, err
}

func getxattr(h *handle, name string, buf []byte) (int, error) {
	if h.path {
		return unix.Getxattr(h.procPath(), name, buf)
	}
	return unix.Fgetxattr(h.fd, name, buf)
}

func removexattr(h *handle, name string) error {
	if h.path {
		return unix.Removexattr(h.procPath(), name)
	}
	return unix.Fremovexattr(h.fd, name)
}
