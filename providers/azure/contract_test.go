package azure

import (
	"context"
	"net/http"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// Provider is what a driver opens.
type Provider = bucket.Opened[*store]

// secrets are credentials that do not change.
type secrets map[string]string

func (s secrets) reveal(context.Context) (map[string]string, error) { return s, nil }

// aKey is one of an account: base64 of nothing in particular.
var aKey = secrets{"account_name": "acme", "account_key": "c2VjcmV0IG9mIG5vYm9keQ=="}

// openFake opens a container in memory.
func openFake(t providertest.T, f http.RoundTripper, config map[string]string) *Provider {
	t.Helper()
	return assert.Of(openFakeErr(t, f, config, aKey)).OK(t, "open")
}

func openFakeErr(t providertest.T, f http.RoundTripper, config map[string]string, with secrets) (*Provider, error) {
	s := providers.Settings{
		Config:      map[string]string{"kind": "azure", "bucket": "files", "endpoint": "http://fake.invalid/acme", "prefix": "pre"},
		Credentials: with.reveal, Transport: f,
	}
	for key, value := range config {
		s.Config[key] = value
	}
	p, err := Drivers()[1].Open(t.Context(), s)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { p.Close() })
	return p.(*Provider), nil
}

// What is stored here is a place for memory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		f := azureserver.New()
		return seamtest.Shared(func() seam.Conditional { return seam.New(openFake(t, f, nil)) })
	})
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t providertest.T) providers.Provider { return openFake(t, azureserver.New(), nil) })
}
