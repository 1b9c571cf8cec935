package direct

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"golang.org/x/sys/unix"
)

const nobody, staff = 65534, 50

// What is made belongs to the caller, by the rules of the parent, whatever the
// call that made it.
func TestCreateAsTheCaller(t *testing.T) {
	needRoot(t)
	v, dir := serve(t, Options{})
	must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "closed", 0o755)) // the caller may be in its group
	must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "setgid", 0o755))
	ok(t, os.Chown(filepath.Join(dir, "setgid"), 0, staff))
	ok(t, unix.Chmod(filepath.Join(dir, "setgid"), unix.S_ISGID|0o755))
	kinds := map[string]func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error){
		"mkdir":   func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error) { return v.Mkdir(o, d, "x", 0o777) },
		"mknod":   func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error) { return v.Mknod(o, d, "x", unix.S_IFCHR|0o777, 0x103) },
		"symlink": func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error) { return v.Symlink(o, d, "x", "y") },
		"create": func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error) {
			e, op, err := v.Create(o, d, "x", unix.O_RDWR, 0o777)
			if err == nil {
				op.File.Release()
			}
			return e, err
		},
		"tmpfile": func(o *wsfs.Op, d wsfs.Ino) (wsfs.Entry, error) {
			e, op, err := v.Tmpfile(o, d, unix.O_RDWR, 0o777)
			if err == nil {
				op.File.Release()
			}
			return e, err
		},
	}
	for _, c := range []struct {
		dir            string
		uid, gid, want uint32
	}{
		{"closed", nobody, nobody, nobody},
		{"closed", 0, nobody, nobody},
		{"closed", nobody, 0, 0},
		{"setgid", nobody, nobody, staff},
	} {
		for kind, f := range kinds {
			d := lookup(t, v, wsfs.RootIno, c.dir)
			e, err := f(opAs(c.uid, c.gid), d.Ino)
			assert.True(t, err == nil && e.Attr.UID == c.uid && e.Attr.GID == c.want, kind, "in", c.dir, "as", c.uid, c.gid, "belongs to", e.Attr.UID, e.Attr.GID, err)
			wantMode := uint32(0o755)
			if kind == "symlink" {
				wantMode = 0o777
			}
			if kind == "mkdir" && c.dir == "setgid" {
				wantMode |= unix.S_ISGID
			}
			if e.Attr.Mode&0o7777 != wantMode {
				t.Errorf("%s in %s: mode %o, want %o", kind, c.dir, e.Attr.Mode, wantMode)
			}
			os.RemoveAll(filepath.Join(dir, c.dir, "x"))
		}
	}
}

// After creates for others every thread is itself again.
func TestThreadsAreRestored(t *testing.T) {
	needRoot(t)
	v, _ := serve(t, Options{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 30 {
				name := fmt.Sprintf("%d-%d", g, i)
				assert.Is(t, assert.ErrOf(v.Mkdir(opAs(uint32(1000+g), uint32(2000+i)), wsfs.RootIno, name, 0o755)), nil)
				v.Mkdir(opAs(uint32(1000+g), 1), wsfs.RootIno, name, 0o755) // fails inside
			}
		}()
	}
	wg.Wait()
	start := make(chan struct{})
	for range 16 { // more than there are idle threads
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread() // and never unlocked: each a thread of its own
			<-start
			var got [2]unix.CapUserData
			hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			ok(t, unix.Capget(&hdr, &got[0]))
			uid, gid := setfs(unix.SYS_SETFSUID, ^uint32(0)), setfs(unix.SYS_SETFSGID, ^uint32(0))
			assert.True(t, uid == 0 && gid == 0 && got == v.ids.all, "a thread is", uid, gid, "with", got)
		}()
	}
	close(start)
	wg.Wait()
}

// The caller's umask counts, unless the parent has a default ACL.
func TestUmaskAndDefaultACL(t *testing.T) {
	v, dir := serve(t, Options{})
	plain := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "plain", 0o755))
	acl := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "acl", 0o755))
	if err := v.SetXattr(op(), acl.Ino, "system.posix_acl_default", defaultACL(7, 6, 4), 0); err == syscall.ENOTSUP {
		tier.Require(t, "a file system with ACLs", false)
	} else {
		ok(t, err)
	}
	for _, c := range []struct {
		name        string
		dir         wsfs.Ino
		umask, want uint32
	}{
		{"plain", plain.Ino, 0o027, 0o640},
		{"no umask", plain.Ino, 0, 0o666},
		{"acl", acl.Ino, 0o077, 0o664},
	} {
		o := op()
		o.Umask = c.umask
		e, f, err := v.Create(o, c.dir, "f"+c.name, unix.O_RDWR, 0o666)
		ok(t, err)
		f.File.Release()
		assert.Equal(t, e.Attr.Mode&0o7777, c.want, c.name, "mode")
	}
	if got, _ := os.Stat(filepath.Join(dir, "plain")); got.Mode().Perm() != 0o755 {
		t.Errorf("directory %o", got.Mode())
	}
}

// defaultACL is the value of system.posix_acl_default: version 2, then entries
// of tag, permissions and id.
func defaultACL(user, group, other uint16) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][2]uint16{{1, user}, {4, group}, {0x20, other}} {
		b = binary.LittleEndian.AppendUint16(b, e[0])
		b = binary.LittleEndian.AppendUint16(b, e[1])
		b = binary.LittleEndian.AppendUint32(b, ^uint32(0))
	}
	return b
}

