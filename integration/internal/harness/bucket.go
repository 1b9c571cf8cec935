package harness

import (
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/integration/s3server"
)

// Grant lets the world's workspaces reach a bucket server at some endpoints, with
// write-back, and hands out its secrets.
func (w *World) Grant(s *s3server.Server, endpoints ...string) {
	w.t.Helper()
	w.Login(s, s.SecretKey)
	var all []string
	for _, e := range endpoints {
		all = append(all, fmt.Sprintf("\"%s 127.0.0.1\"", e))
	}
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ %s ]\nallow_write_back: [ \"@acme/*\" ]\nsecrets: { org/acme/s3: { file: %q, format: json } }\n",
		strings.Join(all, ", "), w.Path("config/login.json")), 0o600)
}

// Login writes the secrets that wsmount is given.
func (w *World) Login(s *s3server.Server, secretKey string) {
	w.t.Helper()
	w.Write("config/login.json", fmt.Sprintf("{%q: %q, %q: %q}", "access_key_id", s.AccessKey, "secret_access_key", secretKey), 0o600)
}

// BucketWorkspace registers @acme/slug; where is what the config of its storage
// says beside the endpoint and the credentials, and sync is YAML of its sync
// block, if any.
func (w *World) BucketWorkspace(slug, endpoint, where, sync string) {
	w.t.Helper()
	if sync != "" {
		sync = ", sync: {" + sync + "}"
	}
	dir := w.Mkdir("ws-"+slug, 0o755)
	w.Write("ws-"+slug+"/WORKSPACE.md", Manifest("@acme/"+slug, fmt.Sprintf("storage: {inline: {provider: self-bucket, config: "+
		"{kind: s3, endpoint: %q, %s, credentials_ref: org/acme/s3}%s}}\n", endpoint, where, sync)), 0o644)
	w.MustRun("registry", "add", dir)
}
