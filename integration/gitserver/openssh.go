package gitserver

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
)

// emptyDir is a directory that the server insists on where root runs it, and that its service
// would make: where it is not, the server has it in mounts of its own, which are not to keep
// alive what tests beside it unmount meanwhile.
const emptyDir = "/run/sshd"

// sshdConfig has OpenSSH's server look at nothing outside its directory.
const sshdConfig = `HostKey DIR/host
AuthorizedKeysFile DIR/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AcceptEnv GIT_PROTOCOL
PidFile none
`

// StartOpenSSH runs OpenSSH's own server for each connection to a port of its own
// until the test ends: it admits a key as the user who runs the test, who reaches
// every repository by its path. Without the program the test is skipped. root is a
// URL without a slash at its end.
func StartOpenSSH(t testing.TB, host, client Key) (addr, root string) {
	t.Helper()
	program := sshd(t)
	dir := t.TempDir()
	for name, content := range map[string]string{"host": host.PEM, "authorized": client.Authorized(), "config": strings.ReplaceAll(sshdConfig, "DIR", dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { one(over, t, program, filepath.Join(dir, "config"), conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { l.Close(); end(); running.Wait() })
	return l.Addr().String(), "ssh://" + me.Username + "@" + l.Addr().String()
}

// sshd finds the program where Debian keeps it, which need not be in PATH.
func sshd(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"sshd", "/usr/sbin/sshd"} {
		if program, err := exec.LookPath(name); err == nil { // it runs by its full name alone
			return program
		}
	}
	tier.Require(t, "sshd", false)
	return ""
}

// one serves one connection, as inetd would have it, until ctx ends: a client that keeps it does
// not keep the server.
func one(ctx context.Context, t testing.TB, program, config string, conn *net.TCPConn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _, _ = conn.CloseRead(), conn.CloseWrite() })() // also of who else has it
	f, err := conn.File()
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	var log bytes.Buffer
	command := []string{program, "-i", "-e", "-f", config} // it ends with its connection
	if _, err := os.Stat(emptyDir); err != nil && os.Geteuid() == 0 {
		command = append([]string{"unshare", "--mount", "sh", "-c", "umount -a -i -l -t fuse.wsmount; mount -t tmpfs none /run && mkdir " + emptyDir + ` && exec "$@"`, "sh"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &log
	if err := cmd.Run(); err != nil { // clients may go as they like
		t.Logf("sshd: %v: %s", err, log.String())
	}
}
