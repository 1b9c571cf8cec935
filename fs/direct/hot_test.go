package direct

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"golang.org/x/sys/unix"
)

// openAsKernel opens a name as open(2) does: when the first answer is ESTALE it
// looks up and opens once more, and no more than once. between is what happens
// after each lookup.
func openAsKernel(v *Volume, name string, between func()) (wsfs.Opened, error) {
	var o wsfs.Opened
	var err error
	for range 2 {
		var e wsfs.Entry
		e, err = v.Lookup(op(), wsfs.RootIno, name)
		if err == nil && e.Ino == 0 {
			return o, syscall.ENOENT
		}
		if err == nil {
			between()
			o, err = v.Open(op(), e.Ino, unix.O_RDONLY)
			v.Forget(e.Ino, 1)
		}
		if err != syscall.ESTALE {
			break
		}
	}
	return o, err
}

// A name that is replaced all the time, by us or by others, can always be
// opened.
func TestOpenWhileReplaced(t *testing.T) {
	for _, c := range []struct {
		name    string
		replace func(v *Volume, dir string) error
	}{
		{"by us", func(v *Volume, dir string) error {
			e, o, err := v.Create(op(), wsfs.RootIno, "tmp", unix.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			o.File.Write(op(), []byte("whole"), 0)
			o.File.Release()
			defer v.Forget(e.Ino, 1)
			return v.Rename(op(), wsfs.RootIno, "tmp", wsfs.RootIno, "f", 0)
		}},
		{"by others", func(_ *Volume, dir string) error {
			tmp := filepath.Join(dir, "tmp")
			if err := os.WriteFile(tmp, []byte("whole"), 0o644); err != nil {
				return err
			}
			return os.Rename(tmp, filepath.Join(dir, "f"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now() // a hot name cools by the clock, however slow the machine is
			v, dir := serve(t, Options{Now: func() time.Time { return now }})
			writeFile(t, "whole", dir, "f")
			for range 3 * hotMost {
				o, err := openAsKernel(v, "f", func() { ok(t, c.replace(v, dir)) })
				assert.OK(t, err, "open")
				assert.Equal(t, read(t, o.File), "whole", "read")
				o.File.Release()
			}
			waitFor(t, "descriptors to go", func() bool { return v.fds.open.Load() <= 4 })
		})
	}
}

// A hot name cools down: its answers are believed again, and no inode keeps a
// descriptor for having been found there.
func TestHotNameCools(t *testing.T) {
	now := time.Now()
	v, dir := serve(t, Options{Now: func() time.Time { return now }})
	base := v.fds.open.Load()
	writeFile(t, "x", dir, "f")
	v.hot.replaced(wsfs.RootIno, "f")
	e := lookup(t, v, wsfs.RootIno, "f")
	if e.TTL != 0 || v.fds.open.Load() != base+1 {
		t.Errorf("hot: believed for %v, %d descriptors", e.TTL, v.fds.open.Load()-base)
	}
	now = now.Add(hotFor)
	if e = lookup(t, v, wsfs.RootIno, "f"); e.TTL == 0 || v.fds.open.Load() != base {
		t.Errorf("cool: believed for %v, %d descriptors", e.TTL, v.fds.open.Load()-base)
	}
	for i := range 3 * hotMost { // no more descriptors than that, whatever is replaced
		name := fmt.Sprint(i)
		writeFile(t, "x", dir, name)
		v.hot.replaced(wsfs.RootIno, name)
		lookup(t, v, wsfs.RootIno, name)
		now = now.Add(hotFor / 100)
	}
	assert.False(t, v.fds.open.Load() == base, "nothing was held")
	waitFor(t, "older ones to be closed", func() bool { return v.fds.open.Load()-base <= hotMost })
}

// What a lookup of a hot name found can be read after others have replaced it; a write goes to what
// has the name.
func TestHotNameIsRead(t *testing.T) {
	v, dir := serve(t, Options{})
	writeFile(t, "x", dir, "f")
	v.hot.replaced(wsfs.RootIno, "f")
	e := lookup(t, v, wsfs.RootIno, "f")
	writeFile(t, "y", dir, "new")
	assert.OK(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")))
	assert.Of(v.Open(op(), e.Ino, unix.O_RDONLY)).OK(t).File.Release()
	assert.Is(t, assert.ErrOf(v.Open(op(), e.Ino, unix.O_WRONLY|unix.O_APPEND)), syscall.ESTALE)
}

// What is open and was replaced by others may be asked for by a name that the kernel believes yet:
// it is to ask again, and gets it when it does by a descriptor.
func TestOpenOfWhatWasReplaced(t *testing.T) {
	v, dir := serve(t, Options{})
	writeFile(t, "x", dir, "f")
	e := lookup(t, v, wsfs.RootIno, "f")
	open := assert.Of(v.Open(op(), e.Ino, unix.O_RDONLY)).OK(t)
	defer open.File.Release()
	writeFile(t, "y", dir, "new")
	assert.OK(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")))
	lookup(t, v, wsfs.RootIno, "f")
	for _, want := range []error{syscall.ESTALE, nil} {
		o, err := v.Open(op(), e.Ino, unix.O_WRONLY)
		assert.Is(t, err, want)
		if err == nil {
			o.File.Release()
		}
	}
}

// An open that an own rename or unlink overtakes is served, at the first try.
func TestOpenOvertaken(t *testing.T) {
	v, _ := serve(t, Options{})
	for range tier.Pick(200, 2000) {
		e := create(t, v, wsfs.RootIno, "f", "old")
		n := create(t, v, wsfs.RootIno, "n", "new")
		var wg sync.WaitGroup
		wg.Go(func() { ok(t, v.Rename(op(), wsfs.RootIno, "n", wsfs.RootIno, "f", 0)) })
		o, err := v.Open(op(), e.Ino, unix.O_RDONLY)
		assert.OK(t, err)
		_, aerr := v.Attr(op(), e.Ino, nil)
		_, xerr := v.ListXattr(op(), e.Ino)
		_, nerr := v.Attr(op(), n.Ino, nil) // of the file that is moved
		assert.Is(t, errors.Join(aerr, xerr, nerr), nil)
		got := read(t, o.File)
		assert.Must(t, got == "old", "read", got)
		o.File.Release()
		wg.Wait()
		ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
		v.Forget(e.Ino, 1)
		v.Forget(n.Ino, 1)
	}
}

// What was read of a record, and lost to an unlink of ours before it was used, is
// read anew; what others did is not waited for.
func TestOvertaken(t *testing.T) {
	v, dir := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "x")
	tries := 0
	err := v.res.again(e.Ino, func(was *sighting) error {
		h, err := v.res.holdOnce(e.Ino, was)
		h.drop()
		if tries++; tries == 1 {
			ok(t, err)
			was.h = nil // as it is where the name has yet to be opened
			ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
			_, err = v.res.holdNamed(was.ident, was.parent, was.name, unix.O_PATH)
			wantErr(t, err, syscall.ESTALE)
		}
		return err
	})
	assert.True(t, err == nil && tries == 2, tries, "tries", err)
	g := create(t, v, wsfs.RootIno, "g", "x")
	ok(t, os.Remove(filepath.Join(dir, "g")))
	tries = 0
	err = v.res.again(g.Ino, func(was *sighting) error {
		tries++
		_, err := v.res.holdOnce(g.Ino, was)
		return err
	})
	wantErr(t, err, syscall.ESTALE)
	assert.Equal(t, tries, 1, "tries for what others removed")
}

// Where a rename of ours has moved a file on the disk, and the table has yet to learn
// of it, a request waits.
func TestHoldWaitsForARename(t *testing.T) {
	v, dir := serve(t, Options{})
	f := create(t, v, wsfs.RootIno, "f", "x")
	ino := v.tab.beginMove(wsfs.RootIno, "f")
	ok(t, os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g")))
	looked := make(chan struct{})
	var once sync.Once
	done := make(chan error)
	go func() {
		done <- v.res.again(f.Ino, func(was *sighting) error {
			h, err := v.res.holdOnce(f.Ino, was)
			h.drop()
			once.Do(func() { close(looked) })
			return err
		})
	}()
	<-looked
	n, _ := v.tab.lock(ino)
	n.setName(wsfs.RootIno, "g")
	n.unlock()
	v.tab.endMove(ino)
	ok(t, <-done)
	attr(t, v, f.Ino)
	_, err := v.Attr(op(), f.Ino, nil)
	assert.True(t, err == nil && v.tab.beginMove(wsfs.RootIno, "f") == 0, "the move has not ended:", err)
}

// What a lookup found, and a rename or unlink of ours overtook, is not entered: an
// inode keeps a name or a descriptor that leads to it.
func TestLookupOvertaken(t *testing.T) {
	root := wsfs.RootIno
	for _, c := range []struct {
		name     string
		overtake func(t *testing.T, v *Volume)
	}{
		{"rename", func(t *testing.T, v *Volume) { ok(t, v.Rename(op(), root, "f", root, "g", 0)) }},
		{"unlink", func(t *testing.T, v *Volume) { ok(t, v.Unlink(op(), root, "f")) }},
		{"rename and create", func(t *testing.T, v *Volume) {
			ok(t, v.Rename(op(), root, "f", root, "g", 0))
			create(t, v, root, "f", "another")
		}},
		{"replace", func(t *testing.T, v *Volume) {
			create(t, v, root, "g", "another")
			ok(t, v.Rename(op(), root, "g", root, "f", 0))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, _ := serve(t, Options{})
			f := create(t, v, root, "f", "x")
			h, _, err := v.res.holdDir(root)
			ok(t, err)
			defer h.drop()
			var st stat
			ok(t, statAt(h.fd, "f", &st)) // as Lookup does
			c.overtake(t, v)
			must[wsfs.Entry](t)(v.enterName(h, v.disk.identOf(h.fd, "f", &st), root, "f", &st, false, false))
			assert.Equal(t, attr(t, v, f.Ino).Size, 1, "the inode is another file")
			for _, name := range []string{"f", "g"} {
				ino := v.tab.named(root, name, 0)
				e, err := v.Lookup(op(), root, name)
				assert.True(t, err == nil && e.Ino == ino, name, "was known as inode", ino, "and is", e.Ino, err)
			}
		})
	}
}
