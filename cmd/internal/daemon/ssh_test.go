package daemon

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/providers"
)

// A grant is of a scheme: a service that is listed for http is not reached by
// another protocol at the same place.
func TestDialIsGranted(t *testing.T) {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	defer l.Close()
	addr := l.Addr().String()
	for _, c := range []struct {
		listed, origin string
		ok             bool
	}{
		{"ssh://" + addr, "ssh://" + addr, true},
		{"http://" + addr, "ssh://" + addr, false},
		{"git://" + addr, "git://" + addr, true},
		{"http://" + addr, "git://" + addr, false},
		{"ssh://" + addr, "git://" + addr, false},
		{"git://" + addr, "ssh://" + addr, false},
		{"git://git.acme.test", "git://" + addr, false},
		{"ssh://git.acme.test:22", "ssh://" + addr, false},
		{"ssh://localhost:22", "ssh://" + strings.Replace(addr, "127.0.0.1", "localhost", 1), false},
	} {
		guard := assert.Of(netguard.New(netguard.Options{Allow: []string{c.listed}})).OK(t)
		conn, err := guarded(guard)(t.Context(), c.origin)
		if conn != nil {
			conn.Close()
		}
		denied := errors.Is(err, providers.ErrPermission) && errors.Is(err, netguard.ErrDenied)
		assert.True(t, (err == nil) == c.ok && denied != c.ok, c.origin, "with", c.listed, "listed", err)
	}
}
