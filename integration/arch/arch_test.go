// Package arch keeps the house's import direction: which package may know
// which. A new edge that is not allowed fails here with the reason.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

const module = "github.com/wsmount/wsmount"

// A pkg is what `go list -json` says of a package, tests included.
type pkg struct {
	Dir, ImportPath                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// A layer is a part of the house and what of the house it may import. The
// first layer whose prefix matches a package counts.
type layer struct {
	prefix string
	may    []string
	why    string
}

var layers = []layer{
	{"cmd", []string{"cmd", "fs", "cache", "providers", "mountspec"}, "the program puts everything together"},
	{"cache", []string{"cache", "providers", "fs"}, "a working copy stands on a provider and is a volume; it knows no manifest"},
	{"fs/direct", []string{"fs"}, "a volume over a directory knows the volume's interface alone"},
	{"fs", nil, "the kernel's side knows no storage, so that any volume can be served"},
	{"providers", []string{"providers"}, "a provider knows one service, not who asks"},
	{"mountspec", []string{"mountspec"}, "reading a manifest does no I/O, so it reaches nothing that could"},
	{"integration", []string{"integration"}, "tests of the built program look from the outside"},
}

// An owner says which packages alone may import a module.
type owner struct {
	module string
	by     []string
	why    string
}

var owners = []owner{
	{"github.com/hanwen/go-fuse", []string{"fs", "integration"}, "one package speaks with the kernel (the tests borrow its POSIX suite)"},
	{"github.com/dgraph-io/ristretto", []string{"cache", "providers/git"}, "only what can be had again may be dropped: a working copy says what, and a repository inflates an object once more"},
	{"github.com/cockroachdb/pebble", []string{"cache"}, "one package owns the state"},
	{"github.com/urfave/cli", []string{"cmd/wsmount"}, "flags become options and stop there"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"cmd/internal/mcp", "integration"}, "one package speaks with agents (the tests are such a client)"},
	{"github.com/chromedp", []string{"integration"}, "a browser is driven by tests alone"},
	{"gopkg.in/yaml.v3", []string{"mountspec", "cmd/wsmount"}, "one package reads manifests and configuration"},
	{"github.com/aws/aws-sdk-go-v2", []string{"providers/s3", "integration/bench", "integration/s3server"}, "one package per service (the benchmark asks what the SDK can do without us, and the tests what a bucket really holds)"},
	{"github.com/Azure", []string{"providers/azure", "integration/bench", "integration/azureserver"}, "one package per service (the benchmark asks what the SDK can do without us, and the tests sign a URL for other programs)"},
	{"cloud.google.com", []string{"providers/gcs"}, "one package per service"},
	{"google.golang.org", []string{"providers/gcs", "integration/bench"}, "one package per service (the benchmark asks what the SDK can do without us)"},
	{"golang.org/x/oauth2", []string{"providers/gcs"}, "one package per service"},
	{"github.com/go-git", []string{"providers/git"}, "one package per service"},
	{"golang.org/x/crypto", []string{"providers/git", "integration/gitserver"}, "one package reaches servers over SSH, and one is such a server for tests"},
	{"github.com/google/go-github", []string{"providers/git"}, "one package per service"},
	{"github.com/getkin/kin-openapi", []string{"integration/gitserver"}, "one package reads what an API says of itself, and only for tests"},
	{"github.com/bradleyfalzon/ghinstallation", []string{"providers/git"}, "one package per service"},
}

func TestImportDirection(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			assert.Equal(t, forbidden(p.ImportPath, imported), "", p.ImportPath, "imports", imported)
		}
	}
}

// borrowed are the packages that any test may import.
var borrowed = []string{"integration/posix", "integration/s3server", "integration/azureserver", "integration/gcsserver", "integration/gitserver", "integration/memoryserver", "integration/memoryrepo",
	"integration/tier", "integration/assert", "integration/rows", "integration/testrun", "providers/memory"}

// Tests keep the same direction, but for seven conveniences: the memory provider
// stands in for a service, which tests from the outside control in the seam's
// words, the POSIX suite runs on any directory, a provider's tests start the
// servers that the program's tests start, every test asks which tier it is in
// and says what it wants in the same words, and what mounts runs where a killed run
// leaves nothing.
func TestImportDirectionOfTests(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range append(p.TestImports, p.XTestImports...) {
			in := house(imported)
			outside := in == "providers" && under(house(p.ImportPath), "integration")
			if in == "" || slices.Contains(borrowed, in) || outside {
				continue
			}
			assert.Equal(t, forbidden(p.ImportPath, imported), "", "a test of", p.ImportPath, "imports", imported)
		}
	}
}

// A package whose tests draw by rapid has their seed fixed, which importing the tiers is
// enough for.
func TestSeedsAreFixed(t *testing.T) {
	for _, p := range packages(t) {
		tests := append(p.TestImports, p.XTestImports...)
		if slices.Contains(tests, "pgregory.net/rapid") {
			assert.True(t, slices.Contains(tests, module+"/integration/tier"), p.ImportPath, "does not import integration/tier")
		}
	}
}

// What a test mounts or makes in a directory for temporary files is swept after a run that
// was killed, if the package's tests are such a run.
func TestMountsAreSwept(t *testing.T) {
	leaves := regexp.MustCompile(`\b(unix|syscall)\.Mount\(|\bos\.MkdirTemp\(`)
	isRun := regexp.MustCompile(`\bMain\(m\b`) // of testrun, or of the harness, which begins one
	for _, p := range packages(t) {
		var tests []byte
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			tests = append(tests, assert.Of(os.ReadFile(filepath.Join(p.Dir, name))).OK(t)...)
		}
		assert.True(t, !leaves.Match(tests) || isRun.Match(tests), p.ImportPath, "leaves something to sweep, without integration/testrun")
	}
}

