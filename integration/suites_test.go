// Package integration tests the built program from the outside: it is mounted
// as a separate process, and everything is asked through the kernel or the
// command line. What WSMOUNT_REQUIRE names must be there (fuse, root, a tool,
// or all); otherwise a test that misses something is skipped.
package integration

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/hanwen/go-fuse/v2/posixtest"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/integration/posix"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) {
	if posix.IsChild() || os.Getenv(borrowedEnv) != "" {
		os.Exit(m.Run())
	}
	if job := os.Getenv(holdEnv); job != "" {
		hold(job)
		return
	}
	harness.Main(m)
}

// userID is nobody's: fusermount asks that a user has a name.
const userID = 65534

// A flavour is a way to mount a local workspace.
type flavour struct {
	name, mode string // sync mode of the manifest
	flags      []string
	user       bool     // mounted and used by an ordinary user
	without    []string // of the POSIX suite: what is as in a flavour before
}

var flavours = []flavour{
	{name: "watch", mode: "watch"},
	{name: "canonical", mode: "canonical", without: posix.Long},
	{name: "without passthrough", mode: "watch", flags: []string{"--no-passthrough"}, without: []string{"readdir"}},
	{name: "ordinary user", mode: "watch", user: true, without: posix.Long},
}

// mount mounts one workspace in this flavour and returns the mount and the
// directory behind it. Root lets others in: the suites act for several users.
func (f flavour) mount(t *testing.T) (*harness.Mount, string) {
	t.Helper()
	if f.user {
		tier.RequireRoot(t)
		w := harness.New(t, harness.Options{UID: userID})
		ws := w.Workspace("@acme/suite", f.mode)
		return w.Mount(ws, f.flags...), ws
	}
	w := harness.New(t, harness.Options{})
	ws := w.Workspace("@acme/suite", f.mode)
	flags := f.flags
	if os.Geteuid() == 0 {
		flags = append(slices.Clone(flags), "--allow-other")
	}
	return w.Mount(ws, flags...), ws
}

// posixLeftOut are the cases of the POSIX suite that a mount is known to fail,
// with the reason.
var posixLeftOut = map[string]string{}

func TestPosix(t *testing.T) {
	t.Parallel()
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			m, _ := f.mount(t)
			o := posix.Options{LeftOut: posixLeftOut, Without: f.without}
			if f.user {
				posix.RunAs(t, m.Dir, userID, o)
				return
			}
			posix.RunApart(t, m.Dir, o)
		})
	}
}

// A mount of root's, used by an ordinary user.
func TestPosixOtherUser(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	m, _ := flavours[0].mount(t)
	dir := m.Dir + "/open"
	assert.OK(t, os.Mkdir(dir, 0o777))
	assert.OK(t, os.Chmod(dir, 0o777))
	posix.RunAs(t, dir, userID, posix.Options{LeftOut: posixLeftOut, Without: slices.Concat(posix.Long, posix.Content)})
}

func TestPosixChild(t *testing.T) { posix.Child(t) }

// borrowedLeftOut are the tests of go-fuse's suite that are not run, with the
// reason.
var borrowedLeftOut = map[string]string{
	"FcntlFlockLocksFile": "wants a process to be refused by its own fcntl lock, which no local file system does (ext4 fails it)",
}

// dearLeftOut is borrowedLeftOut where what a program makes is sent while it waits, or
// committed meanwhile, or is made just as in another mount.
func dearLeftOut() map[string]string {
	leftOut := maps.Clone(borrowedLeftOut)
	if !tier.Soak {
		leftOut["OpenSymlinkRace"] = "its 4 000 names take minutes, which make soak has; it runs in one local mount"
	}
	return leftOut
}

func TestBorrowedPosix(t *testing.T) {
	t.Parallel()
	for _, f := range flavours {
		if f.user {
			continue // root cannot enter the mount of another user
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			m, _ := f.mount(t)
			leftOut := borrowedLeftOut
			if f.name != flavours[0].name {
				leftOut = dearLeftOut()
			}
			borrowed(t, m.Dir, leftOut)
		})
	}
}

