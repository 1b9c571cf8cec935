// Package secrets finds the credentials that a storage needs and hands them
// out only to workspaces to which the host granted them.
//
// It knows where the host keeps each secret (an environment variable, a
// private file, a command), its name in inventories (SECRETS.md, AIP-19),
// and which workspaces may have it. It promises that a value is fetched
// only after every check has passed and the audit log has the reveal; that
// a value prints as [redacted] by any means of printing; and that nothing is
// tried after a refusal: there is no second place to look.
//
//	plan, err := vault.Plan(secrets.Request{Workspace: ws, CredentialsRef: "org/acme/s3-rw"})
//	creds, err := plan.Reveal(ctx) // at activation, not before
//	key, ok := creds.Field("secret_access_key")
//	use(key.Reveal())
package secrets

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// Redacted is the text that a secret prints as.
const Redacted = "[redacted]"

// A Value is one secret string. It prints as [redacted] under every verb of
// fmt, in JSON, YAML, text encodings and slog, also as a field of another
// struct. Only Reveal returns it. The zero Value is empty.
//
// The string is held by a function: of an unexported field fmt does not ask
// the Formatter, and of a pointer it prints the target when the verb
// is wrong; of a function it prints the address, always.
type Value struct{ get func() string }

// NewValue makes a Value of s.
func NewValue(s string) Value {
	return Value{func() string { return s }}
}

// Reveal returns the secret. Call it as late as possible, and pass the
// result to nothing that keeps or prints it.
func (v Value) Reveal() string {
	if v.get == nil {
		return ""
	}
	return v.get()
}

// Empty says whether the value is empty.
func (v Value) Empty() bool { return v.Reveal() == "" }

// Equal compares in time that does not depend on where they differ.
func (v Value) Equal(w Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(w.Reveal())) == 1
}

func (v Value) String() string                { return Redacted }
func (v Value) GoString() string              { return Redacted }
func (v Value) Format(f fmt.State, verb rune) { io.WriteString(f, Redacted) }
func (v Value) MarshalText() ([]byte, error)  { return []byte(Redacted), nil }
func (v Value) MarshalJSON() ([]byte, error)  { return []byte(`"` + Redacted + `"`), nil }
func (v Value) MarshalYAML() (any, error)     { return Redacted, nil }
func (v Value) GobEncode() ([]byte, error)    { return []byte(Redacted), nil }
func (v Value) LogValue() slog.Value          { return slog.StringValue(Redacted) }

var (
	_ fmt.Formatter  = Value{}
	_ fmt.GoStringer = Value{}
	_ slog.LogValuer = Value{}
)

// A Secret is a value, or named fields: S3 needs two or three strings that
// belong together. It prints like a Value.
type Secret struct {
	fields *map[string]Value
	// Expires is when the values stop working. Zero: not known.
	Expires time.Time
}

// Single is the name of the only field of a secret that has no names.
const Single = "value"

// NewSecret makes a Secret of named fields. The map is copied.
func NewSecret(fields map[string]Value, expires time.Time) Secret {
	m := make(map[string]Value, len(fields))
	for k, v := range fields {
		m[k] = v
	}
	return Secret{fields: &m, Expires: expires}
}

// Field returns one field. name is Single for a secret without names.
func (s Secret) Field(name string) (Value, bool) {
	if s.fields == nil {
		return Value{}, false
	}
	v, ok := (*s.fields)[name]
	return v, ok
}

// Names lists the fields, sorted.
func (s Secret) Names() []string {
	if s.fields == nil {
		return nil
	}
	var names []string
	for n := range *s.fields {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (s Secret) String() string                { return Redacted }
func (s Secret) GoString() string              { return Redacted }
func (s Secret) Format(f fmt.State, verb rune) { io.WriteString(f, Redacted) }
func (s Secret) MarshalText() ([]byte, error)  { return []byte(Redacted), nil }
func (s Secret) MarshalJSON() ([]byte, error)  { return []byte(`"` + Redacted + `"`), nil }
func (s Secret) MarshalYAML() (any, error)     { return Redacted, nil }
func (s Secret) GobEncode() ([]byte, error)    { return []byte(Redacted), nil }
func (s Secret) LogValue() slog.Value          { return slog.StringValue(Redacted) }
