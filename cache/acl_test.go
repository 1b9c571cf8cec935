package cache

import (
	"bytes"
	"encoding/binary"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// aclOf makes an ACL of entries "tag:perm", as "u::7 u:9:6 g::5 m::7 o::0", in the
// kernel's form.
func aclOf(text string) []byte {
	a := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range strings.Fields(text) {
		f := strings.Split(entry, ":")
		tag := map[string]uint16{"u": 0x01, "g": 0x04, "m": 0x10, "o": 0x20}[f[0]]
		id := ^uint32(0)
		if f[1] != "" {
			tag, id = map[string]uint16{"u": 0x02, "g": 0x08}[f[0]], uint32(f[1][0]-'0')
		}
		a = binary.LittleEndian.AppendUint16(a, tag)
		a = binary.LittleEndian.AppendUint16(a, uint16(f[2][0]-'0'))
		a = binary.LittleEndian.AppendUint32(a, id)
	}
	return a
}

func TestACLAndMode(t *testing.T) {
	const named = "u::7 u:9:6 g::5 m::7 o::0"
	for _, c := range []struct {
		name, set string
		kill      bool
		chmod     uint32 // 0: none
		mode      uint32
		acl       string // "": none
	}{
		{"named", named, false, 0, 0o2770, named},
		{"minimal", "u::6 g::4 o::1", false, 0, 0o2641, ""},
		{"chmod changes the mask", named, false, 0o640, 0o640, "u::6 u:9:6 g::5 m::4 o::0"},
		{"chmod without a mask", "u::6 g::4 o::1", false, 0o751, 0o751, ""},
		{"of another group", named, true, 0, 0o770, named},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, unwaited)
			w.create("f").File.Release()
			ino := w.walk("f")
			mode := uint32(0o2755)
			_, err := w.v.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &mode})
			w.ok(err)
			w.ok(w.v.SetXattr(&fs.Op{KillPriv: c.kill}, ino, attrs.AccessACL, aclOf(c.set), 0))
			if c.chmod != 0 {
				_, err := w.v.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &c.chmod})
				w.ok(err)
			}
			assert.Equal(t, w.inode(ino).Mode&0o7777, c.mode, "mode")
			got, err := w.v.GetXattr(me, ino, attrs.AccessACL)
			if c.acl == "" {
				w.is(err, syscall.ENODATA)
			} else if !bytes.Equal(got, aclOf(c.acl)) {
				t.Errorf("ACL %v, want %v", got, aclOf(c.acl))
			}
			w.ok(w.v.RemoveXattr(me, ino, attrs.AccessACL))
			w.ok(w.v.RemoveXattr(me, ino, attrs.AccessACL)) // as on a disk
		})
	}
}

// What is made in a directory with a default ACL gets it in place of the umask.
func TestDefaultACL(t *testing.T) {
	const rules = "u::7 u:9:7 g::5 m::7 o::5"
	w := newWorld(t, unwaited)
	w.mkdir("d")
	w.ok(w.v.SetXattr(me, w.walk("d"), attrs.DefaultACL, aclOf(rules), 0))
	op := &fs.Op{UID: 7, GID: 8, Umask: 0o077}
	f, _, err := w.v.Create(op, w.walk("d"), "f", syscall.O_RDWR, 0o664)
	w.ok(err)
	sub, err := w.v.Mkdir(op, w.walk("d"), "sub", 0o777)
	w.ok(err)
	link, err := w.v.Symlink(op, w.walk("d"), "l", "f")
	w.ok(err)
	for _, c := range []struct {
		name        string
		e           fs.Entry
		mode        uint32
		access, def string
	}{
		{"file", f, syscall.S_IFREG | 0o664, "u::6 u:9:7 g::5 m::6 o::4", ""},
		{"directory", sub, syscall.S_IFDIR | 0o775, "u::7 u:9:7 g::5 m::7 o::5", rules},
		{"symlink", link, syscall.S_IFLNK | 0o777, "", ""},
	} {
		assert.Equal(t, c.e.Attr.Mode, c.mode, c.name, "mode")
		for xattr, want := range map[string]string{attrs.AccessACL: c.access, attrs.DefaultACL: c.def} {
			got, err := w.v.GetXattr(me, c.e.Ino, xattr)
			if want == "" {
				w.is(err, syscall.ENODATA)
			} else if !bytes.Equal(got, aclOf(want)) {
				t.Errorf("%s: %s is %v, want %v", c.name, xattr, got, aclOf(want))
			}
		}
	}
	w.is(w.v.SetXattr(me, f.Ino, attrs.DefaultACL, aclOf(rules), 0), syscall.EACCES)
}

func TestBrokenACLs(t *testing.T) {
	w := newWorld(t, unwaited)
	w.mkdir("d")
	whole := aclOf("u::7 u:9:6 g::5 m::7 o::0")
	for name, value := range map[string][]byte{
		"empty": nil, "version": append([]byte{3}, whole[1:]...), "cut off": whole[:len(whole)-1],
		"no owner": aclOf("g::5 o::0"), "named without a mask": aclOf("u::7 u:9:6 g::5 o::0"),
		"permissions": aclOf("u::8 g::5 o::0"),
	} {
		assert.Equal(t, fs.Errno(w.v.SetXattr(me, w.walk("d"), attrs.AccessACL, value, 0)), syscall.EINVAL, name)
	}
}
