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
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// Two workspaces whose storage is one policy keep their bytes apart in its bucket (AIP-35),
// also when one of them is mounted inside the other.
func TestSharedPolicy(t *testing.T) {
	t.Parallel()
	s, w := gcsserver.Start(t), harness.New(t, harness.Options{})
	s.Token = "one-that-the-host-was-given"
	w.Write("config/token.json", `{"token": "one-that-the-host-was-given"}`, 0o600)
	w.Write("config/wsmount/bucket.STORAGE.md", fmt.Sprintf("---\nschema: storage/v1\nid: \"@acme/bucket\"\nversion: \"1.0.0\"\n"+
		"provider: cloud-bucket\nconfig: {bucket: %s, prefix: team}\n---\n", gcsserver.Bucket), 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("storages: { \"@acme/bucket\": %q }\nallow_endpoints: [ \"%s 127.0.0.1\" ]\n"+
		"secrets: { gcs-of-the-host: { file: %q, format: json } }\n"+
		"providers: { cloud-bucket: { kind: gcs, endpoint: %q, credentials: gcs-of-the-host, grants: [ { owner: acme, bucket: %s, prefix: team } ] } }\n",
		w.Path("config/wsmount/bucket.STORAGE.md"), s.Endpoint, w.Path("config/token.json"), s.Endpoint, gcsserver.Bucket), 0o600)
	for slug, more := range map[string]string{"b-c": "", "b": "metadata: { wsmount: { mounts: [ { at: /inside, source: \"@acme/b-c\" } ] } }\n"} {
		w.Mkdir(slug, 0o755)
		w.Write(slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, "storage: { ref: \"@acme/bucket\" }\n"+more), 0o644)
	}
	for _, slug := range []string{"b-c", "b"} {
		w.MustRun("registry", "add", w.Path(slug))
	}
	assert.Contains(t, w.MustRun("resolve", "--explain", "@acme/b"), "team/acme/b/")

	m := w.Mount("@acme/b")
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "plan"), []byte("of b"), 0o644))
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "inside/plan"), []byte("of b-c"), 0o644))
	m.Stop()
	keys := slices.DeleteFunc(s.Keys(), func(key string) bool { return !strings.HasSuffix(key, "/plan") })
	slices.Sort(keys)
	assert.Slice(t, keys, []string{"team/acme/b-c/plan", "team/acme/b/plan"}, "objects")

	alone := w.Mount("@acme/b-c")
	checkContent(t, filepath.Join(alone.Dir, "plan"), "of b-c")
	alone.Stop()
	m.Start()
	checkContent(t, filepath.Join(m.Dir, "plan"), "of b")
}

// A container that Mastra's configuration names is there with Mastra's key, and is only read
// where that says so.
func TestMastraAzure(t *testing.T) {
	t.Parallel()
	s, w := azureserver.Start(t), harness.New(t, harness.Options{})
	w.Write("config/key", azureserver.AccountKey, 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%s 127.0.0.1\" ]\nsecrets: { azure-storage-key: { file: %q, allow: [\"@acme/*\"] } }\n",
		strings.TrimSuffix(s.Endpoint, "/"+azureserver.Account), w.Path("config/key")), 0o600)
	dir := w.Mkdir("ws", 0o755)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/shown", fmt.Sprintf("storage: {inline: {provider: mastra-azure, config: {container: %s, accountName: %s, "+
		"endpoint: %q, prefix: team/ws, readOnly: true}, auth: {state: {env: [AZURE_STORAGE_KEY]}}}}\n", azureserver.Container, azureserver.Account, s.Endpoint)), 0o644)
	w.MustRun("registry", "add", dir)
	s.Put("team/ws/plan", "theirs", nil)
	m := w.Mount("@acme/shown")
	checkContent(t, m.Dir+"/plan", "theirs")
	assert.Is(t, os.WriteFile(m.Dir+"/plan", []byte("ours"), 0o644), syscall.EROFS, "write")
}

// mountVault mounts a workspace that lies in a vault.
func mountVault(t *testing.T) (w *harness.World, m *harness.Mount, vault string) {
	t.Helper()
	w = harness.New(t, harness.Options{})
	vault = w.Mkdir("vault", 0o755)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ \""+vault+"\" ]\n", 0o600)
	dir := w.Mkdir("ws", 0o755)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/memory", "storage: {inline: {provider: vault, config: {vault_path: \""+vault+"\"}}}\n"), 0o644)
	w.MustRun("registry", "add", dir)
	return w, w.Mount("@acme/memory"), vault
}

// What is written in the mount is in the vault when close returns, and what another
// program writes there is in the mount.
func TestVault(t *testing.T) {
	t.Parallel()
	_, m, vault := mountVault(t)
	assert.OK(t, os.Mkdir(m.Dir+"/projects", 0o755))
	assert.OK(t, os.WriteFile(m.Dir+"/projects/plan.md", []byte("ours\n"), 0o644))
	checkContent(t, vault+"/projects/plan.md", "ours\n")
	assert.OK(t, os.WriteFile(vault+"/note.md", []byte("theirs\n"), 0o644))
	harness.Eventually(t, "another program's file is in the mount", func() bool {
		text, err := os.ReadFile(m.Dir + "/note.md")
		return err == nil && string(text) == "theirs\n"
	})
	assert.OK(t, os.Rename(m.Dir+"/note.md", m.Dir+"/projects/note.md"))
	harness.Eventually(t, "the new name is in the vault", func() bool {
		_, err := os.Stat(vault + "/projects/note.md")
		return err == nil
	})
}

// Copies that a replication left of conflicts are told and listed, wherever they are, and
// hold nothing up.
func TestVaultConflictCopies(t *testing.T) {
	t.Parallel()
	w, m, vault := mountVault(t)
	assert.False(t, strings.Contains(w.MustRun("status", m.Dir), "replication"), "status tells of copies that are not there")
	assert.OK(t, os.MkdirAll(vault+"/projects/a", 0o755))
	for _, name := range []string{"note (Ann's conflicted copy 2026-01-31).md", "projects/a/plan.sync-conflict-20260131-120000-ABCDEFG.md", "projects/plan.md"} {
		assert.OK(t, os.WriteFile(vault+"/"+name, []byte("x"), 0o644))
	}
	assert.Contains(t, w.MustRun("status", m.Dir), "2 copies that a replication kept")
	list := w.MustRun("conflicts", "list", m.Dir, "--json")
	assert.Contains(t, list, "note (Ann's conflicted copy 2026-01-31).md")
	assert.Contains(t, list, "projects/a/plan.sync-conflict-20260131-120000-ABCDEFG.md")
	assert.False(t, strings.Contains(list, "projects/plan.md"), "listed:", list)
	m.Stop()
}
