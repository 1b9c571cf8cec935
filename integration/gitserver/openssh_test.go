package gitserver

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/wsmount/wsmount/integration/assert"
)

// A client that keeps its connection does not keep the server, whose end a test waits for.
func TestOpenSSHEndsWithItsTest(t *testing.T) {
	host, client := MakeKey(t), MakeKey(t)
	var kept *ssh.Client
	t.Run("server", func(t *testing.T) {
		addr, root := StartOpenSSH(t, host, client)
		login, _, _ := strings.Cut(strings.TrimPrefix(root, "ssh://"), "@")
		kept = assert.Of(ssh.Dial("tcp", addr, &ssh.ClientConfig{User: login, Auth: []ssh.AuthMethod{ssh.PublicKeys(client.signer)},
			HostKeyCallback: ssh.FixedHostKey(host.Public)})).OK(t)
	})
	assert.True(t, kept.Wait() != nil, "the connection lives on")
}
