package integration

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A name that no bucket can have is refused when it is given, and close succeeds
// for every file that could be opened.
func TestBucketNames(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bucketStage) {
		m := b.w.Mount("@acme/bucket")
		put := func(name string) error { return os.WriteFile(m.Dir+"/"+name, []byte("x"), 0o644) }
		if err := put("plain"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"x%2F", "%2F%2F%2F", "latin1 \xe9", "%~.."} {
			var failed *os.PathError
			if err := put(name); !errors.As(err, &failed) || failed.Op != "open" || failed.Err != syscall.EINVAL {
				t.Errorf("create of %q: %v", name, err)
			}
			if err := os.Mkdir(m.Dir+"/"+name, 0o755); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("mkdir of %q: %v", name, err)
			}
			if err := os.Rename(m.Dir+"/plain", m.Dir+"/"+name); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("rename to %q: %v", name, err)
			}
		}
		deep := strings.Repeat("/"+strings.Repeat("d", 200), 4)
		if err := os.MkdirAll(m.Dir+deep, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := put(deep + "/" + strings.Repeat("f", 240)); !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("a path that is too long: %v", err)
		}
		log, err := os.ReadFile(m.Dir + "/.wsmount/errors.log")
		if err != nil || !strings.Contains(string(log), "ends in %2F means another") {
			t.Errorf("errors.log does not say why: %q, %v", log, err)
		}
		for _, name := range []string{"x%2F%2F", "%2F%2F", "%2f", "%2Fx", "%~x", "line\nbreak"} {
			if err := put(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		want := b.lines(m.Dir)
		m.Stop()
		if err := os.RemoveAll(b.w.Path("state", "acme")); err != nil {
			t.Fatal(err)
		}
		m.Start()
		b.same("in the bucket", m.Dir, want)
	})
}
