package arch

import (
	"go/ast"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// mostCircle is how many files of a package of the working copy may call each other in a
// circle: who reads one of them has to have read all.
const mostCircle = 8

// TestCircles keeps the files of a package in an order in which they can be read.
func TestCircles(t *testing.T) {
	for dir, files := range sources(t) {
		if !under(dir, "cache") {
			continue
		}
		if circle := largestCircle(calls(dir, files)); len(circle) > mostCircle {
			t.Errorf("%s: %d files call each other in a circle, and the limit is %d: %s", dir, len(circle), mostCircle, strings.Join(circle, " "))
		}
	}
}

// A circle is found wherever it is, and files that only lead to it, or from it, are not in it.
func TestLargestCircle(t *testing.T) {
	got := largestCircle(map[string]map[string]bool{
		"in": {"a": true}, "a": {"b": true}, "b": {"c": true, "out": true}, "c": {"a": true, "b": true},
		"x": {"y": true}, "y": {"x": true, "a": true}, "out": nil,
	})
	assert.Slice(t, got, []string{"a", "b", "c"})
}

// calls are the files whose functions those of each file of a package call. What is called
// through an interface, or as a value, is not known.
func calls(dir string, files []source) map[string]map[string]bool {
	var all []*ast.File
	for _, f := range files {
		all = append(all, f.file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: empty{}, Error: func(error) {}} // of what is imported nothing is known, which is not needed
	pkg, _ := config.Check(module+"/"+dir, files[0].set, all, info)
	to := map[string]map[string]bool{}
	for _, f := range files {
		from := filepath.Base(f.name)
		to[from] = map[string]bool{}
		ast.Inspect(f.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called, ok := info.Uses[nameOf(call.Fun)].(*types.Func)
			if !ok || called.Pkg() != pkg || called.Signature().Recv() != nil && types.IsInterface(called.Signature().Recv().Type()) {
				return true
			}
			if file := filepath.Base(f.set.Position(called.Origin().Pos()).Filename); file != from {
				to[from][file] = true
			}
			return true
		})
	}
	return to
}

// nameOf is what stands for a function where it is called; nil: it is no name.
func nameOf(fun ast.Expr) *ast.Ident {
	switch f := fun.(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.IndexExpr: // of a type
		return nameOf(f.X)
	}
	return nil
}

// empty are the packages that are imported, without what is in them.
type empty struct{}

func (empty) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// largestCircle are the most files of which each leads to all others.
func largestCircle(to map[string]map[string]bool) (most []string) {
	reach := map[string]map[string]bool{}
	for file := range to {
		reach[file] = map[string]bool{}
		for next := slices.Collect(maps.Keys(to[file])); len(next) > 0; next = next[1:] {
			if !reach[file][next[0]] {
				reach[file][next[0]] = true
				next = slices.AppendSeq(next, maps.Keys(to[next[0]]))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(to)) {
		var circle []string
		for _, other := range slices.Sorted(maps.Keys(to)) {
			if other == file || reach[file][other] && reach[other][file] {
				circle = append(circle, other)
			}
		}
		if len(circle) > len(most) {
			most = circle
		}
	}
	return most
}
