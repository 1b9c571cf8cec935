package integration

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

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

// While another program holds the vault's lock, nothing is written, and then it is.
func TestVaultLocked(t *testing.T) {
	t.Parallel()
	w, m, vault := mountVault(t)
	lock := w.Mkdir(fmt.Sprintf("home/.cache/agentm/locks/%x/lock", sha256.Sum256([]byte(vault))), 0o700)
	cmd := w.Command(t.Context(), "sh", "-c", `printf ours >"$1"/note.md`, "sh", m.Dir)
	assert.OK(t, cmd.Start())
	harness.Eventually(t, "the content is on its way", func() bool {
		names, err := filepath.Glob(vault + "/note.md.*.tmp")
		return err == nil && len(names) == 1
	})
	entries, err := os.ReadDir(vault)
	assert.OK(t, err)
	for _, e := range entries {
		assert.True(t, strings.HasSuffix(e.Name(), ".tmp"), "written while another held the lock:", e.Name())
	}
	assert.OK(t, os.Remove(lock))
	assert.OK(t, cmd.Wait())
	checkContent(t, vault+"/note.md", "ours")
}