// An existing name is opened by a create without O_EXCL, and emptied when asked.
func TestCreateOfAnExistingName(t *testing.T) {
	v, dir := serve(t, Options{})
	writeFile(t, "there", dir, "f")
	e, o, err := v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o600)
	ok(t, err)
	got := read(t, o.File)
	assert.True(t, got == "there" && e.Attr.Size == 5 && e.Attr.Mode&0o777 == 0o644, got, e.Attr)
	o.File.Release()
	e, o, err = v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR|unix.O_TRUNC, 0o600)
	ok(t, err)
	got = read(t, o.File)
	assert.True(t, got == "" && e.Attr.Size == 0, "after O_TRUNC", got, "size", e.Attr.Size)
	o.File.Release()
}

// A write by someone who may not keep them takes privileges away.
func TestKillPriv(t *testing.T) {
	needRoot(t)
	v, dir := serve(t, Options{})
	changes := map[string]func(o *wsfs.Op, ino wsfs.Ino) error{
		"write": func(o *wsfs.Op, ino wsfs.Ino) error {
			f, err := v.Open(op(), ino, unix.O_RDWR)
			ok(t, err)
			defer f.File.Release()
			_, err = f.File.Write(o, []byte("x"), 0)
			return err
		},
		"fallocate": func(o *wsfs.Op, ino wsfs.Ino) error {
			f, err := v.Open(op(), ino, unix.O_RDWR)
			ok(t, err)
			defer f.File.Release()
			return f.File.Allocate(o, 0, 10, 0)
		},
		"truncate": func(o *wsfs.Op, ino wsfs.Ino) error {
			_, err := v.SetAttr(o, ino, nil, &wsfs.SetAttr{Size: ptr(uint64(1))})
			return err
		},
		"O_TRUNC": func(o *wsfs.Op, ino wsfs.Ino) error {
			f, err := v.Open(o, ino, unix.O_RDWR|unix.O_TRUNC)
			if err == nil {
				f.File.Release()
			}
			return err
		},
	}
	for name, change := range changes {
		for _, c := range []struct {
			kill       bool
			mode, want uint32
			caps       bool
		}{
			{true, 0o6777, 0o777, true},
			{true, 0o6767, 0o2767, false}, // set-group-id without x is a mark for locking
			{false, 0o6777, 0o6777, true},
		} {
			path := filepath.Join(dir, "f")
			os.Remove(path)
			writeFile(t, "content", path)
			ok(t, unix.Chmod(path, c.mode))
			if c.caps {
				ok(t, unix.Setxattr(path, capXattr, netRawCap, 0))
			}
			e := lookup(t, v, wsfs.RootIno, "f")
			o := op()
			if o.KillPriv = c.kill; c.kill && name == "fallocate" {
				o = opAs(nobody, nobody) // the kernel does not say it
			}
			ok(t, change(o, e.Ino))
			assert.Equal(t, attr(t, v, e.Ino).Mode&0o7777, c.want, name, "kill", c.kill, "mode")
			_, err := v.GetXattr(op(), e.Ino, capXattr)
			assert.False(t, c.kill && err != syscall.ENODATA, name, "the capability is left:", err)
		}
	}
}

// netRawCap is a security.capability value: revision 2, cap_net_raw permitted.
var netRawCap = []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// The kernel may not write by itself where privileges would survive.
func TestPassthroughOffers(t *testing.T) {
	needRoot(t)
	v, dir := serve(t, Options{})
	for _, c := range []struct {
		name        string
		mode        uint32
		caps, write bool
	}{
		{"plain", 0o644, false, true},
		{"setuid", 0o4755, false, false},
		{"setgid", 0o2755, false, false},
		{"locking", 0o2745, false, true},
		{"capability", 0o755, true, false},
	} {
		path := filepath.Join(dir, c.name)
		writeFile(t, "", path)
		ok(t, unix.Chmod(path, c.mode))
		if c.caps {
			ok(t, unix.Setxattr(path, capXattr, netRawCap, 0))
		}
		o := must[wsfs.Opened](t)(v.Open(op(), lookup(t, v, wsfs.RootIno, c.name).Ino, unix.O_RDWR))
		assert.True(t, o.PassRead && o.PassWrite == c.write && o.NoFlush, c.name, "read", o.PassRead, "write", o.PassWrite)
		var st unix.Stat_t
		err := unix.Fstat(o.Backing, &st)
		assert.True(t, err == nil && st.Mode&0o7777 == c.mode, c.name, "backing is another file:", err)
		o.File.Release()
	}
	quiet, _ := serve(t, Options{NoPassthrough: true})
	_, o, err := quiet.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	assert.True(t, !o.PassRead && !o.PassWrite, "offered although refused")
	o.File.Release()
}

// The O_DIRECT of a caller is for the kernel to heed, and never for our own
// buffers, which are not aligned.
func TestDirectIO(t *testing.T) {
	v, _ := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "unaligned")
	o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDWR|unix.O_DIRECT))
	defer o.File.Release()
	assert.True(t, o.Direct, "not passed on")
	d, err := o.File.Read(op(), make([]byte, 101)[1:], 1)
	assert.True(t, err == nil && string(d.Bytes) == "naligned", d.Bytes, err)
}
