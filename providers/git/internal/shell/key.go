package shell

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// key is the one of the credentials, nil if they have none.
func (s *Server) key(ctx context.Context, p *place) (ssh.Signer, error) {
	var fields map[string]string
	if s.credentials != nil {
		var err error
		if fields, err = s.credentials(ctx); err != nil {
			return nil, &dialogue.Error{Kind: providers.ErrUnauthenticated, Code: "auth", Says: "the credentials cannot be had: " + err.Error(), Err: err}
		}
	}
	if p.login == "" {
		p.login = fields["username"]
	}
	if p.login == "" {
		p.login = usualLogin
	}
	pem := fields["ssh_private_key"]
	if pem == "" {
		pem = onlyOf(fields)
	}
	if pem == "" {
		if fields != nil && s.o.Agent == "" {
			return nil, badKey("the secret has no field ssh_private_key")
		}
		return nil, nil
	}
	return s.ring.open([]byte(pem), fields["ssh_passphrase"])
}

// onlyOf is the value of a secret that has just one, and "" if that is a known field of another
// kind.
func onlyOf(fields map[string]string) string {
	if len(fields) != 1 || fields["token"] != "" || fields["username"] != "" || fields["password"] != "" {
		return ""
	}
	for _, v := range fields {
		return v
	}
	return ""
}

// A ring has the last key that a passphrase opened. Opening is slow by design, a tenth of a
// second of a processor, and every request is a connection of its own. All methods may be used at
// once.
type ring struct {
	mu     sync.Mutex
	of     [sha256.Size]byte // key and passphrase, which are not kept
	signer ssh.Signer
}

// open reads a key. Its errors contain no byte of the key: the library's own errors may show
// some.
func (r *ring) open(pem []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var missing *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return signer, nil
	case !errors.As(err, &missing):
		return nil, badKey("ssh_private_key is no private key that SSH has (a PEM, of OpenSSH or of OpenSSL)")
	case passphrase == "":
		return nil, badKey("ssh_private_key has a passphrase, and there is no field ssh_passphrase")
	}
	of := sha256.Sum256(append(append(slices.Clip(pem), 0), passphrase...))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.signer != nil && r.of == of {
		return r.signer, nil
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase)); err != nil {
		return nil, badKey("ssh_passphrase does not open ssh_private_key")
	}
	r.of, r.signer = of, signer
	return signer, nil
}

func badKey(says string) error {
	return &dialogue.Error{Kind: providers.ErrUnauthenticated, Code: "auth", Says: says}
}
