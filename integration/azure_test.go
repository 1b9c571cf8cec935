package integration

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// newAzureStage makes @acme/azure, a self-bucket of kind azure, and @acme/shown, the same
// place as Mastra's configuration names it, to be read only.
func newAzureStage(t *testing.T) (*bucketStage, *azureserver.Server) {
	t.Helper()
	s, w := azureserver.Start(t), harness.New(t, harness.Options{})
	w.Write("config/login.json", fmt.Sprintf(`{"account_name": %q, "account_key": %q}`, azureserver.Account, azureserver.AccountKey), 0o600)
	w.Write("config/key", azureserver.AccountKey, 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%s 127.0.0.1\" ]\nallow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n"+
		"secrets: { org/acme/azure: { file: %q, format: json }, azure-storage-key: { file: %q, allow: [\"@acme/*\"] } }\n",
		strings.TrimSuffix(s.Endpoint, "/"+azureserver.Account), w.Path("config/login.json"), w.Path("config/key")), 0o600)
	for slug, storage := range map[string]string{
		"azure": fmt.Sprintf("provider: self-bucket, config: {kind: azure, endpoint: %q, bucket: %s, prefix: team/ws, credentials_ref: org/acme/azure}, exclude: [\"**/*.tmp\"]",
			s.Endpoint, azureserver.Container),
		"shown": fmt.Sprintf("provider: mastra-azure, config: {container: %s, accountName: %s, endpoint: %q, prefix: team/ws, readOnly: true}, auth: {state: {env: [AZURE_STORAGE_KEY]}}",
			azureserver.Container, azureserver.Account, s.Endpoint),
	} {
		dir := w.Mkdir("ws-"+slug, 0o755)
		w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, "storage: {inline: {"+storage+"}}\n"), 0o644)
		w.MustRun("registry", "add", dir)
	}
	return &bucketStage{t: t, w: w}, s
}

// A tree in a container is the same for whoever mounts it anywhere, and its files are
// blobs of their names.
func TestAzureKeepsATree(t *testing.T) {
	t.Parallel()
	b, s := newAzureStage(t)
	b.keepsATree(s, "@acme/azure", "@acme/shown")
}

// What another program does to a container is seen, and not overwritten unseen.
func TestAzureWithAnotherWriter(t *testing.T) {
	t.Parallel()
	b, s := newAzureStage(t)
	b.hasAnotherWriter(s, "@acme/azure")
}

// A name that the service would take for another is refused when it is given.
func TestAzureNames(t *testing.T) {
	t.Parallel()
	b, s := newAzureStage(t)
	m := b.w.Mount("@acme/azure")
	assert.OK(t, os.Mkdir(m.Dir+"/a", 0o755))
	assert.OK(t, os.WriteFile(m.Dir+"/a/b", []byte("ours"), 0o644))
	for _, name := range []string{`a\b`, "a."} {
		checkErr(t, "create of "+name, os.WriteFile(m.Dir+"/"+name, []byte("other"), 0o644), syscall.EINVAL)
		checkErr(t, "rename to "+name, os.Rename(m.Dir+"/a/b", m.Dir+"/"+name), syscall.EINVAL)
	}
	m.Stop()
	content, _ := s.Get("team/ws/a/b")
	assert.Equal(t, content, "ours")
}
