package mountspec

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// forbiddenImports are what the package must not reach, with the reason.
var forbiddenImports = map[string]string{
	"net":        "parsing talks to nobody",
	"net/http":   "parsing talks to nobody",
	"net/mail":   "it imports net",
	"crypto/tls": "parsing talks to nobody",
	"os/exec":    "parsing starts nothing",
	"os/user":    "a manifest means the same for every user",
	"io/ioutil":  "parsing reads no file",
	"plugin":     "parsing loads nothing",
	"syscall/js": "parsing runs anywhere",
}

// TestImports walks what the package imports, transitively. os is reached
// through fmt only: neither we nor a module of another imports it.
func TestImports(t *testing.T) {
	out := assert.Of(exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports", ".").Output()).OK(t)
	ours := map[string]bool{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		reason, bad := forbiddenImports[p.ImportPath]
		assert.False(t, bad, p.ImportPath, "is reached", reason)
		if p.Standard {
			continue
		}
		ours[p.ImportPath] = true
		for _, direct := range []string{"os", "syscall", "unsafe", "io/fs", "path/filepath"} {
			assert.False(t, slices.Contains(p.Imports, direct), p.ImportPath, "imports", direct, "a parser has no use for it")
		}
	}
	for path := range ours {
		if path != "gopkg.in/yaml.v3" && !strings.HasSuffix(path, "/mountspec") && !strings.HasSuffix(path, "/mountspec/internal/jsonschema") {
			t.Errorf("%s is imported: this package imports none of ours, but what its schemas are made of, and one module", path)
		}
	}
	assert.Equal(t, len(ours), 3, "packages that are not standard")
}
