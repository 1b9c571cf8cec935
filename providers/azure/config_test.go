package azure

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

func TestConfig(t *testing.T) {
	at := bucket.Place{Bucket: "files", Endpoint: "https://acme.blob.core.windows.net"}
	for _, c := range []struct {
		name string
		get  map[string]string
		at   bucket.Place
		want config
		err  error
	}{
		{"least", nil, at, config{Place: at}, nil},
		{"account", map[string]string{"account_name": "other"}, at, config{at, "other"}, nil},
		{"mastra's words", map[string]string{"accountName": "acme", "useDefaultCredential": "false"}, bucket.Place{Bucket: "files"}, config{at, "acme"}, nil},
		{"the machine's login", map[string]string{"useDefaultCredential": "true"}, at, config{}, providers.ErrUnauthenticated},
		{"the machine's login without TLS", nil, bucket.Place{Endpoint: "http://acme.example", Credentials: "sdk"}, config{}, providers.ErrInvalid},
		{"no place", nil, bucket.Place{Bucket: "files"}, config{}, providers.ErrInvalid},
	} {
		got, err := parseConfig(c.get, c.at)
		assert.Is(t, err, c.err, c.name)
		assert.Equal(t, got, c.want, c.name)
	}
	var advice interface{ Advice() string }
	_, err := parseConfig(map[string]string{"useDefaultCredential": "true"}, at)
	assert.True(t, errors.As(err, &advice) && strings.Contains(advice.Advice(), "AZURE_STORAGE_KEY"), "it says which secret to name")
}

// Of a connection string the endpoints do not count, and the key does before a signature.
func TestSecrets(t *testing.T) {
	c := config{Place: bucket.Place{Endpoint: "https://acme.blob.core.windows.net"}}
	for _, x := range []struct {
		fields map[string]string
		want   secret
	}{
		{map[string]string{"account_key": "a2V5"}, secret{account: "acme", key: "a2V5"}},
		{map[string]string{"account_name": "other", "account_key": "a2V5", "sas_token": "sig=x"}, secret{account: "other", key: "a2V5"}},
		{map[string]string{"sas_token": "?sig=x"}, secret{account: "acme", signature: "sig=x"}},
		{map[string]string{"connection_string": "DefaultEndpointsProtocol=http;AccountName=one;" + "AccountKey=a2V5==;BlobEndpoint=http://evil.test/;"}, secret{account: "one", key: "a2V5=="}},
		{map[string]string{"connection_string": "BlobEndpoint=http://evil.test/;SharedAccessSignature=sv=1&sig=x%3D"}, secret{account: "acme", signature: "sv=1&sig=x%3D"}},
	} {
		assert.Of(secretOf(x.fields, c)).Equal(t, x.want, x.fields)
	}
	assert.True(t, assert.ErrOf(secretOf(map[string]string{"account_name": "acme"}, c)) != nil, "an account alone is a login")
	if got, want := (secret{signature: "se=2030-01-02T03:04:05Z&sig=x"}).ends(), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC); !got.Equal(want) {
		t.Errorf("a signature ends at %v, want %v", got, want)
	}
	assert.Equal(t, (config{Place: bucket.Place{Endpoint: "http://127.0.0.1:10000/devstoreaccount1"}}).accountOf(), "devstoreaccount1", "the account of a path")
}

// The host can give this machine's own login. Its token proves who asks to the container, and to the
// service that reads a source, and is told to whom it may concern.
func TestMachineLogin(t *testing.T) {
	const token = "of-the-machine"
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-IDENTITY-HEADER") == "of-this-test" && r.URL.Query().Get("resource") == "https://storage.azure.com" {
			fmt.Fprintf(w, `{"access_token": %q, "expires_on": "%d", "resource": "https://storage.azure.com", "token_type": "Bearer"}`, token, time.Now().Add(time.Hour).Unix())
		}
	}))
	t.Cleanup(identity.Close)
	testrun.WithoutEnv(t, "AZURE_", "IDENTITY_", "IMDS_", "MSI_")
	t.Setenv("IDENTITY_ENDPOINT", identity.URL)
	t.Setenv("IDENTITY_HEADER", "of-this-test")
	f := azureserver.New()
	f.Bearer = token
	var minted []string
	p := assert.Of(Drivers()[1].Open(t.Context(), providers.Settings{
		Config:    map[string]string{"kind": "azure", "bucket": "files", "endpoint": "https://fake.invalid/acme", "credentials": "sdk"},
		Transport: f, Minted: func(token string) { minted = append(minted, token) },
	})).OK(t).(*Provider)
	t.Cleanup(func() { p.Close() })
	assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})))
	assert.OK(t, assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})))
	assert.Slice(t, minted, []string{token})
	f.Bearer = "another"
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("a"))), providers.ErrUnauthenticated, "with a token that is none any more")
}

// Whoever asks without credentials reads what is public.
func TestAnonymous(t *testing.T) {
	f := azureserver.New()
	f.Public = true
	f.Put("pre/a", "x", nil)
	p := openFake(t, f, map[string]string{"credentials": "none"})
	content, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	assert.True(t, err == nil && string(content) == "x", content, err)
}

// A key that was replaced is asked for again, once.
func TestNewLogin(t *testing.T) {
	f := azureserver.New()
	with := secrets{"account_name": "acme", "account_key": "b2xk"}
	p := assert.Of(openFakeErr(t, f, nil, with)).OK(t)
	with["account_key"] = "bmV3"
	f.Refuse(403, "AuthenticationFailed")
	_, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.True(t, err == nil, "after a renewal", err)
	f.Refuse(403, "AuthenticationFailed")
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("a"))), providers.ErrUnauthenticated, "without another key")
}
