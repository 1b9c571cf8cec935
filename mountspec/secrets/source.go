package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// A Source is a place where the host keeps one secret. Implementations are
// safe for concurrent use, keep nothing between calls, and their errors
// hold no part of the value.
type Source interface {
	// Fetch returns the secret as it is now.
	Fetch(ctx context.Context) (Secret, error)
	// Kind is "environment", "file" or "command".
	Kind() string
	// String names the place without the value: "environment ACME_KEY".
	String() string
}

// Env is a secret in environment variables of the host: one (Name), or one
// for each field (Fields, from the field's name to the variable's).
type Env struct {
	Name   string
	Fields map[string]string
	// Lookup reads the environment that the program started with.
	Lookup func(name string) (string, bool)
}

// Fetch reads the variables. One that is unset or empty is an error.
func (e Env) Fetch(context.Context) (Secret, error) {
	fields := map[string]Value{}
	var unset []string
	for field, name := range e.names() {
		v, ok := e.Lookup(name)
		if !ok || v == "" {
			unset = append(unset, name)
		}
		fields[field] = NewValue(v)
	}
	if len(unset) > 0 {
		sort.Strings(unset)
		return Secret{}, &unsetError{unset}
	}
	return NewSecret(fields, time.Time{}), nil
}

// An unsetError names variables that are not set, or empty.
type unsetError struct{ names []string }

func (e *unsetError) Error() string {
	if len(e.names) == 1 {
		return "the environment variable " + e.names[0] + " is not set"
	}
	return "the environment variables " + strings.Join(e.names, ", ") + " are not set"
}

func (e Env) names() map[string]string {
	if e.Name != "" {
		return map[string]string{Single: e.Name}
	}
	return e.Fields
}

// Variables lists the names that e reads, sorted.
func (e Env) Variables() []string {
	var out []string
	for _, n := range e.names() {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Kind returns "environment".
func (e Env) Kind() string   { return "environment" }
func (e Env) String() string { return "environment " + strings.Join(e.Variables(), ", ") }

// Format says how the bytes of a file or of a command's output are read.
type Format string

const (
	Text Format = ""     // the whole is the value, without one line end
	JSON Format = "json" // an object of strings: named fields, and expires_at
)

// File is a secret in a file, which must belong to root or the user, be
// readable by no other user, and lie where no other user can replace it.
type File struct {
	Path   string
	Format Format
}

// Fetch reads the file.
func (f File) Fetch(context.Context) (Secret, error) {
	got, err := hostfile.Read(f.Path, hostfile.Options{Private: true, MaxBytes: maxOutput})
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == f.Path { // which String names already
		err = at.Err
	}
	if err != nil {
		return Secret{}, err
	}
	return decode(got.Data, f.Format)
}

// Kind returns "file".
func (f File) Kind() string   { return "file" }
func (f File) String() string { return "file " + f.Path }

func decode(data []byte, f Format) (Secret, error) {
	if f == Text {
		s := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if s == "" {
			return Secret{}, fmt.Errorf("it is empty")
		}
		return NewSecret(map[string]Value{Single: NewValue(s)}, time.Time{}), nil
	}
	m, ok := object(data)
	if !ok { // the decoder's own error may quote the value
		return Secret{}, fmt.Errorf("it is not a JSON object of strings")
	}
	return fromFields(m)
}

// object reads a JSON object of strings. The number Version, with which AWS
// credential processes begin, is left out.
func object(data []byte) (map[string]string, bool) {
	var raw map[string]any
	if json.Unmarshal(data, &raw) != nil {
		return nil, false
	}
	out := map[string]string{}
	for k, v := range raw {
		s, isString := v.(string)
		if _, isNumber := v.(float64); isNumber && k == "Version" {
			continue
		}
		if !isString || s == "" {
			return nil, false
		}
		out[snake(k)] = s
	}
	return out, len(out) > 0
}

// snake turns AccessKeyId and accessKeyId into access_key_id, as this
// package names fields.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// expiryNames are the fields that say when a secret ends: AIP-19's oauth,
// and that of AWS credential processes.
var expiryNames = []string{"expires_at", "expiration"}

func fromFields(m map[string]string) (Secret, error) {
	var expires time.Time
	for _, n := range expiryNames {
		s, ok := m[n]
		if !ok {
			continue
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return Secret{}, fmt.Errorf("its field %s is not a time as in RFC 3339", n)
		}
		expires = t
		delete(m, n)
	}
	fields := map[string]Value{}
	for k, v := range m {
		fields[k] = NewValue(v)
	}
	return NewSecret(fields, expires), nil
}
