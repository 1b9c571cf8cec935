package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// Of a host configuration everything is said that is wrong, from its top to its end.
func TestConfiguration(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	text := "workspaces: { acme/ops: /x }\nallow_path: [ /srv ]\nsecrets:\n  a: { value: x }\n  b: { env: B, file: /b }\nprincipal: bob\nsearch_path: [ ~/w ]\n"
	assert.OK(t, os.WriteFile(name, []byte(text), 0o644))
	got, found, err := File(name, Options{Home: "/home/ann"})
	assert.OK(t, err)
	assert.Equal(t, got, name)
	var lines []string
	for _, f := range found {
		assert.Equal(t, f.File, name)
		lines = append(lines, f.String()[len(name)+1:])
	}
	for i, want := range []string{"1:", "2:1: error: unknown key \"allow_path\"", "4:", "4:", "5:", "6:"} {
		assert.True(t, i < len(lines) && strings.HasPrefix(lines[i], want), want, strings.Join(lines, "\n"))
	}
	assert.Equal(t, len(lines), 6, lines)
}

func TestFacts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "facts.yaml")
	assert.OK(t, os.WriteFile(name, []byte("mfa: yesterday\naddress: [ 10.0.0.1 ]\n"), 0o644))
	_, found, err := File(name, Options{})
	assert.OK(t, err)
	assert.Equal(t, len(found), 2, found)
	assert.Contains(t, found[0].String(), name+":1:", found)
}

// What a mount would refuse is found before: a limit for which nothing would be counted, and
// commits without an author.
func TestWhatAMountRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "WORKSPACE.md")
	for storage, want := range map[string]int{"local-fs, config: { mount_path: . }": 1, "github, config: { owner: a, repo: b, branch: main }": 0} {
		assert.OK(t, os.WriteFile(name, []byte("---\nschema: workspace/v1\nid: \"@acme/x\"\nversion: 1.0.0\nname: X\nowner: { type: user, id: i, slug: acme }\nstorage: { inline: { provider: "+storage+
			" } }\npolicy: { schema: policy/v1, limits: [ { kind: rate-pushes, value: 1, per: day, applies_to: [ \"storage:push\" ] } ] }\n---\n"), 0o644))
		_, found, err := File(name, Options{})
		assert.OK(t, err)
		assert.Equal(t, found.Has("no-author"), want == 0, storage)
		found = found.Filter(mountspec.Error)
		assert.Equal(t, len(found), want, found)
		for _, f := range found {
			assert.Contains(t, f.String(), name+":8:", f)
		}
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "WORKSPACE.md"), []byte("---\n---\n"), 0o644))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "notes.md"), nil, 0o644))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "large.yml"), []byte(strings.Repeat("#", 1<<20)+"\n#"), 0o644))
	name, found, err := File(dir, Options{})
	assert.OK(t, err)
	assert.Equal(t, name, filepath.Join(dir, "WORKSPACE.md"))
	assert.True(t, found.Err() != nil, found)
	for arg, code := range map[string]exit.Code{"@acme/app": exit.Usage, dir + "/notes.md": exit.Usage, dir + "/none.yaml": exit.Unresolvable, dir + "/large.yml": exit.Manifest} {
		_, _, err := File(arg, Options{})
		assert.Equal(t, exit.From(err).Code, code, arg, err)
	}
	for arg, says := range map[string]string{dir + "/large.yml": "large.yml has more than 1048576 bytes", dir + "/none.yaml": dir + "/none.yaml: no such file"} {
		_, _, err = File(arg, Options{})
		assert.Contains(t, err.Error(), says)
	}
}
