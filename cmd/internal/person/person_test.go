package person

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Person // zero: refused
	}{
		{"Ann Bo <ann@acme.test>", Person{"Ann Bo", "ann@acme.test"}},
		{`"Bo, Ann" <ann@acme.test>`, Person{"Bo, Ann", "ann@acme.test"}},
		{"Ärmel <a@acme.test>", Person{"Ärmel", "a@acme.test"}},
		{"ann@acme.test", Person{}},
		{"<ann@acme.test>", Person{}},
		{"Ann", Person{}},
		{"Ann <ann@acme.test> more", Person{}},
		{"Ann\n <ann@acme.test>", Person{}},
		{"", Person{}},
	} {
		got, err := Parse(tt.text)
		assert.True(t, got == tt.want && (err == nil) == (tt.want != Person{}), tt.text, got, tt.want, err)
	}
}

// Git's own configuration counts, with what it includes, and a repository's does not.
func TestOfGit(t *testing.T) {
	tier.RequireTools(t, "git")
	testrun.WithoutEnv(t, "GIT_")
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"} {
		t.Setenv(name, value)
	}
	write := func(name, text string) { assert.OK(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600)) }
	for _, tt := range []struct {
		name, config string
		want         Person
	}{
		{"none", "", Person{}},
		{"both", "[user]\nname = Ann Bo\nemail = ann@acme.test\n", Person{"Ann Bo", "ann@acme.test"}},
		{"only a name", "[user]\nname = Ann Bo\n", Person{}},
		{"included", "[include]\npath = more\n", Person{"In", "in@acme.test"}},
		{"no address", "[user]\nname = Ann\nemail = none\n", Person{}},
		{"broken", "[user\n", Person{}},
	} {
		write("more", "[user]\nname = In\nemail = in@acme.test\n")
		write(".gitconfig", tt.config)
		got, ok := OfGit(t.Context())
		assert.Equal(t, got, tt.want, tt.name)
		assert.Equal(t, ok, tt.want != Person{}, tt.name)
	}
	t.Setenv("PATH", home)
	_, ok := OfGit(t.Context())
	assert.False(t, ok, "there is a user, and no git")
}
