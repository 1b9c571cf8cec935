package shell

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// Codes of the refusals of a server's key.
const (
	CodeUnknown = "host-key-unknown"
	CodeChanged = "host-key-changed"
	CodeRevoked = "host-key-revoked"
)

// known are the entries of one server in the files of known hosts, read anew for each connection:
// a new entry counts at once.
type known struct {
	place      place
	files      []string // all that were to be read
	check      ssh.HostKeyCallback
	algorithms []string        // those of the keys that are known; nil: any
	refused    *dialogue.Error // the reason why the last key was not believed
}

func readKnown(p place, files []string) (*known, error) {
	k := &known{place: p, files: files}
	var there []string
	authority := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &dialogue.Error{Kind: providers.ErrPermission, Code: CodeUnknown, Says: "the known hosts cannot be read: " + err.Error()}
		}
		authority = authority || bytes.Contains(b, []byte("@cert-authority"))
		there = append(there, f)
	}
	var err error
	if k.check, err = knownhosts.New(there...); err != nil {
		return nil, &dialogue.Error{Kind: providers.ErrPermission, Code: CodeUnknown, Says: "the known hosts cannot be read: " + err.Error()}
	}
	k.algorithms = algorithms(k.keys(), authority)
	return k, nil
}

// keys are the known keys of the server. The library lists them in its error for a wrong key.
func (k *known) keys() []knownhosts.KnownKey {
	var e *knownhosts.KeyError
	if errors.As(k.check(k.place.addr(), &net.TCPAddr{}, noKey{}), &e) {
		return e.Want
	}
	return nil
}

// noKey is a key that no server has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// certified are the algorithms of keys that an authority signed.
var certified = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}

// algorithms makes a server show a key that is known and not another one, which would look like a
// changed one.
func algorithms(keys []knownhosts.KnownKey, authority bool) []string {
	if len(keys) == 0 {
		return nil
	}
	var out []string
	if authority {
		out = slices.Clone(certified)
	}
	for _, k := range keys {
		add := []string{k.Key.Type()}
		if k.Key.Type() == ssh.KeyAlgoRSA {
			add = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, a := range add {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// believe decides about the key that the server shows and has proved to own.
func (k *known) believe(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := k.check(addr, remote, key)
	if err == nil {
		return nil
	}
	k.refused = k.explain(key, err)
	return k.refused
}

func (k *known) explain(key ssh.PublicKey, err error) *dialogue.Error {
	shown := fmt.Sprintf("%s shows the key %s (%s)", k.place.addr(), ssh.FingerprintSHA256(key), key.Type())
	e := &dialogue.Error{Kind: providers.ErrPermission, Code: CodeUnknown, Err: err,
		Do: "compare the fingerprint with the one that the server's owner publishes, before you believe it"}
	var is *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &revoked):
		e.Code, e.Says = CodeRevoked, fmt.Sprintf("%s, which %s:%d revokes", shown, revoked.Revoked.Filename, revoked.Revoked.Line)
		e.Do = "do not use this server until its owner says why"
	case errors.As(err, &is) && len(is.Want) > 0:
		w := is.Want[0]
		e.Code, e.Says = CodeChanged, fmt.Sprintf("%s, and %s:%d knows it by %s: somebody may be in between; if the server has a new key, remove that line and add what `%s` prints",
			shown, w.Filename, w.Line, ssh.FingerprintSHA256(w.Key), k.scan())
	case errors.As(err, &is) && len(k.files) == 0:
		e.Says = shown + ", and no file of known hosts is named"
	case errors.As(err, &is):
		e.Says = fmt.Sprintf("%s, which is in none of %s; if it is the right one, add what `%s` prints to one of them", shown, strings.Join(k.files, ", "), k.scan())
	default: // a certificate that does not hold
		e.Says = shown + ", which is not to be believed: " + err.Error()
	}
	return e
}

// scan is the command that prints the keys of the server.
func (k *known) scan() string {
	if k.place.port == "22" {
		return "ssh-keyscan " + k.place.host
	}
	return "ssh-keyscan -p " + k.place.port + " " + k.place.host
}
