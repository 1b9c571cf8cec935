package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What a package and a type may grow to. Whatever is larger has its own row in tooLarge, with a
// limit that only goes down.
const (
	mostMethods = 60
	mostLines   = 6000
	mostFiles   = 40
)

// tooLarge are the packages and types that are over the limits of all others: none today. A row
// is removed when it is not needed any more; a limit is lowered with what it limits.
var tooLarge = map[string]int{}

// TestSizes keeps packages small enough to be read, and types to one job.
func TestSizes(t *testing.T) {
	used := map[string]bool{}
	check := func(what string, got, most int) {
		limit, listed := tooLarge[what]
		if !listed {
			limit = most
		}
		used[what] = listed
		switch {
		case got > limit:
			t.Errorf("%s: %d, and the limit is %d: divide it", what, got, limit)
		case listed && (got <= most || got < limit*9/10):
			t.Errorf("%s: %d, and its limit is still %d: lower it, or remove the row", what, got, limit)
		}
	}
	for dir, files := range sources(t) {
		lines, methods := 0, map[string]int{}
		for _, f := range files {
			lines += f.lines
			for _, d := range f.file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					methods[receiver(fn)]++
				}
			}
		}
		check(dir+" files", len(files), mostFiles)
		check(dir+" lines", lines, mostLines)
		for name, n := range methods {
			check(dir+"."+name+" methods", n, mostMethods)
		}
	}
	for what := range tooLarge {
		assert.True(t, used[what], what, "there is no such package or type")
	}
}

// lockComment are words that say of a function which lock its callers have.
var lockComment = regexp.MustCompile(`(?i)\b(mu|io)( of [\w ]+)? is (not )?held\b|\bin an update\b|\b(called|asked|used|put) (with|under) (the|its|that) lock\b|` +
	`\bwith the lock held\b|\bcallers?( that)? (holds?|has|have) (mu|(the|both) locks?)\b|\bmu must be\b|\b(tree|volume|view)( is|,? whose lock is| while its lock is) held\b`)

// TestLocksAreTypes has a type say which lock is held: a View or a Tx of the tree, or what
// the mutex of a package is locked by. A comment that says it would be believed when it is
// not so any more.
func TestLocksAreTypes(t *testing.T) {
	for _, files := range sources(t) {
		for _, f := range files {
			for _, c := range f.file.Comments {
				text := strings.Join(strings.Fields(c.Text()), " ")
				assert.Equal(t, lockComment.FindString(text), "", f.name, "a comment says which lock is held")
			}
		}
	}
}

// A source is one file of a package, without tests.
type source struct {
	name  string
	set   *token.FileSet
	file  *ast.File
	lines int
}

// sources are the files of each package of the module, by its directory.
func sources(t *testing.T) map[string][]source {
	t.Helper()
	all, set := map[string][]source{}, token.NewFileSet()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (d.Name() == "bin" || d.Name() == "integration" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		all[dir] = append(all[dir], source{name: rel, set: set, file: file, lines: bytes.Count(text, []byte("\n"))})
		return nil
	})
	assert.OK(t, err)
	assert.Must(t, len(all) >= 10, len(all), "packages")
	return all
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return "?"
}
