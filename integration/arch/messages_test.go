package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A message is what a refusal of the program says: the format of exit.New in cmd, or of a
// refusal of package host.
type message struct {
	at, format string
	hinted     bool
}

// TestMessages lists the messages of the program (go test -v shows the list), each with the
// case of a test that prints it: one that has its words in a literal. TestWords holds them to
// their words. Each says what to do.
func TestMessages(t *testing.T) {
	cases := testWords(t)
	for dir, files := range sources(t) {
		for _, f := range files {
			if !under(dir, "cmd") && dir != "mountspec/host" {
				continue
			}
			for _, m := range messagesOf(f) {
				at, told := "", true
				if pieces := piecesOf(m.format); len(pieces) > 0 {
					at, told = cases.find(pieces)
				}
				t.Logf("%s: %s | %s", m.at, m.format, at)
				assert.True(t, told, m.at, m.format, "no test prints it")
				assert.True(t, m.hinted, m.at, m.format, "it has no hint")
			}
		}
	}
}

// messagesOf are those of a file. One is hinted if its function says what to do.
func messagesOf(f source) (list []message) {
	of := map[string]int{"New": 1, "unresolvable": 3, "denied": 3, "deny": 4} // where the format is
	for _, d := range f.file.Decls {
		hints, found := false, []message{}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				hints = hints || n.Sel.Name == "Hint" || n.Sel.Name == "Advice"
			case *ast.CallExpr:
				name := calledName(n.Fun)
				i, is := of[strings.TrimPrefix(name, "exit.")]
				if !is || strings.HasPrefix(name, "exit.") != (strings.HasSuffix(name, "New")) || len(n.Args) <= i {
					return true
				}
				if lit, ok := n.Args[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					found = append(found, message{f.name, text, name != "exit.New"})
				}
			}
			return true
		})
		for _, m := range found {
			m.hinted = m.hinted || hints
			list = append(list, m)
		}
	}
	return list
}

// calledName is exit.New, or the name of a function or method.
func calledName(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if p, ok := f.X.(*ast.Ident); ok && p.Name == "exit" {
			return "exit." + f.Sel.Name
		}
		if f.Sel.Name == "deny" {
			return f.Sel.Name
		}
	}
	return ""
}

// least is how long words have to be to be of one message.
const least = 10

// piecesOf are the words of a format between what is filled in.
func piecesOf(format string) (list []string) {
	for _, piece := range regexp.MustCompile(`%[-+# 0-9.\[\]]*[a-zA-Z%]`).Split(format, -1) {
		if piece = strings.Trim(piece, " :,()'`\""); len(piece) >= least {
			list = append(list, piece)
		}
	}
	return list
}

// words are those of tests.
type words struct {
	all   string // of all literals
	ends  []int  // of each in all
	at    []string
	short map[string]string // that may be a part of a message, and where they stand
}

// find is a test that has one of the pieces, or a part of one.
func (w words) find(pieces []string) (at string, ok bool) {
	for _, p := range pieces {
		if i := strings.Index(w.all, p); i >= 0 {
			n, _ := slices.BinarySearch(w.ends, i+1)
			return w.at[n], true
		}
	}
	for _, p := range pieces {
		for s, at := range w.short {
			if strings.Contains(p, s) {
				return at, true
			}
		}
	}
	return "", false
}

// testWords are the literals of all tests but this package's.
func testWords(t *testing.T) words {
	w := words{short: map[string]string{}}
	var all strings.Builder
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "integration/arch") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				at := fmt.Sprintf("%s:%d", strings.TrimPrefix(name, root+"/"), set.Position(lit.Pos()).Line)
				all.WriteString(text + "\x00")
				w.ends, w.at = append(w.ends, all.Len()), append(w.at, at)
				for part := range strings.SplitSeq(text, "|") {
					if len(part) >= least && strings.Contains(part, " ") {
						w.short[part] = at
					}
				}
			}
			return true
		})
		return nil
	})
	assert.OK(t, err)
	w.all = all.String()
	return w
}
