package direct

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// An open waits for whoever has a lease on the file, as on the disk.
func TestOpenOfALeasedFile(t *testing.T) {
	v, dir := serve(t, Options{})
	writeFile(t, "x", dir, "f")
	e := lookup(t, v, wsfs.RootIno, "f")
	f := must[*os.File](t)(os.Open(filepath.Join(dir, "f")))
	defer f.Close()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGIO)
	defer signal.Stop(broken)
	must[int](t)(unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK))
	given := make(chan error)
	go func() {
		<-broken
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		given <- err
	}()
	o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_WRONLY))
	ok(t, <-given)
	o.File.Release()
}

// A new file's attributes are good for the open that made it and no longer.
func TestTTLOfANewFile(t *testing.T) {
	needRoot(t)
	v, _ := serve(t, Options{Watch: true})
	e, o, err := v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	defer o.File.Release()
	assert.Equal(t, e.Attr.TTL, newTTL, "new")
	assert.Equal(t, must[wsfs.Attr](t)(v.Attr(op(), e.Ino, o.File)).TTL, 0, "open for writing")
}
