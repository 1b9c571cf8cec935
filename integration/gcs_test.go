package integration

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// eachGCS runs a test in a bucket of Google Cloud Storage that is the owner's, with the key of
// a service account, and in one that is the host's, with a token. @acme/gcs is there, and
// @acme/shown the same place.
func eachGCS(t *testing.T, test func(t *testing.T, b *bucketStage, s *gcsserver.Server)) {
	for provider, config := range map[string]string{"self-bucket": "kind: gcs, endpoint: %q, credentials_ref: org/acme/gcs, ", "cloud-bucket": ""} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s, w := gcsserver.Start(t), harness.New(t, harness.Options{})
			w.Write("config/key.json", serviceAccount(t), 0o600)
			w.Write("config/token.json", `{"token": "one-that-the-host-was-given"}`, 0o600)
			w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%s 127.0.0.1\" ]\nallow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n"+
				"secrets: { org/acme/gcs: { file: %q, format: json }, gcs-of-the-host: { file: %q, format: json } }\n"+
				"providers: { cloud-bucket: { kind: gcs, endpoint: %q, credentials: gcs-of-the-host, grants: [ { owner: acme, bucket: %s, prefix: team } ] } }\n",
				s.Endpoint, w.Path("config/key.json"), w.Path("config/token.json"), s.Endpoint, gcsserver.Bucket), 0o600)
			if config != "" {
				config = fmt.Sprintf(config, s.Endpoint)
			} else {
				s.Token = "one-that-the-host-was-given"
			}
			for _, slug := range []string{"gcs", "shown"} {
				dir := w.Mkdir("ws-"+slug, 0o755)
				w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, fmt.Sprintf("storage: {inline: {provider: %s, config: {%sbucket: %s, prefix: team/ws}, exclude: [\"**/*.tmp\"]}}\n",
					provider, config, gcsserver.Bucket)), 0o644)
				w.MustRun("registry", "add", dir)
			}
			test(t, &bucketStage{t: t, w: w}, s)
		})
	}
}

// serviceAccount is a key file, of nobody.
func serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	assert.OK(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	assert.OK(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@acme.iam.gserviceaccount.com", "private_key_id": "k1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	assert.OK(t, err)
	return string(text)
}

func TestGCSKeepsATree(t *testing.T) {
	t.Parallel()
	eachGCS(t, func(_ *testing.T, b *bucketStage, s *gcsserver.Server) {
		b.keepsATree(s, "@acme/gcs", "@acme/shown", "--read-only")
	})
}

func TestGCSWithAnotherWriter(t *testing.T) {
	t.Parallel()
	eachGCS(t, func(_ *testing.T, b *bucketStage, s *gcsserver.Server) { b.hasAnotherWriter(s, "@acme/gcs") })
}
