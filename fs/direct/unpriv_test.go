package direct

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// The tests run once more as a user without privileges, in a process of his.
func TestUnprivileged(t *testing.T) {
	needRoot(t)
	tmp, err := os.MkdirTemp("", "unprivileged")
	ok(t, err)
	defer os.RemoveAll(tmp)
	ok(t, os.Chown(tmp, nobody, nobody))
	cmd := exec.Command("/proc/self/exe",
		"-test.run", "Names|Errno|ReadWrite|Truncates|Holes|Times|Tmpfile|Rename|Xattr|DirStream|Unlinked|Removed|Other|Replaced|NoWayOut|Umask|Existing|DirectIO|Closed|Watch|TTL")
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "WSMOUNT_REQUIRE=") // what needs root ran above
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "...", out)
}

// A directory that may be passed through and not read serves what is named.
func TestClosedDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root may read everything; TestUnprivileged runs it
	}
	v, dir := serve(t, Options{})
	ok(t, os.MkdirAll(dir+"/d", 0o755))
	writeFile(t, "x", dir, "d", "f")
	ok(t, os.Chmod(dir+"/d", 0o311))
	defer os.Chmod(dir+"/d", 0o755)
	d := lookup(t, v, 1, "d")
	f := lookup(t, v, d.Ino, "f")
	o, err := v.Open(op(), f.Ino, 0)
	ok(t, err)
	got := read(t, o.File)
	assert.True(t, got == "x" && !o.PassRead, got, "passthrough", o.PassRead)
	o.File.Release()
	create(t, v, d.Ino, "g", "y")
	_, err = v.OpenDir(op(), d.Ino)
	wantErr(t, err, syscall.EACCES)
}
