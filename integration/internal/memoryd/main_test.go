package main

import (
	"io"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		o    options
		want string
	}{
		{"no socket", options{}, "-socket is needed"},
		{"unknown word", options{socket: "/nowhere/s", without: "copy,wings"}, `"wings" is not one of attr, `},
		{"no directory", options{socket: "/nowhere/s"}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(c.o, strings.NewReader(""), io.Discard)
			assert.True(t, err != nil && strings.Contains(err.Error(), c.want), c.want, err)
		})
	}
}

// Each word takes away what it says, and nothing else does.
func TestWords(t *testing.T) {
	got := memory.New(memory.Options{Without: assert.Of(parseWithout(strings.Join(known(), ","))).OK(t)}).Capabilities()
	want := memory.New(memory.Options{}).Capabilities()
	want = providers.Capabilities{Writable: true, StrictTree: true, AnyNames: true, Conditions: want.Conditions}
	assert.Equal(t, got, want)
	for _, word := range known() {
		less, err := parseWithout(word)
		full := memory.New(memory.Options{}).Capabilities()
		assert.True(t, err == nil && len(memory.New(memory.Options{Without: less}).Capabilities().Missing(full)) != 0, word, "takes nothing away", err)
	}
}
