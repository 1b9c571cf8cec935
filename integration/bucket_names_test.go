package integration

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A name that no bucket can have is refused when it is given, and close succeeds
// for every file that could be opened.
func TestBucketNames(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bucketStage) {
		m := b.w.Mount("@acme/bucket")
		put := func(name string) error { return os.WriteFile(m.Dir+"/"+name, []byte("x"), 0o644) }
		assert.OK(t, put("plain"))
		for _, name := range []string{"x%2F", "%2F%2F%2F", "latin1 \xe9", "%~.."} {
			var failed *os.PathError
			if err := put(name); !errors.As(err, &failed) || failed.Op != "open" || failed.Err != syscall.EINVAL {
				t.Errorf("create of %q: %v", name, err)
			}
			assert.Is(t, os.Mkdir(m.Dir+"/"+name, 0o755), syscall.EINVAL, "mkdir of", name)
			assert.Is(t, os.Rename(m.Dir+"/plain", m.Dir+"/"+name), syscall.EINVAL, "rename to", name)
		}
		deep := strings.Repeat("/"+strings.Repeat("d", 200), 4)
		assert.OK(t, os.MkdirAll(m.Dir+deep, 0o755))
		assert.Is(t, put(deep+"/"+strings.Repeat("f", 240)), syscall.ENAMETOOLONG, "a path that is too long")
		log, err := os.ReadFile(m.Dir + "/.wsmount/errors.log")
		if err != nil || !strings.Contains(string(log), "ends in %2F means another") {
			t.Errorf("errors.log does not say why: %q, %v", log, err)
		}
		for _, name := range []string{"x%2F%2F", "%2F%2F", "%2f", "%2Fx", "%~x", "line\nbreak"} {
			assert.Is(t, put(name), nil, name)
		}
		want := b.lines(m.Dir)
		m.Stop()
		assert.OK(t, os.RemoveAll(b.w.Path("state", "acme")))
		m.Start()
		b.same("in the bucket", m.Dir, want)
	})
}
