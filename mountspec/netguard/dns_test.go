package netguard

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// rebinder is a name server whose answer for every name changes with each
// question: the first A question gets the first address, and so on; the
// last stays.
type rebinder struct {
	mu      sync.Mutex
	answers []netip.Addr
}

func (r *rebinder) next() netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	return a
}

// resolver starts the name server and returns a resolver that asks it.
func (r *rebinder) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	pc := assert.Of(net.ListenPacket("udp", "127.0.0.1:0")).OK(t)
	t.Cleanup(func() { pc.Close() })
	go r.serve(pc)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func (r *rebinder) serve(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		end := 12 // skip the name of the only question
		for end < n && buf[end] != 0 {
			end += int(buf[end]) + 1
		}
		end += 5
		isA := buf[end-3] == 1
		out := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, buf[12:end]...)
		if isA {
			out[7] = 1
			out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			out = append(out, r.next().Unmap().AsSlice()...)
		}
		pc.WriteTo(out, from)
	}
}
