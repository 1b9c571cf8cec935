package assert

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
)

// recorder notes what a test says.
type recorder struct{ said []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf("fatal: "+format, args...) }

func TestReports(t *testing.T) {
	wrapped := fmt.Errorf("x: %w", fs.ErrNotExist)
	for _, c := range []struct {
		name, want string
		do         func(T)
	}{
		{"no error", "", func(t T) { OK(t, nil) }},
		{"an error", "fatal: EOF", func(t T) { OK(t, io.EOF) }},
		{"an error with a label", "fatal: read f: EOF", func(t T) { OK(t, io.EOF, "read", []byte("f")) }},
		{"true and false", "", func(t T) { True(t, true, "a"); False(t, false, "b") }},
		{"not true", "file 3 is missing", func(t T) { True(t, false, "file", 3, "is missing") }},
		{"not false", "it is there", func(t T) { False(t, true, "it is there") }},
		{"without which it cannot go on", "fatal: b {Size:1}", func(t T) { Must(t, true, "a"); Must(t, false, "b", struct{ Size int }{1}) }},
		{"lists and errors in a label", `["a b"] EOF <nil>`, func(t T) { True(t, false, []string{"a b"}, io.EOF, nil) }},
		{"within limits", "", func(t T) { AtMost(t, 1, 1); AtLeast(t, 1, 1) }},
		{"over a limit", "n: got 2, want 1 at most", func(t T) { AtMost(t, 2, 1, "n") }},
		{"under a limit", "n: got 1, want 2 at least", func(t T) { AtLeast(t, 1, 2, "n") }},
		{"equal", "", func(t T) { Equal(t, 1, 1, "n") }},
		{"not equal", "file 3: got 1, want 2", func(t T) { Equal(t, 1, 2, "file", 3) }},
		{"no label", `got "a", want "b"`, func(t T) { Equal(t, "a", "b") }},
		{"lists", "", func(t T) { Slice(t, []string{"a", "b"}, []string{"a", "b"}) }},
		{"other lists", `names: got ["b" "a"], want ["a" "b"]`, func(t T) { Slice(t, []string{"b", "a"}, []string{"a", "b"}, "names") }},
		{"of a kind", "", func(t T) { Is(t, wrapped, fs.ErrNotExist) }},
		{"of another kind", "read: got error EOF, want " + fs.ErrNotExist.Error(), func(t T) { Is(t, io.EOF, fs.ErrNotExist, "read") }},
		{"no error where one is wanted", "got error <nil>, want EOF", func(t T) { Is(t, nil, io.EOF) }},
		{"an error where none is wanted", "got error EOF, want <nil>", func(t T) { Is(t, io.EOF, nil) }},
		{"the error of a call", "", func(t T) { Is(t, ErrOf(0, io.EOF), io.EOF) }},
		{"in it", "", func(t T) { Contains(t, "abc", "b") }},
		{"what a call gave", "", func(t T) {
			Equal(t, Of(1, nil).OK(t), 1)
			Of([]byte("a"), nil).Equal(t, []byte("a"))
			Of([]string(nil), nil).Equal(t, []string{})
		}},
		{"a call that failed", "fatal: f: EOF", func(t T) { Of(1, io.EOF).OK(t, "f") }},
		{"a call that failed in place of a value", "got 1, EOF, want 1", func(t T) { Of(1, io.EOF).Equal(t, 1) }},
		{"a call that gave another value", `f: got "a", <nil>, want "b"`, func(t T) { Of([]byte("a"), nil).Equal(t, []byte("b"), "f") }},
		{"a call that gave too much", `got ["a"], <nil>, want []`, func(t T) { Of([]string{"a"}, nil).Equal(t, nil) }},
		{"not in it", `got "abc", want "d" in it`, func(t T) { Contains(t, "abc", "d") }},
	} {
		var r recorder
		if c.do(&r); strings.Join(r.said, "\n") != c.want {
			t.Errorf("%s: said %q, want %q", c.name, r.said, c.want)
		}
	}
}

func TestLongTexts(t *testing.T) {
	var r recorder
	Equal(&r, strings.Repeat("x", 1<<20), "")
	if len(r.said) != 1 || len(r.said[0]) > 3000 || !strings.Contains(r.said[0], "(1048576 bytes)") {
		t.Error("a long text fills the report")
	}
}
