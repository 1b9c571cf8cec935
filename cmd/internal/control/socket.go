package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// longestPath is the length that fits sockaddr_un (unix(7)) with its final zero byte.
const longestPath = 107

// withShortPath calls do with a name of the socket that fits sockaddr_un,
// however deep its directory lies: through the open directory in /proc.
func withShortPath(path string, do func(string) error) error {
	if len(path) <= longestPath {
		return do(path)
	}
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), filepath.Base(path)))
}

// listen makes the socket with mode 0600 and replaces one that a dead daemon left.
// The directory is locked, so the socket cannot be that of a living daemon.
func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control: %w", err)
	}
	var l *net.UnixListener
	err := withShortPath(path, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("control: listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // the short name may mean another directory by then
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

func dial(ctx context.Context, path string) (conn net.Conn, err error) {
	err = withShortPath(path, func(short string) error {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// Peer is the process at the other end of a connection, according to the kernel
// (SO_PEERCRED, unix(7)).
type Peer struct {
	PID      int32
	UID, GID uint32
}

func peerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, sockErr); err != nil {
		return Peer{}, err
	}
	return Peer{cred.Pid, cred.Uid, cred.Gid}, nil
}

// guard is a listener that hangs up on each peer that allow refuses, and logs it.
type guard struct {
	*net.UnixListener
	log   *slog.Logger
	allow func(Peer) bool
}

func (g *guard) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		peer, err := peerOf(c)
		if err == nil && g.allow(peer) {
			return &knownConn{c, peer}, nil
		}
		g.log.Warn("refused a caller of the control API", "uid", peer.UID, "pid", peer.PID, "err", err)
		c.Close()
	}
}

// sameUser admits root and the user of this process.
func sameUser(p Peer) bool { return p.UID == 0 || p.UID == uint32(os.Geteuid()) }

// knownConn is a connection with its peer.
type knownConn struct {
	*net.UnixConn
	peer Peer
}
