package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// benchVolume is a working copy that nobody waits for, and sends nothing.
func benchVolume(b *testing.B) *Volume {
	v, err := Open(context.Background(), memory.New(memory.Options{}), Options{StateDir: b.TempDir(),
		Policy: Policy{Commit: DueAsked, NoWait: true}})
	assert.OK(b, err)
	b.Cleanup(func() { v.Close() })
	return v
}

// A file as programs make one: created, written to and closed, then forgotten
// by the kernel's dentry cache.
func BenchmarkCreateWriteClose(b *testing.B) {
	v := benchVolume(b)
	data := make([]byte, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e, o, err := v.Create(me, fs.RootIno, fmt.Sprint("f", i), syscall.O_WRONLY|syscall.O_CREAT, 0o644)
		assert.OK(b, err)
		assert.OK(b, assert.ErrOf(o.File.Write(me, data, 0)))
		assert.OK(b, o.File.Flush(me))
		o.File.Release()
		v.Forget(e.Ino, 1)
	}
}

// The same by system calls on the disk below.
func BenchmarkDiskCreateWriteClose(b *testing.B) {
	dir := b.TempDir()
	data := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("f", i)))
		assert.OK(b, err)
		f.Write(data)
		f.Close()
	}
}

func BenchmarkLookup(b *testing.B) {
	v := benchVolume(b)
	for i := range 1000 {
		assert.OK(b, assert.ErrOf(v.Mkdir(me, fs.RootIno, fmt.Sprint("d", i), 0o755)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e, err := v.Lookup(me, fs.RootIno, fmt.Sprint("d", i%1000))
		if err != nil || e.Ino == 0 {
			b.Fatal(err)
		}
		v.Forget(e.Ino, 1)
	}
}

func BenchmarkAttr(b *testing.B) {
	v := benchVolume(b)
	e, err := v.Mkdir(me, fs.RootIno, "d", 0o755)
	assert.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		assert.OK(b, assert.ErrOf(v.Attr(me, e.Ino, nil)))
	}
}

func BenchmarkRename(b *testing.B) {
	v := benchVolume(b)
	assert.OK(b, assert.ErrOf(v.Mkdir(me, fs.RootIno, "0", 0o755)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		assert.OK(b, v.Rename(me, fs.RootIno, fmt.Sprint(i), fs.RootIno, fmt.Sprint(i+1), 0))
	}
}

func BenchmarkCreateUnlink(b *testing.B) {
	v := benchVolume(b)
	b.ReportAllocs()
	for b.Loop() {
		e, o, err := v.Create(me, fs.RootIno, "f", syscall.O_WRONLY|syscall.O_CREAT, 0o644)
		assert.OK(b, err)
		o.File.Release()
		assert.OK(b, v.Unlink(me, fs.RootIno, "f"))
		v.Forget(e.Ino, 1)
	}
}

func BenchmarkReaddir(b *testing.B) {
	v := benchVolume(b)
	for i := range 1000 {
		assert.OK(b, assert.ErrOf(v.Mkdir(me, fs.RootIno, fmt.Sprint("d", i), 0o755)))
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := v.OpenDir(me, fs.RootIno)
		assert.OK(b, err)
		for ok := true; ok; {
			if _, ok, err = d.Next(me); err != nil {
				b.Fatal(err)
			}
		}
		d.Release()
	}
}
