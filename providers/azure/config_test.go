package azure

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/providers"
)

func TestConfig(t *testing.T) {
	base := map[string]string{"bucket": "files", "endpoint": "https://acme.blob.core.windows.net"}
	least := config{container: "files", endpoint: base["endpoint"]}
	for _, c := range []struct {
		name string
		more map[string]string
		want config
		err  error
	}{
		{"least", nil, least, nil},
		{"all", map[string]string{"kind": "azure", "prefix": "/a/b/", "region": "westeurope", "account_name": "other", "credentials": "none"},
			config{container: "files", endpoint: base["endpoint"], prefix: "a/b/", account: "other", anonymous: true}, nil},
		{"mastra's words", map[string]string{"bucket": "", "container": "files", "accountName": "acme", "endpoint": "", "useDefaultCredential": "false", "displayName": "x"},
			config{container: "files", endpoint: base["endpoint"], account: "acme"}, nil},
		{"s3", map[string]string{"kind": "s3"}, config{}, providers.ErrUnsupported},
		{"the machine's login", map[string]string{"useDefaultCredential": "true"}, config{}, providers.ErrUnsupported},
		{"the machine's login, as cloud-bucket says it", map[string]string{"credentials": "sdk"}, config{}, providers.ErrUnsupported},
		{"no container", map[string]string{"bucket": ""}, config{}, providers.ErrInvalid},
		{"no place", map[string]string{"endpoint": ""}, config{}, providers.ErrInvalid},
		{"misspelt", map[string]string{"prefx": "a"}, config{}, providers.ErrInvalid},
		{"prefix upwards", map[string]string{"prefix": "a/../b"}, config{}, providers.ErrInvalid},
		{"endpoint with a signature", map[string]string{"endpoint": "https://h/?sig=x"}, config{}, providers.ErrInvalid},
		{"credentials", map[string]string{"credentials": "env"}, config{}, providers.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := providers.Settings{Config: maps.Clone(base)}
			maps.Copy(settings.Config, c.more)
			got, _, err := parseConfig(settings, Drivers()[2].Keys)
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestSecrets: of a connection string the endpoints do not count, and the key does before a
// signature.
func TestSecrets(t *testing.T) {
	c := config{endpoint: "https://acme.blob.core.windows.net"}
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
		got, err := secretOf(x.fields, c)
		if err != nil || got != x.want {
			t.Errorf("%v: got %+v, %v", x.fields, got, err)
		}
	}
	if _, err := secretOf(map[string]string{"account_name": "acme"}, c); err == nil {
		t.Error("an account alone is a login")
	}
	if got, want := (secret{signature: "se=2030-01-02T03:04:05Z&sig=x"}).ends(), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC); !got.Equal(want) {
		t.Errorf("a signature ends at %v, want %v", got, want)
	}
	if got := (config{endpoint: "http://127.0.0.1:10000/devstoreaccount1"}).accountOf(); got != "devstoreaccount1" {
		t.Errorf("the account of a path is %q", got)
	}
}

// TestNewLogin: a key that was replaced is asked for again, once.
func TestNewLogin(t *testing.T) {
	f := azureserver.New()
	with := secrets{"account_name": "acme", "account_key": "b2xk"}
	p, err := openFakeErr(t, f, nil, with)
	if err != nil {
		t.Fatal(err)
	}
	with["account_key"] = "bmV3"
	f.Refuse(403, "AuthenticationFailed")
	if _, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()}); err != nil {
		t.Errorf("after a renewal: %v", err)
	}
	f.Refuse(403, "AuthenticationFailed")
	if _, err := p.Stat(t.Context(), loc("a")); !errors.Is(err, providers.ErrUnauthenticated) {
		t.Errorf("without another key: %v", err)
	}
}
