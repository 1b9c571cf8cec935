package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// Mounts of one state directory keep no more clean content together than they were
// told, whoever fetched it, and lose nothing: what is unsent stays, and the rest is
// fetched again. The bound is exact once nothing is open and each has looked what
// the others hold, which it does once a second; meanwhile they may be above it by
// what they take in that second.
func TestTotalCacheSize(t *testing.T) {
	t.Parallel()
	const total, files, size = 1 << 20, 20, 128 << 10
	w := harness.New(t, harness.Options{})
	services := map[string]*harness.Service{"a": w.Service(), "b": w.Service(), "unsent": w.Service("-repository")}
	config := "allow_paths: ["
	for slug, s := range services {
		config += " " + filepath.Dir(s.Socket) + ","
		storage := s.Storage("")
		if slug == "unsent" {
			storage = "storage: {inline: {provider: memory, config: {clone: a, branch: main, socket: " + s.Socket + "}, sync: {mode: pull-push, commit: {on: manual}}}}"
		}
		w.Mkdir("ws-"+slug, 0o755)
		w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, storage+"\n"), 0o644)
		w.MustRun("registry", "add", w.Path("ws-"+slug))
	}
	w.Write("config/wsmount/config.yaml", config+" ]\n", 0o600)
	mounts := map[string]*harness.Mount{}
	for slug := range services {
		mounts[slug] = w.Mount("@acme/"+slug, "--total-cache-size", "1MiB")
	}
	held := func(slug string) (bytes int64) {
		found := assert.Of(filepath.Glob(w.Path("state", "acme", slug, "*", "copy", "data", "*", "*"))).OK(t)
		for _, name := range found {
			var st syscall.Stat_t
			if syscall.Lstat(name, &st) == nil { // else it went meanwhile
				bytes += st.Blocks * 512
			}
		}
		return bytes
	}
	content := func(slug string, i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%s %d\n", slug, i), size/10) }
	same := func(slug string) {
		t.Helper()
		for i := range files {
			got, err := os.ReadFile(fmt.Sprintf("%s/%d", mounts[slug].Dir, i))
			assert.True(t, err == nil && bytes.Equal(got, content(slug, i)), slug, "file", i, len(got), err)
		}
	}
	together := func() bool { return held("a")+held("b") <= total }
	for _, slug := range []string{"unsent", "a", "b"} {
		for i := range files {
			assert.OK(t, os.WriteFile(fmt.Sprintf("%s/%d", mounts[slug].Dir, i), content(slug, i), 0o644), "write")
		}
	}
	harness.Eventually(t, "two mounts keep the bound together", together)
	unsent := held("unsent")
	assert.True(t, unsent >= files*(size-size/10), "of what is unsent", unsent, "bytes are here")
	harness.Eventually(t, "each of the two has some of it", func() bool { return held("a") > 0 && held("b") > 0 })
	same("a")
	same("b")
	same("unsent")
	harness.Eventually(t, "they keep it when all was read again", together)
	assert.Equal(t, held("unsent"), unsent, "bytes of what is unsent that are here")
	mounts["b"].Stop()
	before := held("b")
	harness.Eventually(t, "one that is alone has all the room", func() bool {
		same("a")
		return held("a") > total*3/4
	})
	assert.Equal(t, held("b"), before, "what is not mounted changed from")
}
