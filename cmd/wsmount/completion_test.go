package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What bash offers after some words, by running the script in it.
func TestBashCompletion(t *testing.T) {
	tier.RequireTools(t, "bash")
	bash, err := exec.LookPath("bash")
	assert.OK(t, err)
	var script bytes.Buffer
	assert.OK(t, bashCompletion(&script))
	name := filepath.Join(t.TempDir(), "completion")
	assert.OK(t, os.WriteFile(name, script.Bytes(), 0o600))
	for _, tt := range []struct {
		line string // the last word is the one to complete
		has  string
		not  string
	}{
		{"wsmount mou", "mount", "umount"},
		{"wsmount mount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount @a/b /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ./ws /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ws/WORKSPACE.md /mnt --", "--if-not-mounted", "umount"},
		{"wsmount --config /etc/c.yaml umo", "umount", "--read-only"},
		{"wsmount --config /etc/c.yaml umount --", "--lazy", "--read-only"},
		{"wsmount registry a", "add", "mount"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			run := "source " + name + "; COMP_WORDS=(" + tt.line + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _wsmount; printf '%s\\n' \"${COMPREPLY[@]}\""
			out, err := exec.Command(bash, "-c", run).CombinedOutput()
			assert.OK(t, err, out)
			if got := strings.Fields(string(out)); !slices.Contains(got, tt.has) || slices.Contains(got, tt.not) {
				t.Errorf("got %q, want %s and not %s", got, tt.has, tt.not)
			}
		})
	}
}
