package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// How many messages have no case of a test that prints them, and how many say nothing of what
// to do. The numbers only go down.
const (
	untold   = 76
	unhinted = 14
)

// A message is what a refusal of the program says: the format of exit.New in cmd, or of a
// refusal of package host.
type message struct {
	at, format string
	hinted     bool
}

// TestMessages lists the messages of the program, and holds each to a case of a test that
// prints it: one whose words a test has in a literal. TestWords holds them to their words.
func TestMessages(t *testing.T) {
	cases := testWords(t)
	var without, dumb []string
	for dir, files := range sources(t) {
		for _, f := range files {
			if !under(dir, "cmd") && dir != "mountspec/host" {
				continue
			}
			for _, m := range messagesOf(f) {
				line := fmt.Sprintf("%s: %s", m.at, m.format)
				if pieces := piecesOf(m.format); len(pieces) > 0 && !cases.have(pieces) {
					without = append(without, line)
				}
				if !m.hinted {
					dumb = append(dumb, line)
				}
			}
		}
	}
	for what, c := range map[string]struct {
		list []string
		want int
	}{"no test prints": {without, untold}, "no hint has": {dumb, unhinted}} {
		if len(c.list) > c.want || len(c.list) < c.want*9/10 {
			t.Errorf("%s %d messages, and the number is %d:\n%s", what, len(c.list), c.want, strings.Join(c.list, "\n"))
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
	all   string
	short []string // that may be a part of a message
}

func (w words) have(pieces []string) bool {
	for _, p := range pieces {
		if strings.Contains(w.all, p) {
			return true
		}
		for _, s := range w.short {
			if strings.Contains(p, s) {
				return true
			}
		}
	}
	return false
}

// testWords are the literals of all tests but this package's.
func testWords(t *testing.T) words {
	var w words
	var all strings.Builder
	seen, root := map[string]bool{}, filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "integration/arch") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				all.WriteString(text + "\x00")
				for part := range strings.SplitSeq(text, "|") {
					if len(part) >= least && strings.Contains(part, " ") && !seen[part] {
						seen[part] = true
						w.short = append(w.short, part)
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
