package exit

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// Scripts rely on the numbers, so a change of one must be deliberate.
func TestCodesAreStable(t *testing.T) {
	want := map[Code]string{0: "done", 1: "failed", 2: "usage", 3: "manifest-invalid", 4: "unresolvable",
		5: "denied", 6: "unreachable", 7: "unsafe", 8: "conflict", 9: "code-9", -1: "code--1"}
	for c, name := range want {
		if got := c.String(); got != name {
			t.Errorf("code %d: got %q, want %q", int(c), got, name)
		}
	}
	named := []Code{Done, Failed, Usage, Manifest, Unresolvable, Denied, Unreachable, Unsafe, Conflict}
	for i, c := range named {
		if int(c) != i {
			t.Errorf("%s: got %d, want %d", c, int(c), i)
		}
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
		t.Run(tt.name, func(t *testing.T) {
			e := From(tt.err)
			if e.Code != tt.code || e.What != tt.what {
				t.Errorf("got %s %q, want %s %q", e.Code, e.What, tt.code, tt.what)
			}
			if !errors.Is(e, io.EOF) {
				t.Error("the cause is lost")
			}
		})
	}
	if From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	if typed.Advice != "ask the host" {
		t.Errorf("advice: got %q", typed.Advice)
	}
}