// Each rule is tried on an edge that it forbids and on one that it allows.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"cmd/wsmount", "fs/direct", true}, {"cmd/internal/daemon", "providers/all", true},
		{"cmd/internal/daemon", "providers/memory", false}, {"cache", "providers", true}, {"cache", "mountspec", false},
		{"cache", "providers/s3", false}, {"cache", "fs/direct", false}, {"fs", "cache", false}, {"fs", "mountspec", false},
		{"fs/direct", "fs", true}, {"fs/direct", "providers", false}, {"providers/s3", "providers", true},
		{"providers/s3", "providers/memory", false}, {"providers/git", "providers/git/internal/odb", true}, {"providers/s3", "providers/git/internal/odb", false}, {"providers/all", "providers/memory", true}, {"providers/all", "providers/seam/devicelocal", true}, {"providers/seam", "providers/seam/devicelocal", false}, {"cmd/internal/doctor", "providers/seam/devicelocal", false}, {"cmd/internal/doctor", "providers/seam", true}, {"providers", "fs", false},
		{"providers/s3", "providers/internal/bucket", true}, {"providers/gcs", "providers/internal/bucket", true}, {"providers/internal/bucket", "providers", true},
		{"providers/internal/bucket", "providers/s3", false}, {"providers/internal/bucket", "providers/memory", false}, {"providers/internal/bucket", "integration/tier", false},
		{"providers/memory", "providers/internal/bucket", false}, {"cache", "providers/internal/bucket", false}, {"cmd/wsmount", "providers/internal/bucket", false}, {"providers/all", "providers/internal/bucket", false},
		{"mountspec/host", "mountspec/policy", true}, {"mountspec", "providers", false}, {"integration", "fs", false},
		{"integration/internal/memoryd", "providers/memory", true}, {"integration/bench", "providers/memory", true}, {"integration/internal/harness", "providers/memory", false},
		{"integration/memoryserver", "providers/memory/wire", true}, {"integration/memoryrepo", "providers/memory", true}, {"integration/memoryrepo", "providers/providertest", true}, {"integration/memoryserver", "providers/providertest", false}, {"providers/memory", "providers/memory/wire", true}, {"cmd/wsmount", "providers/memory/wire", false}, {"providers/memory", "integration/memoryserver", false},
	} {
		why := forbidden(module+"/"+c.from, module+"/"+c.to)
		assert.Equal(t, why == "", c.ok, c.from, "->", c.to, "got", why)
	}
	for _, o := range owners {
		assert.False(t, forbidden(module+"/providers", o.module+"/v2/x") == "", o.module, "providers may import it")
		assert.Equal(t, forbidden(module+"/"+o.by[0], o.module), "", o.module, o.by[0], "may not import it")
	}
}

// forbidden is the reason why from must not import to; empty when it may.
func forbidden(from, to string) string {
	in := house(from)
	if target := house(to); target != "" {
		return crossing(in, target)
	}
	for _, o := range owners {
		if under(to, o.module) && !underAny(in, o.by) {
			return o.why
		}
	}
	return ""
}

func crossing(from, to string) string {
	switch {
	case under(to, sharedByServices) && providerOf(from) == "" && !under(from, sharedByServices):
		return "what services have in common is for their providers alone"
	case under(from, sharedByServices) && to != "providers" && to != "providers/providertest" && !under(to, sharedByServices):
		return "what services have in common knows none of them"
	case under(from, "providers/all") && under(to, "providers"):
		return ""
	case from == "providers/providertest" && to == "integration/tier":
		return "" // a suite for tests asks which tier they are in, as they do
	case (from == "providers/seam/seamtest" || from == "cache/internal/history/historytest" || from == "cache/internal/table/tabletest") && to == "integration/assert":
		return "" // and says what it wants in their words
	case (from == "integration/internal/memoryd" || from == "integration/bench" || from == "integration/memoryserver" || from == "integration/memoryrepo") && (to == "providers" || under(to, "providers/memory")):
		return "" // the service that tests of the program mount, and what the benchmark does there as another
	case from == "integration/memoryrepo" && to == "providers/providertest":
		return "" // which stands in for a provider, and keeps the contract
	case under(from, "providers/memory") && under(to, "providers/memory"):
		return "" // its own
	case under(to, "providers/memory") || providerOf(to) != "":
		if from != to && !under(from, to) && (providerOf(to) == "" || !under(from, providerOf(to))) {
			return "a provider is reached through providers/all, by its name"
		}
	case under(from, "cache") && under(to, "fs/direct"), under(from, "fs/direct") && to != "fs" && !under(to, "fs/direct"):
		return "volumes do not know each other"
	}
	for _, l := range layers {
		if under(from, l.prefix) {
			if from == to || underAny(to, l.may) || under(to, l.prefix) && l.prefix != "fs" {
				return ""
			}
			return l.why
		}
	}
	return from + " has no rule here: add one"
}

// sharedByServices is what several providers stand on.
const sharedByServices = "providers/internal"

// providerOf is the provider of one service that a package is, or is a part of;
// "" if it is none.
func providerOf(p string) string {
	for _, service := range []string{"s3", "azure", "gcs", "git", "vault", "seam/devicelocal"} {
		if under(p, "providers/"+service) {
			return "providers/" + service
		}
	}
	return ""
}

// house is a package's path in this module, or empty.
func house(path string) string {
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func underAny(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if under(path, p) {
			return true
		}
	}
	return false
}

// packages lists every package of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=Dir,ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", module+"/...")
	out := assert.Of(cmd.Output()).OK(t, "go list")
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	assert.Must(t, len(all) >= 10, "go list:", len(all), "packages")
	return all
}
