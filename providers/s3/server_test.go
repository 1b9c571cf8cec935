package s3

import (
	"context"
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
	"github.com/wsmount/wsmount/providers/providertest"
)

// world is a running server, and a provider that has probed it.
type world struct {
	kind   s3server.Kind
	server *s3server.Server
	first  *Provider
}

// serverTests run on every kind of server.
var serverTests = map[string]func(t *testing.T, w *world){
	"contract": func(t *testing.T, w *world) {
		providertest.RunVariant(t, func(t providertest.T) providers.Provider { return w.fork(t) })
	},
	"probe":               testProbe,
	"requests":            testRequests,
	"writers-race":        testWritersRace,
	"lost-answers":        testLostAnswers,
	"parts":               testParts,
	"parts-lost-complete": testPartsLostComplete,
	"parts-left":          testPartsLeft,
	"large-bodies":        testLargeBodies,
	"copy":                testCopy,
	"copy-shrunk":         testCopyShrunk,
	"corrupt":             testCorrupt,
	"wrong-login":         testWrongLogin,
}

func TestVersitygw(t *testing.T) { runServer(t, s3server.Versitygw) }

func runServer(t *testing.T, kind s3server.Kind) {
	w := &world{kind: kind, server: s3server.Start(t, kind)}
	w.first = w.open(t, nil, nil)
	t.Logf("%s: %+v", kind, w.first.Store.probe)
	for name, test := range serverTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a prefix of its own
			test(t, w)
		})
	}
}

// secrets are credentials that do not change.
type secrets map[string]string

func (s secrets) reveal(context.Context) (map[string]string, error) { return s, nil }

// settings are for a fresh prefix, with changes.
func (w *world) settings(more map[string]string, transport http.RoundTripper) providers.Settings {
	s := providers.Settings{
		Config:      map[string]string{"kind": "s3", "bucket": w.server.Bucket, "endpoint": w.server.Endpoint, "prefix": "test/" + rand.Text()},
		Credentials: secrets{"access_key_id": w.server.AccessKey, "secret_access_key": w.server.SecretKey}.reveal,
		Transport:   transport,
	}
	for key, value := range more {
		s.Config[key] = value
	}
	return s
}

// open makes a provider as a manifest would.
func (w *world) open(t *testing.T, more map[string]string, transport http.RoundTripper) *Provider {
	t.Helper()
	p := assert.Of(Drivers()[1].Open(t.Context(), w.settings(more, transport))).OK(t)
	t.Cleanup(func() { p.Close() })
	return p.(*Provider)
}

// fork is a provider for a fresh prefix that does not probe again.
func (w *world) fork(t providertest.T) *Provider {
	t.Helper()
	s := w.first.Store
	p, err := bucket.Open(t.Context(), probed{s}, bucket.Options{
		Service: traits, Bucket: s.config.Bucket, Prefix: "test/" + rand.Text() + "/", Logger: s.log, Now: s.now,
	})
	assert.OK(t, err, "open")
	t.Cleanup(func() { p.Close() })
	return &Provider{Provider: p, Store: s}
}

// probed is a store of which it is known what it honours.
type probed struct{ *store }

func (p probed) Honours(context.Context, bucket.Listing) (bucket.Honours, error) {
	return p.probe.Honours, nil
}
