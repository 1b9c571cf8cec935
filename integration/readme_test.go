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
	text, err := os.ReadFile(path)
	assert.OK(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", path, language)
	}
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
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v\n%s", script, err, out)
		}
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
		if r := w.Run("umount", w.Path("mnt")); r.Code != 0 && strings.Contains(block, "/mnt/ws") {
			t.Errorf("umount after\n%s\n%s", block, r.Err)
		}
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
		if r := w.Run(check...); r.Code != 0 || strings.Contains(r.Err, "warning") {
			t.Errorf("%s\n%s", block, r.Err)
		}
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
		if r := w.Run(words...); r.Code != 0 {
			t.Errorf("%q: exit %d\n%s", words, r.Code, r.Err)
		}
	}
	mount := func(words ...string) {
		t.Helper()
		run(words...)
		if err := os.WriteFile(mnt+"/x", nil, 0o644); (err != nil) != slices.Contains(words, "--read-only") {
			t.Errorf("%q: write: %v", words, err)
		}
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
