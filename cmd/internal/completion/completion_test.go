package completion

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

var known = func() []Command {
	config := Flag{[]string{"--config"}, "host configuration FILE", true}
	flag := func(name string) Flag { return Flag{Names: []string{name}} }
	return []Command{
		{Name: "mount", TakesAddress: true, Flags: []Flag{config, flag("--read-only"), flag("--if-not-mounted")}},
		{Name: "umount", Flags: []Flag{config, {[]string{"--lazy", "-l"}, "take it out of sight", false}}},
		{Name: "registry", Subcommands: []string{"add", "accept"}},
		{Name: "registry add"},
		{Name: "registry accept", TakesAddress: true},
		{Name: "resolve", TakesAddress: true},
		{Name: "store", Subcommands: []string{"read", "state"}},
		{Name: "store read", TakesAddress: true},
		{Name: "store state", Subcommands: []string{"dir", "read"}},
		{Name: "store state read", Flags: []Flag{flag("--backend")}},
	}
}()

// What bash offers after some words, by running the script in it.
func TestBashCompletion(t *testing.T) {
	tier.RequireTools(t, "bash")
	bash, err := exec.LookPath("bash")
	assert.OK(t, err)
	var script bytes.Buffer
	assert.OK(t, Bash(&script, known))
	name := filepath.Join(t.TempDir(), "completion")
	assert.OK(t, os.WriteFile(name, script.Bytes(), 0o600))
	for _, tt := range []struct {
		line string // the last word is the one to complete
		has  string
		not  string
	}{
		{"wsmount @ ac", "acme/notes", "@acme/notes"}, // where bash breaks words at an @
		{"wsmount mou", "mount", "umount"},
		{"wsmount mount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount @a/b /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ./ws /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ws/WORKSPACE.md /mnt --", "--if-not-mounted", "umount"},
		{"wsmount --config /etc/c.yaml umo", "umount", "--read-only"},
		{"wsmount --config /etc/c.yaml umount --", "--lazy", "--read-only"},
		{"wsmount registry a", "add", "mount"},
		{"wsmount @ac", "@acme/notes", "@you/other"},
		{"wsmount registry accept @", "@you/other", "accept"},
		{"wsmount resolve ''", "@you/other", "mount"},
		{"wsmount umount ''", "--lazy", "@acme/notes"},
		{"wsmount store s", "state", "store"},
		{"wsmount store state ''", "read", "state"},
		{"wsmount store state read atlas --", "--backend", "read"},
		{"wsmount store read ''", "@acme/notes", "state"},
		{"wsmount registry accept notes @", "@acme/notes", "accept"}, // an argument is no command
	} {
		breaks := ""
		if strings.Contains(tt.line, "@ ") {
			breaks = "@"
		}
		typed := strings.ReplaceAll(strings.TrimSuffix(tt.line, "''"), "@ ", "@")
		run := "source " + name + "; wsmount() { [[ $* == 'list --quiet' ]] && printf '%s\\n' @acme/notes @you/other; }; COMP_WORDBREAKS=" + breaks + "; " +
			"COMP_LINE=\"" + typed + "\"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(" + tt.line + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _wsmount; printf '%s\\n' \"${COMPREPLY[@]}\""
		out, err := exec.Command(bash, "-c", run).CombinedOutput()
		assert.OK(t, err, out)
		if got := strings.Fields(string(out)); !slices.Contains(got, tt.has) || slices.Contains(got, tt.not) {
			t.Errorf("%s: got %q, want %s and not %s", tt.line, got, tt.has, tt.not)
		}
	}
}
