package providers_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// The walk below goes over everything that other packages can see of the seam
// and of the providers, and finds what speaks of this machine's files. A path
// that crossed the seam would be taken for a real file, and the next backend
// would quietly not work.

// banned are packages whose types are files and paths.
var banned = map[string]bool{"os": true, "io/fs": true, "path/filepath": true, "os/exec": true, "embed": true}

// pathLike are names of strings that hold paths.
var pathLike = regexp.MustCompile(`(?i)path|file|folder|root|(^|[a-z])dir(ectory)?$`)

// mayBePath are the exceptions, each with its reason.
var mayBePath = map[string]string{
	"providers.Settings.StateDir":       "where a provider may keep what is its own; nothing of its tree is there by name",
	"providers.Settings.SharedDir":      "as StateDir",
	"git.Options.Dir":                   "the constructor's side of StateDir",
	"providers.Inspector.Inspect root":  "git status believes what it is told of a work tree only where that is",
	"providers.Everything.Inspect root": "the same",
	"git.Provider.Inspect root":         "the same",
	"providers.Changes ret paths":       "in the tree, and those of whole directories, which no Locator is",
	"providers.Inspection.Show path":    "of what is shown, which is no part of the tree",
	"devicelocal.Open dir":              "the constructor's side; no name of the tree is made of it",
	"devicelocal.OpenGranted dir":       "the same",
	"devicelocal.OpenMounted dir":       "the same",
	"all.Directory dir":                 "the same",
	"all.GrantedDirectory dir":          "the same",
	"all.Mounted dir":                   "the same",
	"all.LockGranted dir":               "the same",
	"devicelocal.Mount.Lock dir":        "what serves a mount is asked of a directory of it; no verb takes it, and nothing is opened by it",
	"devicelocal.Mount.Sends dir":       "the same",
	"seam.Space.Dir":                    "a directory of this machine that no verb may reach, as Settings has the vault",
	"seam.Settings.CheckApart dir":      "the same",
	"seam.Settings.Behind dir":          "the same",
	"seam.Settings.Mounted dir":         "the same",
	"seam.Settings.Through dir":         "the same",
	"project.Project.Root":              "a checkout is a directory of this machine, beside memory and not in it",
	"project.Repo.Root":                 "the same",
	"project.State.Root":                "the same",
	"project.Resolve root":              "the same",
	"project.Machine.Checkout root":     "the same",
	"flock.Exclusive path":              "a lock of this machine, beside what is seen and not in it",
	"flock.Shared path":                 "the same",
	"providertest.T.TempDir ret":        "what tests have of *testing.T; no part of the seam",
}

func TestNoPathCrossesTheSeam(t *testing.T) {
	used := map[string]bool{}
	for _, pkg := range loadPackages(t) {
		for _, leak := range leaks(pkg) {
			assert.False(t, mayBePath[leak] == "", "crosses the seam:", leak)
			used[leak] = true
		}
	}
	for exception := range mayBePath {
		assert.True(t, used[exception], "an exception for nothing:", exception)
	}
}

// The upkeep of derived tiers is a name, and nothing does it.
func TestNoDerivedMaintenance(t *testing.T) {
	var reserved *types.Interface
	pkgs := loadPackages(t)
	for _, pkg := range pkgs {
		if obj := pkg.Scope().Lookup("DerivedMaintenance"); obj != nil {
			reserved = obj.Type().Underlying().(*types.Interface)
		}
	}
	assert.Must(t, reserved != nil && reserved.NumMethods() == 2, "the interface is", reserved)
	for _, pkg := range pkgs {
		for _, name := range pkg.Scope().Names() {
			obj, is := pkg.Scope().Lookup(name).(*types.TypeName)
			if !is || types.IsInterface(obj.Type()) {
				continue
			}
			does := types.Implements(obj.Type(), reserved) || types.Implements(types.NewPointer(obj.Type()), reserved)
			assert.False(t, does, pkg.Name()+"."+name, "maintains derived tiers")
		}
	}
}

