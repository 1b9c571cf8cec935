package port

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// A server comes and goes at a held port, and who asks while it is away is refused.
func TestHold(t *testing.T) {
	h, err := Hold()
	assert.OK(t, err)
	defer h.Close()
	for range 3 {
		assert.Is(t, assert.ErrOf(net.Dial("tcp", h.Addr)), unix.ECONNREFUSED, "without a server")
		l, err := h.Listen()
		assert.OK(t, err)
		c, err := net.Dial("tcp", h.Addr)
		assert.OK(t, err)
		c.Close()
		l.Close()
	}
}

// The kernel gives a held port to nobody who asks for any: where it may choose among
// this one alone, it has none.
func TestHoldKeepsOthersAway(t *testing.T) {
	h, err := Hold()
	assert.OK(t, err)
	defer h.Close()
	_, port, err := net.SplitHostPort(h.Addr)
	assert.OK(t, err)
	n, err := net.LookupPort("tcp", port)
	assert.OK(t, err)
	for _, reuse := range []int{0, 1} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		assert.OK(t, err)
		defer unix.Close(fd)
		assert.OK(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, reuse))
		const localPortRange = 51 // IP_LOCAL_PORT_RANGE, since Linux 6.3
		if unix.SetsockoptInt(fd, unix.SOL_IP, localPortRange, n|n<<16) == unix.ENOPROTOOPT {
			return
		}
		assert.Is(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.EADDRINUSE, "for any port, reusing", reuse)
	}
}
