package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// A tree in a container is the same for whoever mounts it anywhere, after renames and
// deletions too, and its files are blobs of their names; what is excluded is not there.
func TestAzureKeepsATree(t *testing.T) {
	t.Parallel()
	b, s := newAzureStage(t)
	m := b.w.Mount("@acme/azure")
	b.fill(m.Dir)
	assert.OK(t, os.Rename(filepath.Join(m.Dir, "d1"), filepath.Join(m.Dir, "moved")))
	assert.OK(t, os.RemoveAll(filepath.Join(m.Dir, "d2")))
	assert.OK(t, os.Chmod(filepath.Join(m.Dir, "run"), 0o700))
	want := b.lines(m.Dir)
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "own.tmp"), []byte("stays here"), 0o644))
	m.Stop()
	keys := s.Keys()
	if !slices.Contains(keys, "team/ws/run") || slices.Contains(keys, "team/ws/own.tmp") {
		t.Errorf("blobs %q", keys)
	}
	assert.OK(t, os.RemoveAll(b.w.Path("state", "acme"))) // a machine that was never here
	m.Start()
	b.same("on another machine", m.Dir, want)

	shown := b.w.Mount("@acme/shown")
	b.same("to be read", shown.Dir, want)
	checkErr(t, "write", os.WriteFile(filepath.Join(shown.Dir, "run"), []byte("x"), 0o644), syscall.EROFS)
}

// What another program does to a container is seen, and not overwritten unseen.
func TestAzureWithAnotherWriter(t *testing.T) {
	t.Parallel()
	b, s := newAzureStage(t)
	s.Put("team/ws/plan", "base", nil)
	m := b.w.Mount("@acme/azure")
	path := filepath.Join(m.Dir, "plan")
	checkContent(t, path, "base")
	s.Put("team/ws/plan", "next", nil)
	harness.Eventually(t, "the change is there", func() bool {
		content, _ := os.ReadFile(path)
		return string(content) == "next"
	})
	replaceMeanwhile(t, path, "ours", func() { s.Put("team/ws/plan", "theirs at last", nil) })
	harness.Eventually(t, "both versions are there", func() bool {
		var got []string
		copies, _ := filepath.Glob(path + "*")
		for _, one := range copies {
			content, _ := os.ReadFile(one)
			got = append(got, string(content))
		}
		slices.Sort(got)
		return slices.Equal(got, []string{"ours", "theirs at last"})
	})
}
