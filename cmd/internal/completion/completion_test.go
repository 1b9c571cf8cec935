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
	config := Flag{[]string{"--config"}, "host configuration FILE", true, "FILE"}
	flag := func(name string) Flag { return Flag{Names: []string{name}} }
	return []Command{
		{Name: "mount", Args: "WORKSPACE MOUNTPOINT", Flags: []Flag{config, flag("--read-only"), flag("--if-not-mounted"), {[]string{"--log-level"}, "", true, "LEVEL"}}},
		{Name: "umount", Args: "MOUNTPOINT", Flags: []Flag{config, {[]string{"--lazy", "-l"}, "take it out of sight", false, ""}}},
		{Name: "event", Args: "MOUNTPOINT EVENT | MOUNTPOINT --follow [EVENT]"},
		{Name: "restore", Args: "MOUNTPOINT PATH", Flags: []Flag{{[]string{"--to"}, "", true, "STATE"}}},
		{Name: "recover", Args: "[list|upload] [WORKSPACE|STATEDIR] [DIR|PATH...]"},
		{Name: "init", Args: "[DIR]", Flags: []Flag{{[]string{"--from"}, "", true, "TEMPLATE"}}},
		{Name: "exec", Args: "WORKSPACE -- CMD [ARG ...]"},
		{Name: "help", Args: "[COMMAND ... | config | manifest]"},
		{Name: "registry", Subcommands: []string{"add", "accept"}},
		{Name: "registry add", Args: "[PATH | PLACE]"},
		{Name: "registry accept", Args: "ADDRESS"},
		{Name: "store", Subcommands: []string{"read", "state"}},
		{Name: "store read", Args: "[WORKSPACE] LOCATOR"},
		{Name: "store state", Subcommands: []string{"dir", "read"}},
		{Name: "store state read", Flags: []Flag{flag("--backend")}},
	}
}()

var sources = Sources{
	Words:     map[string][]string{"EVENT": {"turn-start", "turn-end"}, "LEVEL": {"debug", "info"}, "STATE": {"turn:", "commit:"}},
	Addresses: func() []string { return []string{"@acme/notes", "@you/other"} },
	Mounts:    func() []string { return []string{"/mnt/ws"} },
	Paths: func(mount, begins string) []string {
		return []string{mount + " has docs/", begins + "plan.md", "docs/two\nlines"}
	},
}

