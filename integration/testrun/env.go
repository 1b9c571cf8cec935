package testrun

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// WithoutEnv takes from a test what the environment of this machine says, in variables whose
// names begin so.
func WithoutEnv(t testing.TB, prefixes ...string) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Setenv(name, "") // which puts it back in the end
			assert.OK(t, os.Unsetenv(name))
		}
	}
}