// borrowed runs go-fuse's suite below a directory, in a process of its own: it opens
// files so that programs which the tests beside it start would have them too, and keep
// the mount in use.
func borrowed(t *testing.T, dir string, leftOut map[string]string) {
	t.Helper()
	job := assert.Of(json.Marshal(borrowedJob{dir, leftOut})).OK(t, "marshal")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestBorrowedChild$", "-test.v")
	cmd.Env = append(os.Environ(), borrowedEnv+"="+string(job))
	out, err := cmd.CombinedOutput()
	assert.True(t, err == nil && bytes.Contains(out, []byte("--- PASS: TestBorrowedChild/")), out, err)
}

// borrowedEnv carries a job to the process that does it.
const borrowedEnv = "WSMOUNT_TEST_BORROWED"

type borrowedJob struct {
	Dir     string
	LeftOut map[string]string // with the reason
}

func TestBorrowedChild(t *testing.T) {
	var job borrowedJob
	if text := os.Getenv(borrowedEnv); text == "" {
		return
	} else if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(posixtest.All)) {
		t.Run(name, func(t *testing.T) {
			if reason, ok := job.LeftOut[name]; ok {
				t.Logf("left out: %s", reason)
				return
			}
			below := job.Dir + "/" + name
			assert.OK(t, os.Mkdir(below, 0o755))
			posixtest.All[name](t, below)
		})
	}
}

func TestFS(t *testing.T) {
	t.Parallel()
	for _, f := range flavours {
		if f.user {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			m, _ := f.mount(t)
			walkable(t, m.Dir)
		})
	}
}

// walkable runs the suite of io/fs on a tree.
func walkable(t *testing.T, dir string) {
	t.Helper()
	files := []string{"a", "d/b", "d/e/c", "d/e/with blank", "empty"}
	for _, sub := range []string{"d/e", "none"} {
		assert.OK(t, os.MkdirAll(dir+"/"+sub, 0o755))
	}
	for _, name := range files {
		assert.OK(t, os.WriteFile(dir+"/"+name, []byte("content of "+name), 0o644))
	}
	assert.OK(t, os.Symlink("a", dir+"/link"))
	assert.OK(t, fstest.TestFS(os.DirFS(dir), append(files, "link", "none")...))
}

// With the watch others' changes are seen at once; without it the kernel's
// memory would hide them for up to a second, so there the tree is remounted.
func TestModel(t *testing.T) {
	t.Parallel()
	t.Run("changes behind the mount", func(t *testing.T) {
		t.Parallel()
		m, behind := flavours[0].mount(t)
		model.Run(t, model.Subject{Dir: m.Dir, Behind: behind}, model.Options{})
	})
	t.Run("remounts", func(t *testing.T) {
		t.Parallel()
		m, _ := flavours[1].mount(t)
		model.Run(t, model.Subject{Dir: m.Dir, Remount: func() error { m.Stop(); m.Start(); return nil }}, model.Options{})
	})
}

// A bucket's working copy passes the same suites as a local directory, whether
// closes wait for the bucket or not. Where they do, there is time for the longest of
// them in make soak only.
func TestBucketSuites(t *testing.T) {
	t.Parallel()
	for _, f := range tier.Pick(served(), everywhere()) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			c := f.mount(t)
			c.fill()
			t.Cleanup(func() { c.w.MustRun("commit", "--confirm", c.Dir) }) // the suites have removed most of what they made
			if f.later() || tier.Soak {
				c.suites(t, &posix.Options{LeftOut: f.leftOut()})
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

// leftOut are those of a flavour of a bucket.
func (f copyFlavour) leftOut() map[string]string {
	all := maps.Clone(bucketLeftOut)
	if f.server == "azure" {
		all["name/case, normal forms and dots are kept apart"] = "Azure drops a dot at the end of a name, so none is made"
	}
	return all
}
