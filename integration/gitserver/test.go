package gitserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		require(t, "git")
	}
	s, err := Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// require ends a test that lacks a program.
func require(t testing.TB, program string) {
	t.Helper()
	if strings.Contains(os.Getenv("WSMOUNT_REQUIRE"), "all") {
		t.Fatalf("the program %s is missing, and $WSMOUNT_REQUIRE asks for it", program)
	}
	t.Skipf("the program %s is missing: make test installs it", program)
}

// StartSSH serves the repositories over SSH until the test ends, and admits a
// client's key.
func StartSSH(t testing.TB, s *Server) (h *SSH, host, client Key) {
	t.Helper()
	host, client = MakeKey(t, ""), MakeKey(t, "")
	h, err := s.LaunchSSH(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Away)
	h.Admit(client)
	return h, host, client
}

// MakeKey is NewKey for a test.
func MakeKey(t testing.TB, passphrase string) Key {
	t.Helper()
	k, err := NewKey(passphrase)
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
