package providers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Guard is how strictly a condition is checked.
type Guard uint8

// The strengths of a Guard, each better than the one before.
const (
	// GuardNone: the condition is not checked.
	GuardNone Guard = iota
	// GuardChecked: the provider checks, then acts. Users of this package can harm each other
	// in that short window only; a writer from outside can be overwritten in it.
	GuardChecked
	// GuardAtomic: the service itself decides. Of any number of writers, also
	// in other processes, one wins.
	GuardAtomic
)

// String is "none", "checked" or "atomic".
func (g Guard) String() string {
	return [...]string{"none", "checked", "atomic"}[min(g, GuardAtomic)]
}

// Conditions are the Guards of the conditions of each verb.
type Conditions struct {
	Create  Guard // Write with IfAbsent
	Replace Guard // Write with IfVersion
	Delete  Guard // Delete with IfVersion
	Copy    Guard // the target's condition of Copy
	Move    Guard // both conditions of Move
	SetAttr Guard
}

// PartLimits are the limits of a Multiparter; zero means no limit known.
type PartLimits struct {
	Min, Max int64 // bytes in a part; the last may be smaller than Min
	Count    int
}

// NameLimits tell which names cannot be written; the zero value excludes none. They are known
// without the service, so that a program gets the error from open(2) or rename(2), and not
// after it has written everything.
type NameLimits struct {
	UTF8    bool   // names are UTF-8
	Plain   bool   // none stands for a Key with empty segments, "." or "..", or NUL, or for a part of a longer name
	XML     bool   // names have no characters that XML cannot carry
	Lines   bool   // names have no line breaks
	Slashes bool   // names have no backslash and do not end in a dot: a service changes such names
	Ending  string // the store's own suffix; another name with it has it twice
	Own     string // a name in the root that is the store's own
	Path    int    // bytes in the whole path; 0: no limit known
	DotGit  bool   // IsDotGit holds for no segment
}

// Check is why an entry cannot be written at l, ErrInvalid or ErrTooLarge, or nil.
func (n NameLimits) Check(l Locator) error {
	path := l.String()
	switch {
	case n.UTF8 && !utf8.ValidString(path):
		return fmt.Errorf("names are UTF-8 there: %w", ErrInvalid)
	case n.XML && !IsXML(path):
		return fmt.Errorf("names have no control characters there: %w", ErrInvalid)
	case n.Lines && HasLines(path):
		return fmt.Errorf("names have no line breaks there: %w", ErrInvalid)
	case n.Slashes && !KeepsInURL(l):
		return fmt.Errorf("names have no backslash there, and do not end in a dot: %w", ErrInvalid)
	case n.Plain && !isPlain(l):
		return fmt.Errorf("the name stands for a key that services disagree on: %w", ErrInvalid)
	case n.Ending != "" && isOwnEnding(l.Name(), n.Ending):
		return fmt.Errorf("a name that ends in %s means another there: %w", n.Ending, ErrInvalid)
	case n.Own != "" && l.Parts()[0] == n.Own:
		return fmt.Errorf("%s is the storage's own: %w", n.Own, ErrInvalid)
	case n.DotGit && slices.ContainsFunc(l.Parts(), IsDotGit):
		return fmt.Errorf("a name that is git's own: %w", ErrInvalid)
	case n.Path > 0 && len(path) > n.Path:
		return fmt.Errorf("a path of %d bytes, %d fit: %w", len(path), n.Path, ErrTooLarge)
	}
	return nil
}

// IsXML reports whether XML can carry s, which is UTF-8.
func IsXML(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff
	}) < 0
}

// HasLines reports whether s has a line break.
func HasLines(s string) bool { return strings.ContainsAny(s, "\r\n") }

