package git_test

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// TestSeam: a branch is a place for memory, though it has no empty directories, and keeps
// no times of files.
func TestSeam(t *testing.T) {
	t.Parallel()
	empty := gitserver.Start(t).Create(t, "empty")
	first := place(t)
	assert.OK(t, clone(t, empty.URL, func(o *git.Options) { o.Dir = first }).Close())
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		return seam.New(clone(t, empty.URL, func(o *git.Options) {
			assert.OK(t, os.CopyFS(o.Dir, os.DirFS(first)), "copy")
		}))
	}, "info/time")
}
