package port

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// A server comes and goes at a held port, and who asks while it is away is refused.
func TestHold(t *testing.T) {
	h := assert.Of(Hold()).OK(t)
	defer h.Close()
	for range 3 {
		assert.Is(t, assert.ErrOf(net.Dial("tcp", h.Addr)), unix.ECONNREFUSED, "without a server")
		l := assert.Of(h.Listen()).OK(t)
		c := assert.Of(net.Dial("tcp", h.Addr)).OK(t)
		c.Close()
		l.Close()
	}
}

// The kernel gives a held port to nobody who asks for any: where it may choose among
// this one alone, it has none.
func TestHoldKeepsOthersAway(t *testing.T) {
	h := assert.Of(Hold()).OK(t)
	defer h.Close()
	_, port, err := net.SplitHostPort(h.Addr)
	assert.OK(t, err)
	n := assert.Of(net.LookupPort("tcp", port)).OK(t)
	for _, reuse := range []int{0, 1} {
		fd := assert.Of(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)).OK(t)
		defer unix.Close(fd)
		assert.OK(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, reuse))
		const localPortRange = 51 // IP_LOCAL_PORT_RANGE, since Linux 6.3
		if unix.SetsockoptInt(fd, unix.SOL_IP, localPortRange, n|n<<16) == unix.ENOPROTOOPT {
			return
		}
		assert.Is(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.EADDRINUSE, "for any port, reusing", reuse)
	}
}
