package gitserver

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	tier.RequireTools(t, "git")
	s, err := Launch(testrun.InMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// StartAPI has a server answer for pull requests. In make soak what is asked and
// answered is held to GitHub's own description; in make test nothing is fetched for it.
func (s *Server) StartAPI(t testing.TB) *API {
	t.Helper()
	d, err := described()
	if errors.Is(err, fs.ErrNotExist) {
		tier.Require(t, err.Error(), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.startAPI(t, d)
}

// StartSSH serves the repositories over SSH until the test ends, and admits a
// client's key.
func StartSSH(t testing.TB, s *Server) (h *SSH, host, client Key) {
	t.Helper()
	host, client = MakeKey(t), MakeKey(t)
	h, err := s.LaunchSSH(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Away)
	h.Admit(client)
	return h, host, client
}

// StartDaemon serves the repositories over git:// until the test ends; more is
// further options of the program.
func StartDaemon(t testing.TB, s *Server, more ...string) *Daemon {
	t.Helper()
	d, err := s.LaunchDaemon(more...)
	tier.Require(t, "git daemon", !errors.Is(err, fs.ErrNotExist))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Away)
	return d
}

// MakeKey is NewKey for a test.
func MakeKey(t testing.TB) Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// MakeECDSAKey is NewECDSAKey for a test.
func MakeECDSAKey(t testing.TB) Key {
	t.Helper()
	k, err := NewECDSAKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// StartAgent is LaunchAgent until the test ends.
func StartAgent(t testing.TB, k Key) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wsmount-agent") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	socket = dir + "/agent"
	stop, err := LaunchAgent(socket, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); os.RemoveAll(dir) })
	return socket
}
