package memory

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

// Driver opens stores under the name "memory". Without configuration a store is new and empty,
// and gone when it is closed. With the key "socket", the absolute name of a Unix socket, it is
// the provider that another process serves at it (see package wire); with "clone", and "branch"
// if it is not main, a clone of the remote that another process serves.
//
// The socket must be this user's own, closed to all others, and the serving process must be
// this user's: the owner of the socket has the files.
func Driver() providers.Driver {
	keys := []string{"socket", "clone", "branch"}
	promises := capabilities()
	promises.Abilities |= served
	return providers.Driver{
		Name: name, Text: "the memory of this process, or of one behind a socket; gone when it ends",
		Promises: promises, Keys: keys,
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			p, err := openSettings(ctx, s, keys)
			return p, providers.Fail(name, providers.MethodOpen, providers.Locator{}, err, providers.ErrInvalid)
		},
	}
}

func openSettings(ctx context.Context, s providers.Settings, keys []string) (providers.Provider, error) {
	if err := s.CheckKeys(keys...); err != nil {
		return nil, err
	}
	socket, c := s.Config["socket"], wire.Clone{Name: s.Config["clone"], Branch: s.Config["branch"]}
	switch {
	case socket == "" && c != (wire.Clone{}):
		return nil, fmt.Errorf("a clone is of what a socket serves: %w", providers.ErrInvalid)
	case socket == "":
		return New(Options{Now: s.Now}), nil
	case !filepath.IsAbs(socket):
		return nil, fmt.Errorf("socket %q is not an absolute name: %w", socket, providers.ErrInvalid)
	case c.Name == "" && c.Branch != "":
		return nil, fmt.Errorf("branch without clone: %w", providers.ErrInvalid)
	}
	// A typed nil would be no nil.
	client, err := dial(ctx, c, socket)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// connectOwn connects to a socket that no other user can use or offer. It checks the name
// first, because another user's socket must receive nothing from us, and the peer afterwards,
// because the name may have changed hands.
func connectOwn(ctx context.Context, socket string) (net.Conn, error) {
	fi, err := os.Lstat(socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnavailable, err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case fi.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is not a socket: %w", socket, providers.ErrPermission)
	case !ok || int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s is another user's: %w", socket, providers.ErrPermission)
	case fi.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s is open to others (mode %o, want 600): %w", socket, fi.Mode().Perm(), providers.ErrPermission)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnavailable, err)
	}
	if err := checkPeer(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// checkPeer refuses a process of another user.
func checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	switch {
	case peerErr != nil:
		return peerErr
	case int(peer.Uid) != os.Geteuid():
		return fmt.Errorf("another user's process answers: %w", providers.ErrPermission)
	}
	return nil
}
