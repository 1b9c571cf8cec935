// Package assert says in one line what a test wants, and reports in one form what it
// got instead. A check of several comparisons is True's, with the values in its label.
// What holds costs nothing that a benchmark would see.
package assert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// T is what *testing.T, *testing.B, *rapid.T and a suite have.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// OK ends the test when something failed without which it cannot go on. What is a label
// for the report: words and values.
func OK(t T, err error, what ...any) {
	if err != nil {
		t.Helper()
		t.Fatalf("%s%v", label(what), err)
	}
}

// True wants a condition to hold, and False that it does not; what says what is wrong.
func True(t T, holds bool, what ...any) {
	if !holds {
		t.Helper()
		t.Errorf("%s", text(what))
	}
}

func False(t T, holds bool, what ...any) {
	if holds {
		t.Helper()
		t.Errorf("%s", text(what))
	}
}

// Must ends the test when a condition does not hold without which it cannot go on.
func Must(t T, holds bool, what ...any) {
	if !holds {
		t.Helper()
		t.Fatalf("%s", text(what))
	}
}

// Message wants each line of a text to be one that is for a person: nothing is said twice, it
// ends in words, and has nothing of what libraries say of their requests.
func Message(t T, text string, what ...any) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		said := map[string]bool{}
		for _, part := range strings.Split(line, ": ") {
			if len(part) > 2 && said[part] {
				t.Errorf("%s%q is said twice in %q", label(what), part, line)
			}
			said[part] = true
		}
		for _, noise := range []string{": :", "operation error", "RequestID", "StatusCode", "request send failed", "context deadline", "context canceled", "the backend", "cache: "} {
			if strings.Contains(line, noise) {
				t.Errorf("%s%q is in %q", label(what), noise, line)
			}
		}
		if strings.HasSuffix(line, ":") {
			t.Errorf("%s%q ends in a colon", label(what), line)
		}
	}
}

// Equal wants got to be want.
func Equal[V comparable](t T, got, want V, what ...any) {
	if got != want {
		t.Helper()
		t.Errorf("%sgot %s, want %s", label(what), show(got), show(want))
	}
}

// AtMost and AtLeast want got to be no more than a limit, or no less.
func AtMost[V cmp.Ordered](t T, got, limit V, what ...any) {
	if got > limit {
		t.Helper()
		t.Errorf("%sgot %s, want %s at most", label(what), show(got), show(limit))
	}
}

func AtLeast[V cmp.Ordered](t T, got, limit V, what ...any) {
	if got < limit {
		t.Helper()
		t.Errorf("%sgot %s, want %s at least", label(what), show(got), show(limit))
	}
}

// Slice wants the same elements in the same order.
func Slice[V comparable](t T, got, want []V, what ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Errorf("%sgot %s, want %s", label(what), show(got), show(want))
	}
}

// Is wants an error of a kind, or none where want is nil.
func Is(t T, got, want error, what ...any) {
	if !errors.Is(got, want) {
		t.Helper()
		t.Errorf("%sgot error %v, want %v", label(what), got, want)
	}
}

// ErrOf is the error of a call whose value does not matter.
func ErrOf[V any](_ V, err error) error { return err }

// Contains wants a part in a text.
func Contains(t T, whole, part string, what ...any) {
	if !strings.Contains(whole, part) {
		t.Helper()
		t.Errorf("%sgot %s, want %s in it", label(what), show(whole), show(part))
	}
}

// label is what a report begins with.
func label(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return text(what) + ": "
}

// text is words and values with spaces between them.
func text(what []any) string {
	words := make([]string, len(what))
	for i, v := range what {
		switch v := v.(type) {
		case string:
			words[i] = v
		case []byte:
			words[i] = string(v)
		case error: // of which %+v would show the stack
			words[i] = fmt.Sprint(v)
		default:
			words[i] = show(v)
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// show is a value in a report: of a long text its beginning and its length, and of
// lines the lines.
func show(v any) string {
	if list, ok := v.([]string); ok {
		return fmt.Sprintf("%q", list)
	}
	text, ok := v.(string)
	if !ok {
		return fmt.Sprintf("%+v", v)
	}
	format, more := "%q", ""
	if strings.Contains(text, "\n") {
		format = "\n%s\n"
	}
	const most = 2000
	if len(text) > most {
		more = fmt.Sprintf("... (%d bytes)", len(text))
		text = text[:most]
	}
	return fmt.Sprintf(format, text) + more
}
