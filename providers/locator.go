package providers

import (
	"fmt"
	"slices"
	"strings"
)

// MaxName is the length in bytes of the longest segment of a Locator; it is
// the longest name that Linux file systems take.
const MaxName = 255

// Locator names a place in a provider's tree, relative to its root. The zero
// Locator is the root. Locators compare with == and serve as map keys.
//
// It has namespace operations only. All I/O goes through a Provider.
type Locator struct {
	key string // normalised: no empty, "." or ".." segment, no NUL
}

// ParseLocator normalises s: empty and "." segments are dropped, so a leading
// slash has no meaning. It fails with ErrInvalid on a ".." segment or a NUL
// byte, with ErrNameTooLong on a segment over MaxName bytes. A backslash is a
// plain character.
func ParseLocator(s string) (Locator, error) {
	return Locator{}.Child(s)
}

// MustLocator is ParseLocator for names that are known to be good; it panics
// otherwise.
func MustLocator(s string) Locator {
	l, err := ParseLocator(s)
	if err != nil {
		panic(err)
	}
	return l
}

// Child is the Locator of parts below l. Each part is normalised as in
// ParseLocator and may hold several segments; no part leads out of l.
func (l Locator) Child(parts ...string) (Locator, error) {
	segments := l.Parts()
	for _, part := range parts {
		for name := range strings.SplitSeq(part, "/") {
			if name == "" || name == "." {
				continue
			}
			if err := checkName(name); err != nil {
				return Locator{}, err
			}
			segments = append(segments, name)
		}
	}
	return Locator{strings.Join(segments, "/")}, nil
}

// checkName refuses names that normalisation cannot repair.
func checkName(name string) error {
	switch {
	case name == "..":
		return fmt.Errorf("%q leads upwards: %w", name, ErrInvalid)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%q holds a NUL byte: %w", name, ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("a name of %d bytes: %w", len(name), ErrNameTooLong)
	}
	return nil
}

// String is the normalised form, "" for the root.
func (l Locator) String() string { return l.key }

// IsRoot reports whether l is the root.
func (l Locator) IsRoot() bool { return l.key == "" }

// Name is the last segment, "" for the root.
func (l Locator) Name() string { return l.key[strings.LastIndexByte(l.key, '/')+1:] }

// Parent is the Locator that l is a child of; the root is its own parent.
func (l Locator) Parent() Locator {
	return Locator{l.key[:max(0, strings.LastIndexByte(l.key, '/'))]}
}

// Parts are the segments, none for the root. The caller owns the slice.
func (l Locator) Parts() []string {
	if l.key == "" {
		return nil
	}
	return strings.Split(l.key, "/")
}

// Contains reports whether m is l or lies below it: "a" contains "a/b" and
// not "ab".
func (l Locator) Contains(m Locator) bool {
	return l.key == "" || l.key == m.key || strings.HasPrefix(m.key, l.key+"/")
}

// Compare orders Locators depth first: by their segments, each by its bytes.
func (l Locator) Compare(m Locator) int {
	return slices.Compare(l.Parts(), m.Parts())
}

// MarshalText implements encoding.TextMarshaler; any bytes are kept.
func (l Locator) MarshalText() ([]byte, error) { return []byte(quoteBytes(l.key)), nil }

// UnmarshalText implements encoding.TextUnmarshaler and checks its input.
func (l *Locator) UnmarshalText(text []byte) error {
	s, err := unquoteBytes(string(text))
	if err != nil {
		return err
	}
	*l, err = ParseLocator(s)
	return err
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (l Locator) MarshalBinary() ([]byte, error) { return []byte(l.key), nil }

// UnmarshalBinary implements encoding.BinaryUnmarshaler and checks its input.
func (l *Locator) UnmarshalBinary(data []byte) (err error) {
	*l, err = ParseLocator(string(data))
	return err
}
