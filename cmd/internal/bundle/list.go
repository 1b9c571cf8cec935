package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/wsmount/wsmount/mountspec"
)

// Limits of a bundle.
const (
	MaxBytes   = 1 << 30 // of all files
	MaxEntries = 50_000
	maxPath    = 4096
	maxList    = 32 << 20 // bytes of the list
)

const (
	schema     = "wsmount.published/v1"
	listName   = "wsmount-bundle.json"
	filesBelow = "files/"
)

// Manifest is the path of the manifest, which every bundle has.
const Manifest = "WORKSPACE.md"

// A List has the entries of a bundle.
type List struct {
	Schema  string  `json:"schema"` // wsmount.published/v1
	ID      string  `json:"id"`     // address of the workspace
	Version string  `json:"version"`
	Entries []Entry `json:"entries"` // by path
}

// An Entry is one directory, file or symbolic link.
type Entry struct {
	Path       string `json:"path"` // relative, clean, with slashes
	Type       Type   `json:"type"`
	Size       int64  `json:"size,omitempty"`       // of a file
	SHA256     string `json:"sha256,omitempty"`     // of a file, in hexadecimal digits
	Executable bool   `json:"executable,omitempty"` // of a file
	Target     string `json:"target,omitempty"`     // of a link
}

// A Type of an Entry.
type Type string

const (
	Dir  Type = "dir"
	File Type = "file"
	Link Type = "link"
)

// Bytes is the size of all files together.
func (l *List) Bytes() (n int64) {
	for _, e := range l.Entries {
		n += e.Size
	}
	return n
}

// Has reports whether there is a file of that path.
func (l *List) Has(file string) bool {
	for _, e := range l.Entries {
		if e.Path == file {
			return e.Type == File
		}
	}
	return false
}

func (l *List) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(l)
	return b.Bytes(), err
}

// decode reads the list of a bundle of unknown origin.
func decode(text []byte) (*List, error) {
	var l List
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("its list cannot be read: %w", err)
	}
	if l.Schema != schema {
		return nil, fmt.Errorf("its schema is %.80q, and not %s", l.Schema, schema)
	}
	return &l, l.check()
}

// check refuses a list unless each of its entries may be unpacked.
func (l *List) check() error {
	if _, err := mountspec.ParseAddress(l.ID); err != nil {
		return err
	}
	if len(l.Entries) > MaxEntries {
		return fmt.Errorf("it has %d entries, and %d are the most", len(l.Entries), MaxEntries)
	}
	dirs, before, total := map[string]bool{".": true}, "", int64(0)
	for _, e := range l.Entries {
		problem := e.problem()
		switch {
		case problem != "":
		case e.Path <= before:
			problem = "is not in its place in the order"
		case !dirs[path.Dir(e.Path)]:
			problem = "lies in no directory of the bundle"
		case e.Size > MaxBytes-total:
			problem = fmt.Sprintf("makes it larger than %d bytes", int64(MaxBytes))
		}
		if problem != "" {
			return fmt.Errorf("%.200q %s", e.Path, problem)
		}
		dirs[e.Path] = e.Type == Dir
		before, total = e.Path, total+e.Size
	}
	if !l.Has(Manifest) {
		return errors.New("it has no " + Manifest)
	}
	return nil
}

// problem is the fault of an entry on its own, or "".
func (e Entry) problem() string {
	if p := pathProblem(e.Path); p != "" {
		return p
	}
	if reason := Stays(e.Path); reason != "" {
		return "has no business in a bundle: " + reason
	}
	sum, err := hex.DecodeString(e.SHA256)
	isFile := e.Size >= 0 && err == nil && len(sum) == 32 && e.Target == ""
	isPlain := e.Size == 0 && e.SHA256 == "" && !e.Executable
	switch {
	case e.Type == File && isFile, e.Type == Dir && isPlain && e.Target == "":
		return ""
	case e.Type == Link && isPlain:
		return LinkProblem(e.Path, e.Target)
	}
	return "is not well described"
}

func pathProblem(p string) string {
	switch {
	case p == "" || p == "." || !path.IsAbs("/"+p) || path.Clean("/"+p) != "/"+p:
		return "is not a clean, relative path"
	case !utf8.ValidString(p):
		return "has a name that is not UTF-8"
	case strings.ContainsRune(p, 0):
		return "has a NUL in its name"
	case len(p) > maxPath:
		return "has too long a path"
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > 255 {
			return "has too long a name"
		}
	}
	return ""
}

// LinkProblem says why a symbolic link may not be in a bundle, or "". Its target goes up
// from the directory of the link, which is a real one, and then only down: so it stays
// inside, also by way of further links, each of which does.
func LinkProblem(link, target string) string {
	depth, down := strings.Count(link, "/"), false
	if target == "" || strings.HasPrefix(target, "/") || len(target) > maxPath || strings.ContainsRune(target, 0) || !utf8.ValidString(target) {
		return "is a link that does not lead to a relative path"
	}
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case name == "" || name == ".":
		case name != "..":
			down = true
		case down || depth == 0:
			return "is a link that may lead out of the workspace"
		default:
			depth--
		}
	}
	return ""
}
