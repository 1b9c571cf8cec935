package gitserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// A Key is one of a client or of a server.
type Key struct {
	PEM    string // the private one
	Public ssh.PublicKey

	signer  ssh.Signer
	private crypto.PrivateKey
}

// NewKey makes an Ed25519 key.
func NewKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	return keyOf(private)
}

// NewECDSAKey makes a key of another kind.
func NewECDSAKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, err
	}
	return keyOf(private)
}

// Closed is the private key as OpenSSH keeps it in a file of a passphrase, with one round
// of what makes it slow to guess, and to open.
func (k Key) Closed(ctx context.Context, passphrase string) (text string, err error) {
	dir, err := os.MkdirTemp("", "wsmount-key")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte(k.PEM), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-p", "-a", "1", "-P", "", "-N", passphrase, "-f", file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("ssh-keygen: %w\n%s", err, out)
	}
	closed, err := os.ReadFile(file)
	return string(closed), err
}

func keyOf(private crypto.PrivateKey) (Key, error) {
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return Key{}, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return Key{}, err
	}
	return Key{PEM: string(pem.EncodeToMemory(block)), Public: signer.PublicKey(), signer: signer, private: private}, nil
}

// Authorized is the key's line in a file of authorized keys.
func (k Key) Authorized() string { return string(ssh.MarshalAuthorizedKey(k.Public)) }

// Fingerprint is how people name the key.
func (k Key) Fingerprint() string { return ssh.FingerprintSHA256(k.Public) }

// Known is the line by which a file of known hosts knows the key at an address.
func (k Key) Known(addr string) string { return knownhosts.Line([]string{addr}, k.Public) + "\n" }

// LaunchAgent is an ssh-agent that has a key, at a Unix socket, until stop is called.
func LaunchAgent(socket string, k Key) (stop func(), err error) {
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: k.private}); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", socket) // it ends with stop
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = agent.ServeAgent(ring, conn) // until the client is gone
			}()
		}
	}()
	return func() { l.Close() }, nil
}
