package mountspec

import (
	"path"
	"strings"
)

// String names the kind as error messages do.
func (k RefKind) String() string {
	return [...]string{"inline", "file", "path", "cross-workspace path", "registry slug"}[k]
}

// Clean returns the path to read, relative to the referring manifest's
// directory, for the kinds that are paths; the value itself for a slug.
func (r Ref) Clean() string {
	if r.Kind == RefSlug || r.Kind == RefInline {
		return r.Value
	}
	return path.Clean(r.Value)
}

// registrySlug is wider than an address: upstream's own refs have two or three
// segments (@acme/policies/team-baseline), an id has two.
var registrySlug = expression(`^@[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9._-]*){1,4}$`)

// schemed is a URL or one of AIP-27's compact refs (workspace:@a/b). A file
// whose name looks like one is written with ./ before it.
var schemed = expression(`^[A-Za-z][A-Za-z0-9+._-]*:|://`)

// ParseRef classifies a reference as AIP-35, "Reference resolution" does. It
// says nothing about whether the target exists.
func ParseRef(s string) (Ref, error) {
	kind, problem := classifyRef(s)
	if problem != "" {
		return Ref{}, &RefError{Value: s, Problem: problem}
	}
	return Ref{Kind: kind, Value: s}, nil
}

// A RefError says why a text is no reference.
type RefError struct{ Value, Problem string }

func (e *RefError) Error() string { return "reference " + show(e.Value) + " " + e.Problem }

func classifyRef(s string) (kind RefKind, problem string) {
	const longest = 1024
	_, control := controlIn(s, "")
	switch {
	case s == "":
		return 0, "is empty"
	case len(s) > longest:
		return 0, "is too long"
	case control:
		return 0, "holds a control character"
	case strings.HasPrefix(s, "@"):
		if !registrySlug().MatchString(s) || strings.Contains(s, "..") {
			return 0, "is not a registry slug of the form @owner/slug"
		}
		return RefSlug, ""
	case strings.HasPrefix(s, "/"):
		return 0, "is an absolute path"
	case strings.HasPrefix(s, "~"):
		return 0, "begins with ~, which is not expanded"
	case strings.Contains(s, `\`):
		return 0, "holds a backslash; separate with /"
	case schemed().MatchString(s):
		return 0, "begins like a URL; a manifest is read from files and registries only"
	}
	switch clean := path.Clean(s); {
	case clean == ".":
		return 0, "names no file"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return RefCrossWorkspace, ""
	}
	return RefPath, ""
}

// refHint is the advice about a reference that is none.
const refHint = "write ./path, ../sibling/path or @owner/slug"

// reference reads a {ref: ...} value.
func (v value) reference() (Ref, bool) {
	s, ok := v.text()
	if !ok {
		return Ref{}, false
	}
	kind, problem := classifyRef(s)
	if problem != "" {
		v.fail("ref-shape", refHint, "%s %s", show(s), problem)
		return Ref{}, false
	}
	return Ref{kind, s, v.pos()}, true
}

// fileReference reads a {file: ...} value: a path that stays in the workspace.
func (v value) fileReference() (Ref, bool) {
	s, ok := v.text()
	if !ok {
		return Ref{}, false
	}
	kind, problem := classifyRef(s)
	if problem == "" && kind != RefPath {
		problem = "does not stay inside the workspace"
	}
	if problem != "" {
		v.fail("ref-shape", "write a path below the workspace, such as ./storage/main.STORAGE.md", "%s %s", show(s), problem)
		return Ref{}, false
	}
	return Ref{RefFile, s, v.pos()}, true
}

// decodeBlock reads the {inline} | {ref} | {file} forms. refCode is the
// upstream code of a reference that is wrong.
func decodeBlock[T any](v value, refCode string, inline func(value) *T) (Block[T], bool) {
	o, ok := v.object()
	if !ok {
		return Block[T]{}, false
	}
	in, ref, file := o.get("inline"), o.get("ref"), o.get("file")
	if inline == nil && in.none() {
		return Block[T]{}, false // reported by the reader of the block
	}
	ref.code, file.code = refCode, refCode
	o.closed()
	if !o.exactlyOne("inline", "ref", "file") {
		v.fail("block-form", "keep one of them", "needs exactly one of inline, ref and file")
	}
	if count(in.n != nil, ref.n != nil, file.n != nil) != 1 {
		decodeForms(in, ref, file, inline)
		return Block[T]{}, false
	}
	b := Block[T]{Pos: v.pos()}
	switch {
	case in.n != nil:
		b.Inline = inline(in)
		return b, b.Inline != nil
	case ref.n != nil:
		b.Ref, ok = ref.reference()
	default:
		b.Ref, ok = file.fileReference()
	}
	return b, ok
}

// decodeForms finds the errors in each form of a block that has several:
// whichever is kept, its faults are known from the start.
func decodeForms[T any](in, ref, file value, inline func(value) *T) {
	if in.given() && inline != nil {
		inline(in)
	}
	if ref.given() {
		ref.reference()
	}
	if file.given() {
		file.fileReference()
	}
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