// The walk finds each kind of leak, and nothing else.
func TestLeaksAreFound(t *testing.T) {
	const source = `package p
import ("io/fs"; "os"; "io")
type A struct { F *os.File; f *os.File; Path string; Name string }
type B interface { Open() (fs.FS, error); Close() error }
type c struct { Root *os.Root }
func (c) Exported(fs.FileInfo) {}
func D() map[string][]c { return nil }
func E(dir string, name string) func(file string) { return nil }
func G(paths []string, r io.Reader) chan<- *os.File { return nil }
func H() (path string) { return "" }
func WorkDir() string { return "" }
var V os.DirEntry
func hidden(*os.File) {}
type R = os.Root
type Generic[T any] struct { X T }
func I() Generic[*os.File] { return Generic[*os.File]{} }
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	assert.OK(t, err)
	config := types.Config{Importer: exportImporter(t, fset, "io/fs", "os", "io")}
	pkg, err := config.Check("p", fset, []*ast.File{file}, nil)
	assert.OK(t, err)
	want := []string{
		"p.A.F os.File", "p.A.Path", "p.B.Open ret io/fs.FS", "p.D ret.Root os.Root", "p.D ret.Exported  io/fs.FileInfo", "p.E dir",
		"p.E ret file", "p.G paths", "p.G ret os.File", "p.H ret path", "p.WorkDir ret", "p.V io/fs.DirEntry", "p.R os.Root", "p.I ret os.File",
	}
	got := leaks(pkg)
	slices.Sort(want)
	assert.True(t, slices.Equal(got, want), "got", got, "want", want)
}

// exportImporter imports from what the compiler exported.
func exportImporter(t *testing.T, fset *token.FileSet, patterns ...string) types.Importer {
	t.Helper()
	exports := map[string]string{}
	for _, line := range goList(t, append([]string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, patterns...)...) {
		path, export, _ := strings.Cut(line, " ")
		exports[path] = export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return strings.Split(strings.TrimSpace(string(assert.Of(cmd.Output()).OK(t, "go list", stderr.String()))), "\n")
}

func loadPackages(t *testing.T) []*types.Package {
	t.Helper()
	names := goList(t, "./...")
	importer := exportImporter(t, token.NewFileSet(), "./...")
	var pkgs []*types.Package
	for _, name := range names {
		if strings.Contains(name, "/internal/") {
			continue // other packages do not see it
		}
		pkgs = append(pkgs, assert.Of(importer.Import(name)).OK(t))
	}
	assert.Must(t, len(pkgs) >= 5, "only", len(pkgs), "packages")
	return pkgs
}

// leaks are the places of pkg's exported API where a file or path shows.
func leaks(pkg *types.Package) []string {
	w := &walker{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			w.object(pkg.Name()+"."+name, obj)
		}
	}
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

type walker struct {
	pkg   *types.Package
	stack []types.Type // under way, so that recursive types end
	found []string
}

func (w *walker) object(at string, obj types.Object) {
	switch o := obj.(type) {
	case *types.Const:
		return
	case *types.Func:
		w.function(at, o)
		return
	}
	w.named(at, obj.Name(), obj.Type())
	if name, ok := obj.(*types.TypeName); ok && !name.IsAlias() {
		w.inside(at, obj.Type())
	}
}

// named checks a variable, field or parameter: its name if it holds strings,
// and its type.
func (w *walker) named(at, name string, typ types.Type) {
	if pathLike.MatchString(name) && isString(typ) {
		w.found = append(w.found, at)
	}
	w.typ(at, typ)
}

func isString(typ types.Type) bool {
	switch t := typ.Underlying().(type) {
	case *types.Basic:
		return t.Info()&types.IsString != 0
	case *types.Slice:
		return isString(t.Elem())
	}
	return false
}

// typ checks what a type is made of.
func (w *walker) typ(at string, typ types.Type) {
	switch t := types.Unalias(typ).(type) {
	case *types.Named:
		w.use(at, t)
	case *types.Map:
		w.typ(at, t.Key())
		w.typ(at, t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		w.typ(at, t.Elem())
	case *types.Signature:
		w.signature(at, t)
	case *types.Struct, *types.Interface:
		w.inside(at, t)
	}
}

// use checks a named type where it is used. Exported types of the package are
// walked where they are declared.
func (w *walker) use(at string, t *types.Named) {
	for arg := range t.TypeArgs().Types() {
		w.typ(at, arg)
	}
	obj := t.Obj()
	if obj.Pkg() == nil {
		return
	}
	if banned[obj.Pkg().Path()] {
		w.found = append(w.found, at+" "+obj.Pkg().Path()+"."+obj.Name())
	}
	if obj.Pkg() == w.pkg && !obj.Exported() {
		w.inside(at, t)
	}
}

// inside checks fields and methods.
func (w *walker) inside(at string, typ types.Type) {
	if slices.Contains(w.stack, typ) {
		return
	}
	w.stack = append(w.stack, typ)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	if t, ok := typ.(*types.Named); ok {
		for method := range t.Methods() {
			if method.Exported() {
				w.function(at+"."+method.Name(), method)
			}
		}
	}
	switch t := typ.Underlying().(type) {
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() {
				w.named(at+"."+field.Name(), field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			if method.Exported() {
				w.function(at+"."+method.Name(), method)
			}
		}
	default:
		w.typ(at, t)
	}
}

func (w *walker) function(at string, f *types.Func) {
	w.signatureOf(at, f.Name(), f.Signature())
}

func (w *walker) signature(at string, s *types.Signature) { w.signatureOf(at, "", s) }

// signatureOf also takes the function's name for that of a result without one.
func (w *walker) signatureOf(at, name string, s *types.Signature) {
	for v := range s.Params().Variables() {
		w.named(at+" "+v.Name(), v.Name(), v.Type())
	}
	for v := range s.Results().Variables() {
		if v.Name() != "" {
			w.named(at+" ret "+v.Name(), v.Name(), v.Type())
		} else {
			w.named(at+" ret", name, v.Type())
		}
	}
}
