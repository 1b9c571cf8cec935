package integration

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/posix"
	"github.com/wsmount/wsmount/integration/tier"
)

// A bucket's working copy passes the same suites as a local directory, whether
// closes wait for the bucket or not. Where they do, there is time for the longest of
// them in make soak only.
func TestBucketSuites(t *testing.T) {
	t.Parallel()
	for _, f := range served() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			c := f.mount(t)
			c.fill()
			leftOut := borrowedLeftOut
			if f.later() || tier.Soak {
				t.Run("posix", func(t *testing.T) {
					posix.RunApart(t, c.suite("posix"), posix.Options{LeftOut: bucketLeftOut})
				})
			} else {
				leftOut = dearLeftOut()
			}
			t.Run("borrowed", func(t *testing.T) { borrowed(t, c.suite("borrowed"), leftOut) })
			t.Run("fs", func(t *testing.T) { walkable(t, c.suite("fs")) })
			c.w.MustRun("commit", "--confirm", c.Dir) // the suites have removed most of what they made
		})
	}
}

// suite makes a directory of the mount in which anybody may work.
func (c *workingCopy) suite(name string) string {
	c.t.Helper()
	dir := c.Dir + "/" + name
	c.must(os.Mkdir(dir, 0o777))
	c.must(os.Chmod(dir, 0o777))
	return dir
}

// bucketLeftOut are the cases of the POSIX suite that the mount of a bucket is
// known to fail, with the reason.
var bucketLeftOut = map[string]string{
	"name/any byte but NUL and slash": "keys of S3 are UTF-8, so other names are refused",
	"mkdir/deep trees":                "a key of S3 has 1024 bytes, so paths that are longer are refused",
}
