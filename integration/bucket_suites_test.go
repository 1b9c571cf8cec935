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
			t.Cleanup(func() { c.w.MustRun("commit", "--confirm", c.Dir) }) // the suites have removed most of what they made
			if f.later() || tier.Soak {
				c.suites(t, &posix.Options{LeftOut: bucketLeftOut})
			} else {
				c.suites(t, nil)
			}
		})
	}
}

// suites has the suites run side by side at the end of the test, each in a directory in
// which anybody may work: the POSIX suite where it has options.
func (c *workingCopy) suites(t *testing.T, o *posix.Options) {
	t.Helper()
	all := map[string]func(t *testing.T, dir string){
		"borrowed": func(t *testing.T, dir string) { borrowed(t, dir, dearLeftOut()) },
		"fs":       walkable,
	}
	if o != nil {
		all["posix"] = func(t *testing.T, dir string) { posix.RunApart(t, dir, *o) }
	}
	for name, run := range all {
		dir := c.Dir + "/" + name
		c.must(os.Mkdir(dir, 0o777))
		c.must(os.Chmod(dir, 0o777))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, dir)
		})
	}
}

// bucketLeftOut are the cases of the POSIX suite that the mount of a bucket is
// known to fail, with the reason.
var bucketLeftOut = map[string]string{
	"name/any byte but NUL and slash": "keys of S3 are UTF-8, so other names are refused",
	"mkdir/deep trees":                "a key of S3 has 1024 bytes, so paths that are longer are refused",
}