// What is offered after some words; "FILES" are names of files.
func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		line string
		has  string
		not  string
	}{
		{"wsmount mou", "mount", "umount"},
		{"sudo -u ann wsmount mou", "mount", "umount"},
		{"wsmount ", "@acme/notes", "FILES"},
		{"wsmount ", "registry", "registry add"},
		{"wsmount ./w", "FILES", "mount"},
		{"wsmount mount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount mount @a/b ", "FILES", "/mnt/ws"},
		{"wsmount @a/b /mnt --read", "--read-only", "--lazy"},
		{"wsmount @a/b /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ./ws /mnt --", "--if-not-mounted", "umount"},
		{"wsmount ws/WORKSPACE.md /mnt --", "--if-not-mounted", "umount"},
		{"wsmount @a/b /mnt --log-level ", "debug", "FILES"},
		{"wsmount @a/b /mnt --log-level=i", "--log-level=info", "info"},
		{"wsmount --config ", "FILES", "mount"},
		{"wsmount --config /etc/c.yaml umo", "umount", "--read-only"},
		{"wsmount --config /etc/c.yaml umount --", "--lazy", "--read-only"},
		{"wsmount registry a", "add", "mount"},
		{"wsmount registry add ", "FILES", "add"},
		{"wsmount init ./x --from ", "@acme/notes", "--from"},
		{"wsmount init ./x --from @acme/notes --", "--from", "@acme/notes"},
		{"wsmount @ac", "@acme/notes", "@you/other"},
		{"wsmount registry accept @", "@you/other", "accept"},
		{"wsmount registry accept notes ", "", "@acme/notes"},
		{"wsmount umount ", "/mnt/ws", "@acme/notes"},
		{"wsmount umount /mnt/ws ", "", "/mnt/ws"},
		{"wsmount event /mnt/ws turn-", "turn-end", "/mnt/ws"},
		{"wsmount restore '/mnt/my ws' ", "/mnt/my ws has docs/", "FILES"},
		{"wsmount restore /mnt/ws docs/", "docs/plan.md", "docs/two\nlines"},
		{"wsmount restore /mnt/ws f --to t", "turn:", "commit:"},
		{"wsmount recover ", "upload", "@acme/notes"},
		{"wsmount recover upload ", "@you/other", "upload"},
		{"wsmount recover export @a/b x y ", "FILES", "upload"},
		{"wsmount exec @a/b -- ma", "FILES", "--help"},
		{"wsmount help ", "config", "FILES"},
		{"wsmount help ", "umount", "store read"},
		{"wsmount store s", "state", "store"},
		{"wsmount store state ", "read", "state"},
		{"wsmount store state read atlas --", "--backend", "read"},
		{"wsmount store read ", "@acme/notes", "state"},
		{"wsmount --v", "--version", "mount"},
		{"", "mount", "FILES"},
	} {
		a := Complete(tt.line, known, sources)
		got := []string{}
		for _, w := range a.Words {
			got = append(got, w.Text)
		}
		if a.Files {
			got = append(got, "FILES")
		}
		if tt.has != "" && !slices.Contains(got, tt.has) || slices.Contains(got, tt.not) || tt.has == "" && len(got) > 0 {
			t.Errorf("%q: got %q, want %q and not %q", tt.line, got, tt.has, tt.not)
		}
	}
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"": {""}, "a": {"a"}, "a ": {"a", ""}, "a  b": {"a", "b"}, `a\ b "c d" 'e\ f' "g`: {"a b", "c d", `e\ f`, "g"}, "'' x": {"", "x"},
	} {
		assert.Slice(t, split(line), want, line)
	}
}

// What bash makes of an answer, by running the script in it, and zsh, where there is one.
func TestBashCompletion(t *testing.T) {
	tier.RequireTools(t, "bash")
	shells := map[string]string{"bash": ""}
	if _, err := exec.LookPath("zsh"); err == nil {
		shells["zsh"] = "setopt ksharrays; autoload -U +X bashcompinit && bashcompinit; compdef() { :; }; "
	}
	var script bytes.Buffer
	assert.OK(t, Bash(&script))
	dir := t.TempDir()
	name := filepath.Join(dir, "completion")
	assert.OK(t, os.WriteFile(name, script.Bytes(), 0o600))
	for _, tt := range []struct{ words, line, answer, want string }{
		{"wsmount mou", "wsmount mou", `mount\tmount it\n`, "mount"},
		{"wsmount @ ac", "wsmount @ac", `@acme/notes\t\n`, "acme/notes"},
		{"wsmount restore m f --to turn :", "wsmount restore m f --to turn:", `turn:7\t\nturn:8\t\n`, "7|8"},
		{"wsmount log m 'a b'", "wsmount log m a b", `a b/\t\n`, "a b/"},
		{"wsmount validate comp", "wsmount validate comp", `\n`, "completion"},
	} {
		run := "source " + name + "; wsmount() { [[ $1 == completion && $2 == words && $4 == '" + tt.line + "' ]] && printf '" + tt.answer + "'; }; " +
			"COMP_WORDBREAKS='@:='; COMP_LINE='" + tt.line + "'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(" + tt.words + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _wsmount; IFS='|'; printf '%s\\n' \"${COMPREPLY[*]}\""
		for shell, begin := range shells {
			var said strings.Builder
			cmd := exec.Command(shell, "-c", begin+run)
			cmd.Dir, cmd.Stderr = dir, &said
			out := assert.Of(cmd.Output()).OK(t, shell, tt.line, said.String())
			assert.Equal(t, strings.TrimSpace(string(out)), tt.want, shell, tt.line, said.String())
		}
	}
}
