package secrets

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/integration/assert"
)

const hidden = "hunter2-7Qx"

type holder struct {
	Value  Value
	Secret Secret
	Ptr    *Value
	Map    map[string]Value
	List   []Secret
	v      Value
	s      Secret
	any    any
}

func newHolder() holder {
	v := NewValue(hidden)
	s := NewSecret(map[string]Value{"a": v, Single: v}, time.Time{})
	return holder{v, s, &v, map[string]Value{"k": v}, []Secret{s}, v, s, v}
}

// Whatever prints a value, by itself or inside something else, never shows
// it: not as text, not as bytes, not in hex.
func TestNothingPrintsAValue(t *testing.T) {
	h := newHolder()
	var out bytes.Buffer
	for _, x := range []any{h, &h, h.Value, &h.Value, h.Secret, h.Map, h.List, []any{h.Value}, errors.Join(fmt.Errorf("%v %w", h.Value, fmt.Errorf("%v", h)))} {
		for _, verb := range "vsqxXdbcoOUeEfFgGtpTw" {
			for _, flags := range []string{"", "+", "#", " ", "0", "10.3", "-#"} {
				fmt.Fprintf(&out, "%"+flags+string(verb)+"\n", x)
			}
		}
		fmt.Fprintln(&out, x)
		for _, enc := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal, xml.Marshal} {
			b, _ := enc(x)
			out.Write(b)
		}
		gob.NewEncoder(&out).Encode(x)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "x", x, slog.Group("g", "x", x))
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "x", x, slog.Any("y", []any{x}))
	}
	func() {
		defer func() { fmt.Fprint(&out, recover()) }()
		panic(h.Value)
	}()
	for _, leak := range leaks(hidden) {
		if i := bytes.Index(bytes.ToLower(out.Bytes()), []byte(leak)); i >= 0 {
			t.Fatalf("shown as %q: ...%.80q", leak, out.Bytes()[max(0, i-40):])
		}
	}
	assert.Contains(t, out.String(), Redacted, "nothing was printed at all")
	assert.Equal(t, h.Value.Reveal(), hidden, "Reveal lost it")
}

// leaks are the shapes in which a string may show.
func leaks(s string) []string {
	dec := strings.Trim(strings.ReplaceAll(fmt.Sprint([]byte(s)), " ", " "), "[]")
	return []string{strings.ToLower(s), fmt.Sprintf("%x", s), fmt.Sprintf("% x", s), dec, strings.ReplaceAll(dec, " ", ",")}
}

func TestZeroValues(t *testing.T) {
	var v Value
	var s Secret
	if _, ok := s.Field("a"); ok || !v.Empty() || v.Reveal() != "" || len(s.Names()) != 0 || fmt.Sprint(v, s) != Redacted+" "+Redacted {
		t.Error("a zero value is not empty, or does not print as redacted")
	}
	assert.True(t, NewValue("a").Equal(NewValue("a")) && !NewValue("a").Equal(NewValue("b")) && v.Equal(NewValue("")), "Equal")
}
