package rowedit

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

func TestAIP34IDIsImmutable(t *testing.T) {
	assert.Is(t, assert.ErrOf(Parse([]string{"name=x", "id=@acme/other"})), ErrID)
}

func TestParseRefuses(t *testing.T) {
	for word, says := range map[string]string{"name": "KEY=VALUE", "nam=x": "unknown key", "path=/x": "unknown key", "tags=[": "no YAML", "tags=# none": "no YAML"} {
		_, err := Parse([]string{word})
		assert.Contains(t, assert.ErrOf(0, err).Error(), says)
	}
	_, err := Parse([]string{"name=x", "name=y"})
	assert.Contains(t, err.Error(), "twice")
}

// Each key of a row has its place in a manifest.
func TestAIP34ManifestOfARow(t *testing.T) {
	const manifest = "---\nname: a\nowner: { type: user, id: 1 }\ntags: [ x ]\n---\nbody\n---\n"
	for word, want := range map[string]string{
		"name=true":               "---\nname: \"true\"\nowner: { type: user, id: 1 }\ntags: [ x ]\n---\nbody\n---\n",
		"name=":                   manifest,
		"tags=[x]":                manifest, // as it was
		"tags=":                   "---\nname: a\nowner: { type: user, id: 1 }\n---\nbody\n---\n",
		"owner_type=org":          "---\nname: a\nowner: {type: org, id: 1}\ntags: [ x ]\n---\nbody\n---\n",
		"storage={ ref: x }":      "---\nname: a\nowner: { type: user, id: 1 }\ntags: [ x ]\nstorage: {ref: x}\n---\nbody\n---\n",
		"storage={ provider: x }": "---\nname: a\nowner: { type: user, id: 1 }\ntags: [ x ]\nstorage:\n  inline: {provider: x}\n---\nbody\n---\n",
		"read_only=true":          "---\nname: a\nowner: { type: user, id: 1 }\ntags: [ x ]\ndefaults:\n  read_only: true\n---\nbody\n---\n",
	} {
		values := assert.Of(Parse([]string{word})).OK(t)
		assert.Of(Manifest([]byte(manifest), values)).Equal(t, []byte(want), word)
	}
	_, err := Manifest([]byte("no frontmatter\n"), nil)
	assert.Contains(t, err.Error(), "no frontmatter")
}

// An entry that is a path becomes one that says more.
func TestRow(t *testing.T) {
	values := assert.Of(Parse([]string{"name=x"})).OK(t)
	a := mountspec.Address{Owner: "a", Slug: "b"}
	got := assert.Of(Row([]byte("workspaces:\n  \"@a/b\": /b # there\n  \"@a/c\":   /c\n"), a, values)).OK(t)
	assert.Equal(t, string(got), "workspaces:\n  \"@a/b\": # there\n    path: /b\n    name: x\n  \"@a/c\":   /c\n")
	_, err := Row([]byte("workspaces: {}\n"), a, values)
	assert.Contains(t, err.Error(), "no entry")
}