// KeepsInURL reports whether no segment of l has a backslash or ends in a dot. In a URL some
// services take such names for others: `a\b` for "a/b", and "a." for "a".
func KeepsInURL(l Locator) bool {
	return !slices.ContainsFunc(l.Parts(), func(name string) bool { return strings.Contains(name, `\`) || strings.HasSuffix(name, ".") })
}

func isPlain(l Locator) bool {
	key, err := l.Key()
	if err != nil {
		return false
	}
	for segment := range strings.SplitSeq(string(key), "/") {
		if segment == "" || segment == "." || segment == ".." || strings.IndexByte(segment, 0) >= 0 {
			return false
		}
	}
	return true
}

// isOwnEnding reports whether a name has the ending an odd number of times.
func isOwnEnding(name, ending string) (odd bool) {
	for {
		rest, ok := strings.CutSuffix(name, ending)
		if !ok {
			return odd
		}
		name, odd = rest, !odd
	}
}

// Capabilities are the promises of a provider, as data. The zero value promises nothing. They
// are checked when a workspace is mounted, so that an impossible mount fails at once.
type Capabilities struct {
	Writable      bool // Write and Delete work
	Durable       bool // a change that returned survives loss of power
	EmptyDirs     bool // Mkdir works, and its directory stays without entries
	ImpliedDirs   bool // a directory that only Write made goes with its last entry
	StrictTree    bool // nothing can be below a file, and no file where a directory is
	AnyNames      bool // each name can be written; else one that is no UTF-8, has control characters, or that Key escapes, may be ErrInvalid, and one outside Names
	Symlinks      bool // KindSymlink can be written
	Metadata      bool // Info.Metadata is kept
	ListComplete  bool // entries of List have all of Stat; else Kind (a link may pass for a file), Size, Version, perhaps more
	RecursiveList bool // ListOptions.Recursive works
	ListAfter     bool // ListOptions.After works
	OperationIDs  bool // a repeated Write, Copy, Move or SetAttr with the same Op succeeds once more
	// UniqueVersions: a version never comes back. Else it may when the same content returns, or
	// when a change keeps the content.
	UniqueVersions bool

	// DearCopy: Copy and SetAttr cost several requests, so that small content that is local is
	// better written.
	DearCopy bool

	// LargerSome: some entries may be larger than MaxSize. Only a Write or Commit finds out
	// which.
	LargerSome bool

	ConcurrentWriters bool // safe with writers in several processes
	ConflictFiles     bool // conflict copies may appear that no local program wrote
	Encryption        bool // content is encrypted at rest
	Sync              bool // another program replicates the tree; no database belongs there

	Names      NameLimits // without AnyNames
	Attributes AttrSet    // which of Attr are kept
	Conditions Conditions
	Parts      PartLimits
	MaxSize    int64 // bytes in an entry; 0: no limit known
	Abilities  Ability
}

// Missing names each promise of required that c does not make, in a fixed order; none when all
// are made. Limits (Parts, MaxSize) are facts, not promises, and do not count.
func (c Capabilities) Missing(required Capabilities) []string {
	var missing []string
	have, want := reflect.ValueOf(c), reflect.ValueOf(required)
	for i := range have.NumField() {
		name := have.Type().Field(i).Name
		switch w := want.Field(i).Interface().(type) {
		case bool:
			if w && !have.Field(i).Bool() {
				missing = append(missing, name)
			}
		case AttrSet:
			if lacking := w &^ c.Attributes; lacking != 0 {
				missing = append(missing, fmt.Sprintf("%s(%s)", name, lacking))
			}
		case Ability:
			if lacking := w &^ c.Abilities; lacking != 0 {
				missing = append(missing, fmt.Sprintf("%s(%s)", name, lacking))
			}
		case Conditions:
			missing = append(missing, c.Conditions.missing(w)...)
		}
	}
	return missing
}

func (c Conditions) missing(required Conditions) []string {
	var missing []string
	have, want := reflect.ValueOf(c), reflect.ValueOf(required)
	for i := range have.NumField() {
		if w := Guard(want.Field(i).Uint()); w > Guard(have.Field(i).Uint()) {
			missing = append(missing, fmt.Sprintf("Conditions.%s(%s)", have.Type().Field(i).Name, w))
		}
	}
	return missing
}

// CapabilityError is the error of a provider that lacks required capabilities. It is
// ErrUnsupported.
type CapabilityError struct {
	Provider string
	Missing  []string
}

// Error names the provider and every promise that is missing.
func (e *CapabilityError) Error() string {
	return fmt.Sprintf("provider %q does not promise %s", e.Provider, strings.Join(e.Missing, ", "))
}

// Unwrap is ErrUnsupported.
func (e *CapabilityError) Unwrap() error { return ErrUnsupported }
