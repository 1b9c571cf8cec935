package gitserver

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// An App is a GitHub App with one installation. It mints tokens for who proves to
// have its key, as GitHub does: a JWT of RS256 whose times are whole seconds, not
// in the future, and at most ten minutes apart.
type App struct {
	ID, Installation int64
	Key              string        // the private key, as GitHub hands it out
	Life             time.Duration // of a token

	api *API
	key *rsa.PrivateKey

	mu     sync.Mutex // guards what follows
	tokens []string
	asked  []string // the body of each request
}

// StartApp has the API mint tokens, and the server take them.
func (a *API) StartApp() *App {
	a.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	p := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	app := &App{ID: 4711, Installation: 42, Key: string(p), Life: time.Hour, api: a, key: key}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.app, a.server.app = app, app
	return app
}

// Minted are the tokens, and what was asked for each.
func (a *App) Minted() (tokens, asked []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.tokens...), append([]string{}, a.asked...)
}

func (a *App) minted(token string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tokens {
		if t == token {
			return true
		}
	}
	return false
}

func (a *App) mint(w http.ResponseWriter, r *request) {
	if a == nil {
		answer(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
		return
	}
	if err := a.verify(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "A JSON web token could not be decoded: " + err.Error()})
		return
	}
	if r.call.InPath("installation_id") != fmt.Sprint(a.Installation) {
		answer(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
		return
	}
	var in struct{ Repositories []string }
	r.decode(&in)
	secret := make([]byte, 18)
	rand.Read(secret)
	token := "ghs_" + hex.EncodeToString(secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens, a.asked = append(a.tokens, token), append(a.asked, strings.Join(in.Repositories, ","))
	out := a.api.example(r, http.StatusCreated)
	maps.Copy(out, map[string]any{"token": token, "expires_at": time.Now().Add(a.Life).UTC().Format(time.RFC3339),
		"permissions": map[string]any{"contents": "write", "pull_requests": "write"}, "repository_selection": "selected"})
	delete(out, "repositories") // which nobody asks about
	answer(w, http.StatusCreated, out)
}

// verify checks a JWT.
func (a *App) verify(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	var header struct{ Alg, Typ string }
	var claims struct {
		Iss      string
		Iat, Exp int64 // no fractions: these do not decode
	}
	for i, into := range []any{&header, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return err
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now().Unix()
	switch {
	case header.Alg != "RS256":
		return fmt.Errorf("algorithm %q", header.Alg)
	case rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, sum[:], signature) != nil:
		return fmt.Errorf("the signature is wrong")
	case claims.Iss != fmt.Sprint(a.ID):
		return fmt.Errorf("the issuer is %q", claims.Iss)
	case claims.Iat > now || claims.Exp <= now || claims.Exp-claims.Iat > 600:
		return fmt.Errorf("issued %d s ago, for %d s", now-claims.Iat, claims.Exp-claims.Iat)
	}
	return nil
}
