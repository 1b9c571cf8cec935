package direct

import (
	"strings"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// Open files do not take the last descriptors: everything else goes on.
func TestReserveOfDescriptors(t *testing.T) {
	v, dir := serve(t, Options{})
	writeFile(t, "x", dir, "f")
	f := lookup(t, v, wsfs.RootIno, "f")
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	v.fds.limit = int(v.fds.last.Load()) + 80
	var files []wsfs.File
	defer func() {
		for _, f := range files {
			f.Release()
		}
	}()
	var err error
	for err == nil {
		var o wsfs.Opened
		if o, err = v.Open(op(), f.Ino, unix.O_RDONLY); err == nil {
			files = append(files, o.File)
		}
	}
	wantErr(t, err, unix.EMFILE)
	n := len(files)
	assert.True(t, n >= 40, "only", n, "files")
	last := int(v.fds.last.Load())
	assert.True(t, last <= v.fds.limit-reserve(v.fds.limit), "descriptor", last, "of", v.fds.limit, "was taken")
	_, _, err = v.Create(op(), wsfs.RootIno, "g", unix.O_RDWR, 0o644)
	wantErr(t, err, unix.EMFILE)
	lookupNone(t, v, wsfs.RootIno, "g")
	_, _, err = v.Tmpfile(op(), wsfs.RootIno, unix.O_RDWR, 0o644)
	wantErr(t, err, unix.EMFILE)
	before := v.fds.open.Load()
	s := must[wsfs.Dir](t)(v.OpenDir(op(), d.Ino))
	s.Release()
	assert.Equal(t, v.fds.open.Load(), before, "descriptors: directories keep the reserve")
	ok(t, v.Rename(op(), wsfs.RootIno, "f", d.Ino, "f", 0))
	files[0].Release()
	files = files[1:]
	o := must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_RDONLY))
	files = append(files, o.File)
	ok(t, v.Unlink(op(), d.Ino, "f"))
}

// Freeing a small file is quicker than a goroutine that would do it; for a large
// one, nobody waits.
func TestOnlySmallFilesAreFreedAtOnce(t *testing.T) {
	v, dir := serve(t, Options{})
	for _, tt := range []struct {
		name  string
		bytes int
		quick bool
	}{{"small", 4096, true}, {"large", 4 << 20, false}} {
		writeFile(t, strings.Repeat("x", tt.bytes), dir, tt.name)
		e := lookup(t, v, wsfs.RootIno, tt.name)
		ok(t, v.Unlink(op(), wsfs.RootIno, tt.name))
		n, _ := v.tab.lock(e.Ino)
		assert.Equal(t, n.ext.pin.quick.Load(), tt.quick, tt.name, "at once")
		n.unlock()
		v.Forget(e.Ino, 1)
	}
}
