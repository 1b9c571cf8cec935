package gcs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// account is a key file of a service account, as a secret has its fields.
func account(t *testing.T) map[string]string {
	t.Helper()
	der := assert.Of(x509.MarshalPKCS8PrivateKey(assert.Of(rsa.GenerateKey(rand.Reader, 2048)).OK(t))).OK(t)
	return map[string]string{
		"type": "service_account", "client_email": "robot@acme.iam.gserviceaccount.com", "private_key_id": "k1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}

func keyFile(t *testing.T) string {
	t.Helper()
	return string(assert.Of(json.Marshal(account(t))).OK(t))
}

// Its key signs tokens, of which the vault hears before they are used.
func TestServiceAccount(t *testing.T) {
	var minted []string
	s := providers.Settings{Config: map[string]string{"credentials": ""}, Credentials: secret(account(t))}
	s.Minted = func(token string) { minted = append(minted, token) }
	f := gcsserver.New()
	p := assert.Of(openFakeErr(t, f, s)).OK(t)
	if _, err := p.Stat(t.Context(), loc("a")); !errors.Is(err, providers.ErrNotExist) || len(minted) != 1 {
		t.Errorf("stat: %v, with %d tokens", err, len(minted))
	}
	parts := strings.Split(minted[0], ".")
	var claims struct{ Iss, Sub, Scope string }
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	want := "robot@acme.iam.gserviceaccount.com"
	assert.True(t, err == nil && claims.Iss == want && claims.Sub == want && claims.Scope == scopeWrite, "claims", claims, err)
}

// Which make a login, and what says that none does. No secret is in it.
func TestCredentials(t *testing.T) {
	broken := account(t)
	broken["private_key"] = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
	for _, c := range []struct {
		name   string
		fields map[string]string
		says   string // "": they do
	}{
		{"account", account(t), ""},
		{"key file", map[string]string{"credentials_file": keyFile(t)}, ""},
		{"path of a key file", map[string]string{"credentials_file": "/etc/c2VjcmV0.json"}, "not its path"},
		{"token", map[string]string{"token": "t"}, ""},
		{"no key", map[string]string{"client_email": "a@b"}, "private_key"},
		{"no account", map[string]string{"private_key": "c2VjcmV0"}, "client_email"},
		{"broken key", broken, "no key"},
		{"no time", map[string]string{"token": "t", "expiration": "soon"}, "RFC 3339"},
	} {
		_, err := openFakeErr(t, gcsserver.New(), providers.Settings{Config: map[string]string{"credentials": ""}, Credentials: secret(c.fields)})
		switch {
		case c.says == "":
			assert.True(t, err == nil, c.name, err)
		case !errors.Is(err, providers.ErrUnauthenticated) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "c2VjcmV0"):
			t.Errorf("%s: %v", c.name, err)
		}
	}
	assert.Is(t, assert.ErrOf(openFakeErr(t, gcsserver.New(), providers.Settings{Config: map[string]string{"credentials": ""}})), providers.ErrUnauthenticated, "without any")
}

// A token that the service does not take any more is replaced, and the body sent again.
func TestLoginIsRenewed(t *testing.T) {
	tokens := []string{"one", "two"}
	f := gcsserver.New()
	f.Token = "one"
	reveal := func(context.Context) (map[string]string, error) {
		given := tokens[0]
		if len(tokens) > 1 {
			tokens = tokens[1:]
		}
		return map[string]string{"token": given}, nil
	}
	p := assert.Of(openFakeErr(t, f, providers.Settings{Config: map[string]string{"credentials": ""}, Credentials: reveal})).OK(t)
	f.Set(func() { f.Token = "two" })
	mustWrite(t, p, "a", "content", providers.WriteOptions{})
	assert.Slice(t, f.Keys(), []string{"pre/a"}, "keys")
	f.Set(func() { f.Token = "three" })
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("a"))), providers.ErrUnauthenticated, "stat")
}

func TestConfig(t *testing.T) {
	for endpoint, want := range map[string]string{"": public, "https://s.example": "https://s.example", "https://s.example/path": ""} {
		got, err := parseConfig(bucket.Place{Endpoint: endpoint})
		assert.Equal(t, got.Endpoint, want, endpoint)
		assert.Equal(t, err == nil, want != "", endpoint)
	}
}
