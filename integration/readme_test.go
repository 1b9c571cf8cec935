package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// blocks returns the fenced blocks of a language in a Markdown file.
func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	text := assert.Of(os.ReadFile(path)).OK(t)
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	assert.Must(t, len(found) != 0, path, "has no block of", language)
	return found
}

// readmeWorld is a host with the workspaces that README speaks of, and a PATH
// that has wsmount.
func readmeWorld(t *testing.T) (w *harness.World, sh func(script string)) {
	t.Helper()
	w = harness.New(t, harness.Options{})
	family(t, w, "app", "lib", "marketing-ops")
	w.Mkdir("mnt", 0o755)
	return w, func(script string) {
		t.Helper()
		script = strings.ReplaceAll(script, "/mnt/ws", w.Path("mnt"))
		cmd := w.Command(t.Context(), "sh", "-ec", script)
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(harness.Binary())+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		assert.True(t, err == nil, script, out, err)
	}
}

// Every command that README shows works as it stands there.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	w, sh := readmeWorld(t)
	for _, block := range blocks(t, "../README.md", "sh") {
		if strings.Contains(block, "make ") {
			continue // the Makefile's own, which builds and installs
		}
		sh(block)
		r := w.Run("umount", w.Path("mnt"))
		assert.False(t, r.Code != 0 && strings.Contains(block, "/mnt/ws"), "umount after", block, r.Err)
	}
}

// The configuration and the manifest that README shows are accepted.
func TestReadmeConfiguration(t *testing.T) {
	t.Parallel()
	w, _ := readmeWorld(t)
	w.Mkdir("home/src", 0o755)
	w.Mkdir("shown", 0o755)
	for _, block := range blocks(t, "../README.md", "yaml") {
		check := []string{"registry", "list"}
		if strings.HasPrefix(block, "storage:") {
			check = []string{"validate", "--strict", w.Write("shown/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/shown\"\nversion: \"1.0.0\"\nname: shown\n"+
				"owner: {type: user, id: acme-1, slug: acme}\n"+block+"---\n", 0o644)}
		} else {
			w.Write("config/wsmount/config.yaml", block, 0o600)
		}
		r := w.Run(check...)
		assert.True(t, r.Code == 0 && !strings.Contains(r.Err, "warning"), block, r.Err)
	}
}

// Each synopsis works as it is written most, with its flags behind its arguments; that
// they may stand anywhere is a test of cmd/wsmount, which runs nothing.
func TestSynopses(t *testing.T) {
	t.Parallel()
	w, _ := readmeWorld(t)
	mnt, app := w.Path("mnt"), w.Path("ws-acme-app")
	run := func(words ...string) {
		t.Helper()
		r := w.Run(words...)
		assert.True(t, r.Code == 0, words, "exit", r.Code, r.Err)
	}
	mount := func(words ...string) {
		t.Helper()
		run(words...)
		err := os.WriteFile(mnt+"/x", nil, 0o644)
		assert.True(t, (err != nil) == slices.Contains(words, "--read-only"), words, "write", err)
	}
	for _, words := range [][]string{
		{"validate", app, "--json", "--strict"},
		{"resolve", "@acme/app", "--explain"},
		{"resolve", "@acme/app", "--json"},
		{"doctor", "@acme/app", "--json"},
		{"registry", "list", "--json"},
		{"version", "--json"},
		{"completion", "bash"},
	} {
		run(words...)
	}
	for _, words := range [][]string{
		{"@acme/app", mnt, "--read-only"},
		{app, mnt, "--mount", "at=/lib,source=@acme/lib"},
		{app + "/WORKSPACE.md", mnt, "--trust"},
	} {
		mount(words...)
		run("umount", mnt)
	}
	mount("mount", "@acme/app", mnt, "--read-only", "--json")
	for _, words := range [][]string{
		{"status"},
		{"status", "--all"},
		{"status", mnt},
		{"status", mnt, "--json"},
		{"event", mnt, "turn-start", "--var", "k=v", "--timeout", "2m"},
		{"event", mnt, "turn-end", "--no-wait"},
		{"umount", mnt},
	} {
		run(words...)
	}
}
