package exactjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	_ "github.com/wsmount/wsmount/integration/tier"
)

type own struct{ Name string }

func (o own) MarshalText() ([]byte, error)  { return []byte("own"), nil }
func (o *own) UnmarshalText(b []byte) error { o.Name = string(b); return nil }

type embedded struct{ Was string }

type value struct {
	Path string `json:"path"`
	embedded
	Next  *value            `json:"next,omitempty"`
	Names []string          `json:"names,omitempty"`
	Pair  [2]string         `json:"pair"`
	Vars  map[string]string `json:"vars,omitempty"`
	Any   any               `json:"any,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	Own   own               `json:"own"`
	Bytes []byte            `json:"bytes,omitempty"`
	Time  time.Time         `json:"time,omitzero"`
	kept  map[string]bool
}

// The strings of a value come back as they were, wherever they are, and the value that is
// written stays as it is.
func TestStringsKeepTheirBytes(t *testing.T) {
	of := func(name string) value {
		return value{Path: name, embedded: embedded{name}, Next: &value{Path: name, Own: own{"own"}}, Names: []string{name, "x"}, Pair: [2]string{"x", name},
			Vars: map[string]string{name: name}, Any: name, Raw: json.RawMessage(`{"a":1}`), Own: own{"own"}, Bytes: []byte(name), Time: time.Unix(1, 0).UTC()}
	}
	for name, written := range map[string]string{
		"docs/plan é.md":         `"docs/plan é.md"`,
		"w\xff":                  `"w\u0000ff"`,
		"w\xfe":                  `"w\u0000fe"`,
		"w\ufffd":                "\"w\ufffd\"",
		`w\xff`:                  `"w\\xff"`,
		"\xe9/\xc3x\xed\xa0\x80": `"\u0000e9/\u0000c3x\u0000ed\u0000a0\u000080"`,
		"a\x00ff":                `"a\u000000ff"`,
	} {
		in := of(name)
		in.kept = map[string]bool{name: true}
		data := assert.Of(Marshal(in)).OK(t, name)
		assert.Contains(t, string(data), `{"path":`+written+`,"Was":`+written+`,"next":{"path":`+written, name)
		var out value
		assert.OK(t, Unmarshal(data, &out), name)
		assert.True(t, reflect.DeepEqual(out, of(name)), name, out)
		in.kept = nil
		assert.True(t, reflect.DeepEqual(in, of(name)), "what was written", name, in)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.SampledFrom([]byte("\x00\xff\xc3\xa9\\x0f9a"))).Draw(t, "name"))
		var out []string
		assert.OK(t, Unmarshal(assert.Of(Marshal([]string{name})).OK(t), &out))
		assert.Slice(t, out, []string{name})
	})
}

// What no name is written as is refused: each has one form.
func TestMisread(t *testing.T) {
	for _, text := range []string{`"w\u0000"`, `"w\u0000f"`, `"w\u0000fg"`, `"w\u0000FF"`, `"w\u000041"`, `"\u0000c3\u0000a9"`, `["x","\u0000"]`, `{"\u0000":1}`, `{"a`} {
		var out any
		err := Unmarshal([]byte(text), &out)
		assert.True(t, err != nil, text, out)
		assert.True(t, Read(json.NewDecoder(strings.NewReader(text)), &out) != nil, text)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{"w\xff": `w\xff`, "w\xfe is": `w\xfe is`, "w\ufffd é": "w\ufffd é", "a\x00": "a\x00"} {
		assert.Equal(t, Visible(text), want, text)
	}
}
