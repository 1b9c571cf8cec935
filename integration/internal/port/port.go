// Package port keeps ports of this machine for the servers of tests.
//
// A port that the kernel gave and got back is anybody's: between then and the start of
// a server, or while a server is away for a while, another test's server or connection
// may get it, and be taken for that server.
package port

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Held is a TCP port of 127.0.0.1 that the kernel gives to nobody else. A server that
// asks for it by its number, with SO_REUSEADDR as servers do, listens there as if nobody
// held it, as often as it is started; between that connections are refused.
type Held struct {
	Addr string // host and port

	socket *os.File // bound, and not listening
}

// Hold holds a port until Close, or until nobody refers to what it returned.
func Hold() (*Held, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	h := &Held{socket: os.NewFile(uintptr(fd), "port")}
	if h.Addr, err = bind(fd); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func bind(fd int) (addr string, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return "", os.NewSyscallError("setsockopt", err)
	}
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(fd, at); err != nil {
		return "", os.NewSyscallError("bind", err)
	}
	got, err := unix.Getsockname(fd)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	return net.JoinHostPort(net.IP(at.Addr[:]).String(), strconv.Itoa(got.(*unix.SockaddrInet4).Port)), nil
}

// Listen listens at the port, again and again if need be.
func (h *Held) Listen() (net.Listener, error) { return net.Listen("tcp", h.Addr) }

// Close gives the port back.
func (h *Held) Close() { h.socket.Close() }
