package mountspec

import (
	"fmt"
	"strings"
)

// Address is the global id of a workspace or of another standalone manifest
// (AIP-34, "Identity is globally addressable").
type Address struct {
	Owner string
	Slug  string
}

// maxSegment keeps both halves usable as file names with room for suffixes.
const maxSegment = 128

var addressText = expression(`^@[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9-]*$`)

var addressSegment = expression(`^[a-z0-9][a-z0-9-]*$`)

// ParseAddress reads "@owner/slug". Exactly one slash, lower-case letters,
// digits and dashes, no leading dash, 128 bytes a segment. The result is safe
// as two path segments.
func ParseAddress(s string) (Address, error) {
	owner, slug, found := strings.Cut(strings.TrimPrefix(s, "@"), "/")
	a := Address{owner, slug}
	if !strings.HasPrefix(s, "@") || !found || !a.valid() {
		return Address{}, fmt.Errorf("address %s is not of the form @owner/slug (lower-case letters, digits, dashes)", show(s))
	}
	return a, nil
}

func (a Address) valid() bool {
	for _, s := range []string{a.Owner, a.Slug} {
		if len(s) > maxSegment || !addressSegment().MatchString(s) {
			return false
		}
	}
	return true
}

// String prints "@owner/slug"; the zero Address prints as the empty string.
func (a Address) String() string {
	if a == (Address{}) {
		return ""
	}
	return "@" + a.Owner + "/" + a.Slug
}

// An IdentityError says that a manifest was found under an address that it
// does not claim (AIP-34: a manifest may lie about its id).
type IdentityError struct {
	Asked Address
	Found Address
	Pos   Pos
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("%s: the manifest found for %s says that it is %s", e.Pos, e.Asked, e.Found)
}

// ResolveAddress resolves an address as AIP-34's resolveWorkspaceAddress does:
// a workspace, or nil and no error when lookup finds none. A workspace whose id
// is not the address asked for is an *IdentityError, never a result.
func ResolveAddress(addr string, lookup func(Address) (*Workspace, error)) (*Workspace, error) {
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	w, err := lookup(a)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", a, err)
	}
	if w == nil {
		return nil, nil
	}
	if w.ID != a {
		return nil, &IdentityError{Asked: a, Found: w.ID, Pos: w.Pos}
	}
	return w, nil
}
