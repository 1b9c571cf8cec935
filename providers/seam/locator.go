package seam

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

// Locator names a place in a backend, relative to its root, which is the zero Locator. Locators
// compare with == and serve as map keys. Only a Backend's verbs can read or write at one.
type Locator struct{ at providers.Locator }

// ParseLocator normalises a key: empty and "." segments are dropped, so that a leading slash has
// no meaning, and other segments stay as they are. It fails with an InvalidLocatorError on a
// segment "..", and on characters that some backend takes for another name or for none: a
// backslash, a NUL byte, invalid UTF-8, and a name over providers.MaxName bytes.
func ParseLocator(key string) (Locator, error) { return Locator{}.Child(key) }

// Child is the Locator of parts below l. Each is normalised as a key is, and may have
// several segments; none leads out of l.
func (l Locator) Child(parts ...string) (Locator, error) {
	at, err := l.at.Child(parts...)
	if err == nil {
		err = checkName(at.String())
	}
	if err != nil {
		return Locator{}, &InvalidLocatorError{Key: strings.Join(parts, "/"), Err: err}
	}
	return Locator{at}, nil
}

func checkName(key string) error {
	switch {
	case !utf8.ValidString(key):
		return fmt.Errorf("it is no UTF-8: %w", providers.ErrInvalid)
	case strings.Contains(key, `\`):
		return fmt.Errorf("a backslash separates names for some: %w", providers.ErrInvalid)
	}
	return nil
}

// Key is the normalised form, "" for the root.
func (l Locator) Key() string { return l.at.String() }

// String is Key.
func (l Locator) String() string { return l.Key() }

// Parts are the segments, none for the root. The caller owns the slice.
func (l Locator) Parts() []string { return l.at.Parts() }

// Name is the last segment, "" for the root.
func (l Locator) Name() string { return l.at.Name() }

// Within reports whether l is outer, or lies in it.
func (l Locator) Within(outer Locator) bool {
	return outer == Locator{} || l == outer || strings.HasPrefix(l.Key(), outer.Key()+"/")
}

// Place is l as a Locator of package providers.
func (l Locator) Place() providers.Locator { return l.at }

// InvalidLocatorError says that a key names nothing that a backend may be asked for: a mistake of
// the caller, and not a missing entry. It is providers.ErrInvalid.
type InvalidLocatorError struct {
	Key string
	Err error // the mistake
}

// Error quotes the key.
func (e *InvalidLocatorError) Error() string {
	return fmt.Sprintf("%q is no locator: %v", e.Key, e.Err)
}

// Unwrap is providers.ErrInvalid beside the mistake.
func (e *InvalidLocatorError) Unwrap() []error { return []error{providers.ErrInvalid, e.Err} }

// UnnamedError says that a directory has names that no Locator has. It is
// providers.ErrUnsupported.
type UnnamedError struct {
	Locator Locator
	Names   []string
}

// Error quotes the first name.
func (e *UnnamedError) Error() string {
	return fmt.Sprintf("of what is in %q, %d cannot be named by a locator, such as %q", e.Locator, len(e.Names), e.Names[0])
}

// Unwrap is providers.ErrUnsupported.
func (e *UnnamedError) Unwrap() error { return providers.ErrUnsupported }

// Children are the Locators of names in l, as List returns them.
func Children(l Locator, names []string) ([]Locator, error) {
	children := make([]Locator, 0, len(names))
	var unnamed []string
	for _, name := range names {
		if child, err := l.Child(name); err == nil {
			children = append(children, child)
		} else {
			unnamed = append(unnamed, name)
		}
	}
	slices.SortFunc(children, func(a, b Locator) int { return strings.Compare(a.Key(), b.Key()) })
	if children = slices.Compact(children); len(unnamed) > 0 {
		slices.Sort(unnamed)
		return children, &UnnamedError{l, unnamed}
	}
	return children, nil
}
