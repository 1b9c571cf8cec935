package exit

import (
	"fmt"
	"io"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Scripts rely on the numbers, so a change of one must be deliberate.
func TestCodesAreStable(t *testing.T) {
	want := map[Code]string{0: "done", 1: "failed", 2: "usage", 3: "manifest-invalid", 4: "unresolvable",
		5: "denied", 6: "unreachable", 7: "unsafe", 8: "conflict", 9: "code-9", -1: "code--1"}
	for c, name := range want {
		assert.Equal(t, c.String(), name, "code", int(c))
	}
	named := []Code{Done, Failed, Usage, Manifest, Unresolvable, Denied, Unreachable, Unsafe, Conflict}
	for i, c := range named {
		assert.Equal(t, int(c), i, c)
	}
}

func TestFrom(t *testing.T) {
	typed := New(Denied, "no: %w", io.EOF).Hint("ask %s", "the host")
	tests := []struct {
		name string
		err  error
		code Code
		what string
	}{
		{"plain", io.EOF, Failed, "EOF"},
		{"typed", typed, Denied, "no: EOF"},
		{"wrapped keeps the code", fmt.Errorf("mount: %w", typed), Denied, "no: EOF"},
	}
	for _, tt := range tests {
		e := From(tt.err)
		assert.True(t, e.Code == tt.code && e.What == tt.what, tt.name, e.Code, e.What, tt.code, tt.what)
		assert.Is(t, e, io.EOF, tt.name, "the cause is lost")
	}
	assert.True(t, From(nil) == nil, "From(nil) is not nil")
	assert.Equal(t, typed.Advice, "ask the host", "advice")
}
