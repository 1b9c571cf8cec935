package vault

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// errSpecial is for devices, sockets and pipes.
var errSpecial = fmt.Errorf("neither file, directory nor link: %w", providers.ErrUnsupported)

// belief says where the version of a file is taken from.
type belief int

const (
	readAnew   belief = iota // its content
	remembered               // a remembered hash of a file that looks the same counts too
	unread                   // it is not told
)

// look describes a name in a directory without following it; nil for nothing.
func (p *Provider) look(ctx context.Context, dir int, name string, l providers.Locator, b belief) (*providers.Info, error) {
	for range attempts {
		var st unix.Statx_t
		err := retryErr(func() error {
			return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
		})
		if err == unix.ENOENT {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		info, err := p.describe(ctx, dir, name, l, &st, b)
		if err != errReplaced {
			return info, err
		}
	}
	return nil, providers.ErrConflict
}

// errReplaced says that a name leads to another file than a moment ago.
var errReplaced = errors.New("replaced meanwhile")

func (p *Provider) describe(ctx context.Context, dir int, name string, l providers.Locator, st *unix.Statx_t, b belief) (*providers.Info, error) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return &providers.Info{Locator: l, Kind: providers.KindDir, Attr: attrOf(st)}, nil
	case unix.S_IFLNK:
		target, err := readLink(dir, name)
		if err == unix.EINVAL || err == unix.ENOENT {
			return nil, errReplaced
		}
		return linkInfo(l, st, target), err
	case unix.S_IFREG:
	default:
		return nil, errSpecial
	}
	switch b {
	case unread:
		return &providers.Info{Locator: l, Kind: providers.KindFile, Size: int64(st.Size), Attr: attrOf(st)}, nil
	case remembered:
		if sum, ok := p.sums.known(st); ok {
			return fileInfo(l, st, sum), nil
		}
	}
	// O_NONBLOCK: a pipe that took the file's place must not block the open.
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	switch err {
	case nil:
	case unix.EACCES, unix.EPERM:
		return unreadable(l, st), nil
	case unix.ENOENT, unix.ELOOP, unix.ENXIO:
		return nil, errReplaced
	default:
		return nil, err
	}
	f := file(fd, l)
	defer f.Close()
	sum, now, err := p.sums.hash(ctx, f)
	switch {
	case err == errChanging && b == remembered:
		return changing(l, st), nil
	case err != nil:
		return nil, err
	}
	return fileInfo(l, &now, sum), nil
}

func attrOf(st *unix.Statx_t) providers.Attr {
	return providers.Attr{
		Valid:   providers.AttrMode | providers.AttrModTime,
		Mode:    uint32(st.Mode) & 0o7777,
		ModTime: time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)),
	}
}

func fileInfo(l providers.Locator, st *unix.Statx_t, sum string) *providers.Info {
	size := int64(st.Size)
	return &providers.Info{
		Locator: l, Kind: providers.KindFile, Size: size, Attr: attrOf(st),
		Version: providers.Version{ETag: sum, Size: size}, Digest: "sha256:" + sum,
	}
}

// linkInfo has a version that no file has, also one with the target as its content.
func linkInfo(l providers.Locator, st *unix.Statx_t, target string) *providers.Info {
	sum, size := sha256.Sum256([]byte(target)), int64(len(target))
	return &providers.Info{
		Locator: l, Kind: providers.KindSymlink, Size: size, Attr: attrOf(st),
		Version: providers.Version{ETag: "link-" + hex.EncodeToString(sum[:]), Size: size},
	}
}

// unreadable describes a file whose content this user may not read.
func unreadable(l providers.Locator, st *unix.Statx_t) *providers.Info {
	m, size := markOf(st), int64(st.Size)
	return &providers.Info{
		Locator: l, Kind: providers.KindFile, Size: size, Attr: attrOf(st),
		Version: providers.Version{ETag: fmt.Sprintf("unreadable-%x.%x.%x", m.ino, m.btime, m.mtime), Size: size},
	}
}

// changing describes a file whose content is another each time that it is read.
func changing(l providers.Locator, st *unix.Statx_t) *providers.Info {
	size := int64(st.Size)
	return &providers.Info{
		Locator: l, Kind: providers.KindFile, Size: size, Attr: attrOf(st),
		Version: providers.Version{ETag: "changing-" + rand.Text(), Size: size},
	}
}

func readLink(dir int, name string) (string, error) {
	target := make([]byte, unix.PathMax)
	n, err := retry(func() (int, error) { return unix.Readlinkat(dir, name, target) })
	return string(target[:max(0, n)]), err
}

// file wraps a descriptor that no other code closes.
func file(fd int, l providers.Locator) *os.File { return os.NewFile(uintptr(fd), l.Name()) }

// find is the entry at l, nil for none. The error is ENOTDIR or ELOOP below a file or a link.
func (p *Provider) find(ctx context.Context, l providers.Locator, b belief) (info *providers.Info, err error) {
	err = p.within(l, func(dir int, name string) error {
		info, err = p.look(ctx, dir, name, l, b)
		return err
	})
	if err == unix.ENOENT {
		return nil, nil
	}
	return info, err
}

// stat is find for readers: an entry below a file is missing.
func (p *Provider) stat(ctx context.Context, l providers.Locator, b belief) (providers.Info, error) {
	if p.temps.has(l.Name()) {
		return providers.Info{}, providers.ErrNotExist
	}
	info, err := p.find(ctx, l, b)
	if err == unix.ENOTDIR || err == unix.ELOOP || err == nil && info == nil {
		return providers.Info{}, providers.ErrNotExist
	}
	if err != nil {
		return providers.Info{}, err
	}
	return *info, nil
}

// Stat implements providers.Provider.
func (p *Provider) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func() (providers.Info, error) { return p.stat(ctx, l, remembered) })
}

// Glance implements providers.Glancer.
func (p *Provider) Glance(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func() (providers.Info, error) { return p.stat(ctx, l, unread) })
}
