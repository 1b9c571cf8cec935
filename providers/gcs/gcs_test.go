package gcs

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// Provider is what a driver opens.
type Provider = bucket.Opened[*store]

// openFake opens a bucket below the prefix "pre".
func openFake(t providertest.T, f *gcsserver.Server, config map[string]string) *Provider {
	t.Helper()
	return assert.Of(openFakeErr(t, f, providers.Settings{Config: config})).OK(t, "open")
}

func openFakeErr(t providertest.T, f *gcsserver.Server, s providers.Settings) (*Provider, error) {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	config := map[string]string{"kind": "gcs", "bucket": gcsserver.Bucket, "endpoint": server.URL, "prefix": "pre", "credentials": "none"}
	for name, value := range s.Config {
		config[name] = value
	}
	s.Config = config
	p, err := Drivers()[1].Open(t.Context(), s)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { p.Close() })
	return p.(*Provider), nil
}

func loc(s string) providers.Locator { return providers.MustLocator(s) }

func secret(fields map[string]string) func(context.Context) (map[string]string, error) {
	return func(context.Context) (map[string]string, error) { return fields, nil }
}

// What is stored here is a place for memory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		f := gcsserver.New()
		return seamtest.Shared(func() seam.Conditional { return seam.New(openFake(t, f, nil)) })
	})
}

// On the service as it documents itself.
func TestContract(t *testing.T) {
	providertest.Run(t, func(t providertest.T) providers.Provider { return openFake(t, gcsserver.New(), nil) })
}

// A page ends wherever it likes.
func TestContractInSmallPages(t *testing.T) {
	providertest.RunVariant(t, func(t providertest.T) providers.Provider {
		f := gcsserver.New()
		f.PageMax, f.Slow = 3, true
		return openFake(t, f, nil)
	})
}
