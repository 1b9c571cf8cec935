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
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What a package and a type may grow to. Whatever is larger today has its own row in
// tooLarge, with a limit that only goes down.
const (
	mostMethods = 60
	mostLines   = 6000
	mostFiles   = 40
)

// tooLarge are the packages and types that are over the limits of all others. A row
// is removed when it is not needed any more; a limit is lowered with what it limits.
var tooLarge = map[string]int{
	"cmd/wsmount lines":   6600,
	"providers/git lines": 7197,
}

// TestSizes keeps packages small enough to be read, and types to one job. What says
// in a comment which lock is held should be a type that says it.
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
		lines, locks, methods := 0, 0, map[string]int{}
		for _, f := range files {
			lines += f.lines
			locks += f.locks
			for _, d := range f.file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					methods[receiver(fn)]++
				}
			}
		}
		check(dir+" files", len(files), mostFiles)
		check(dir+" lines", lines, mostLines)
		if slices.Contains([]string{"cache", "cache/internal/content", "cache/internal/table", "cmd/internal/daemon"}, dir) {
			check(dir+" lock comments", locks, 0)
		}
		for name, n := range methods {
			check(dir+"."+name+" methods", n, mostMethods)
		}
	}
	for what := range tooLarge {
		assert.True(t, used[what], what, "there is no such package or type")
	}
}

// A source is one file of a package, without tests.
type source struct {
	name         string
	file         *ast.File
	lines, locks int
}

var lockComment = regexp.MustCompile(`(?i)\bmu is\s+(//\s*)?(not )?held|\bin\s+(//\s*)?an\s+(//\s*)?update\b`)

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
		all[dir] = append(all[dir], source{name: rel, file: file, lines: bytes.Count(text, []byte("\n")), locks: len(lockComment.FindAll(text, -1))})
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
