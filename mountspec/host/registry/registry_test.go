package registry

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// split is what members finds in a text.
func split(text []byte) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	err := members(text, func(key string, value []byte) error { out[key] = value; return nil })
	return out, err
}

// Every object of JSON is split as the JSON library would, and nothing panics.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, ` { "a" : 1 , "b\"\\" : [ "]\"", { } ], "": null } `, `{"a":"\\"}`, `{"a":"\\\""}`, `{"a":{"b":"}"}}x`, `{"a":1,}`, `{"a"`, `{"a":"\`, `{"a":}`, `{"a":[}`, `[]`, ``} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := split(text)
		want := map[string]json.RawMessage{}
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		assert.OK(t, err)
		assert.Slice(t, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		for key := range want {
			assert.Equal(t, string(got[key]), string(want[key]), key)
		}
	})
}

// What is put is read again, what was not is kept as it is written, and where all lie is
// known without any of them: but that of one which is damaged.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.json")
	at := func(dir string) location.Location {
		return location.Location{Provider: "local-fs", Service: location.Dir, Prefix: dir}
	}
	f := New()
	f.Put("@acme/a", &Registration{Path: "/a/WORKSPACE.md", Location: at("/a"), Files: []Accepted{{Path: "/a/WORKSPACE.md", Text: "\"location\": {}\n"}}})
	f.Put("@acme/b", &Registration{Path: "/b", Location: at("/b")})
	text, err := f.Encode()
	assert.OK(t, err)
	assert.Contains(t, string(text), first) // an older wsmount can read it
	f.UsualEnv = new(string)
	assert.Contains(t, string(assert.Of(f.Encode()).OK(t)), schema)
	text = []byte(strings.Replace(string(text), `"@acme/b"`, `"@acme/c": {"path":"/c","x":1}, "@acme/b"`, 1))
	assert.OK(t, os.WriteFile(path, text, 0o600))
	f, err = Read(path, nil)
	assert.OK(t, err)
	assert.Slice(t, f.Names(), []string{"@acme/a", "@acme/b", "@acme/c"})
	l, ok := f.Place("@acme/a")
	assert.True(t, ok && l == at("/a") && !f.entries["@acme/a"].decoded, "its place", l)
	_, ok = f.Place("@acme/c")
	assert.True(t, !ok && f.IsDamaged("@acme/c") && !f.IsDamaged("@acme/d"), "one that is damaged has a place")
	f.Remove("@acme/a")
	text, err = f.Encode()
	assert.OK(t, err)
	assert.Contains(t, string(text), `"x": 1`)
	assert.False(t, strings.Contains(string(text), "@acme/a"), "what was removed is there")
}

// What was read is taken for the file as long as that cannot have changed.
func TestReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.json")
	text, err := New().Encode()
	assert.OK(t, err)
	assert.OK(t, os.WriteFile(path, text, 0o600))
	first, err := Read(path, nil)
	assert.OK(t, err)
	again, err := Read(path, first)
	assert.OK(t, err)
	assert.True(t, again != first, "one that was just written is not read again")
	first.read = first.read.Add(time.Hour)
	again, err = Read(path, first)
	assert.OK(t, err)
	assert.True(t, again == first, "one that is unchanged is read again")
	assert.OK(t, os.Chmod(path, 0o400))
	again, err = Read(path, first)
	assert.OK(t, err)
	assert.True(t, again != first, "another one is not read")
}
