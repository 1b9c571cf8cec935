//go:build soak

package integration

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

var density = flag.Int("mounts", 200, "how many workspaces one machine has mounted; a fourth of it where programs have the race detector, for which there is no memory")

// One machine mounts many workspaces, half of them local and half of them in a bucket.
// Programs work in all of them at once, every byte gets to where it belongs, and it is
// told how much memory each daemon has. It takes minutes, and gigabytes: it is why this
// is a test of make soak.
func TestDensity(t *testing.T) {
	t.Parallel()
	n := *density
	if harness.Race {
		n /= 4
	}
	w := harness.New(t, harness.Options{})
	s := s3server.Start(t, s3server.Versitygw)
	b := harness.S3(s)
	w.Grant(b, s.Endpoint)
	mounts, behind := make([]*harness.Mount, n), make([]string, n) // behind: "" in a bucket
	for i := range n {
		slug := fmt.Sprintf("w%d", i)
		if i%2 == 0 {
			behind[i] = w.Workspace("@acme/"+slug, "canonical")
			mounts[i] = w.Mount(behind[i])
		} else {
			w.BucketWorkspace(b, slug, s.Endpoint, slug+"/", "mode: canonical")
			mounts[i] = w.Mount("@acme/" + slug)
		}
	}
	content := func(i, file int) []byte {
		return []byte(strings.Repeat(fmt.Sprintf("workspace %d, file %d\n", i, file), 1+file*500))
	}
	const files = 8
	everywhere := func(do func(i, file int) error) {
		t.Helper()
		var all errgroup.Group
		for i := range n {
			all.Go(func() error {
				for file := range files {
					if err := do(i, file); err != nil {
						return fmt.Errorf("workspace %d: %w", i, err)
					}
				}
				return nil
			})
		}
		assert.OK(t, all.Wait())
	}
	name := func(file int) string { return fmt.Sprintf("d%d/f%d", file%2, file) }
	everywhere(func(i, file int) error {
		path := filepath.Join(mounts[i].Dir, name(file))
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content(i, file), 0o644))
	})
	everywhere(func(i, file int) error {
		here, err := os.ReadFile(filepath.Join(mounts[i].Dir, name(file)))
		there, errThere := []byte(nil), error(nil)
		if behind[i] != "" {
			there, errThere = os.ReadFile(filepath.Join(behind[i], name(file)))
		} else {
			var object s3server.Object
			object, errThere = b.Look(t.Context(), fmt.Sprintf("w%d/%s", i, name(file)))
			there = object.Content
		}
		if want := string(content(i, file)); string(here) != want || string(there) != want {
			return errors.Join(fmt.Errorf("%s has %d bytes in the mount and %d behind it, want %d", name(file), len(here), len(there), len(want)), err, errThere)
		}
		return nil
	})
	for kind, first := range map[string]int{"local": 0, "of a bucket": 1} {
		var sizes []int
		for i := first; i < n; i += 2 {
			sizes = append(sizes, proportional(t, mounts[i].PID))
		}
		slices.Sort(sizes)
		t.Logf("%d mounts, %s: %d KiB each, %d at most", len(sizes), kind, sizes[len(sizes)/2], sizes[len(sizes)-1])
	}
}

// proportional is a process's memory in KiB, with its share of what others have too.
func proportional(t *testing.T, pid int) int {
	t.Helper()
	text := assert.Of(os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))).OK(t)
	_, rest, _ := strings.Cut(string(text), "\nPss:")
	return assert.Of(strconv.Atoi(strings.Fields(rest)[0])).OK(t)
}
