package attrs

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

const all = providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs

var (
	now  = table.TimeOf(time.Unix(1000, 0))
	then = time.Unix(500, 7)
	kept = Mapping{UID: 1, GID: 2, Umask: 0o022, MapIDs: true, Kept: all, Listed: true}
)

func told(kind providers.Kind, a providers.Attr) *providers.Info {
	return &providers.Info{Kind: kind, Size: 3, Attr: a}
}

// A new inode is what the remote tells, and what this machine makes of what it does not.
func TestInode(t *testing.T) {
	whole := providers.Attr{Valid: all, Mode: 0o6750, UID: 7, GID: 8, ModTime: then}
	for _, c := range []struct {
		name     string
		m        Mapping
		info     *providers.Info
		mode     uint32
		uid      uint32
		born     int64
		unknown  bool
		modified table.Time
	}{
		{"a file that nothing is told of", kept, told(providers.KindFile, providers.Attr{}), syscall.S_IFREG | 0o644, 1, 4, false, now},
		{"a directory", kept, told(providers.KindDir, providers.Attr{}), syscall.S_IFDIR | 0o755, 1, 4, false, now},
		{"a link", kept, told(providers.KindSymlink, whole), syscall.S_IFLNK | 0o777, 7, then.UnixNano(), false, table.TimeOf(then)},
		{"rights on one machine", kept, told(providers.KindFile, whole), syscall.S_IFREG | 0o750, 7, then.UnixNano(), false, table.TimeOf(then)},
		{"owners of others", Mapping{UID: 1, Umask: 0o077, Kept: all, Listed: true}, told(providers.KindFile, whole), syscall.S_IFREG | 0o750, 1, then.UnixNano(), false, table.TimeOf(then)},
		{"a listing that leaves out", Mapping{Kept: all}, told(providers.KindFile, providers.Attr{}), syscall.S_IFREG | 0o666, 0, 4, true, now},
		{"one that is told all the same", Mapping{Kept: all}, told(providers.KindFile, whole), syscall.S_IFREG | 0o750, 0, then.UnixNano(), false, table.TimeOf(then)},
	} {
		n := c.m.Inode(c.info, now, 4)
		assert.Equal(t, n.Mode, c.mode, c.name, "mode")
		assert.Equal(t, n.UID, c.uid, c.name, "owner")
		assert.Equal(t, n.Birth, c.born, c.name, "birth")
		assert.Equal(t, n.AttrsUnknown, c.unknown, c.name, "unknown")
		assert.Equal(t, n.Mtime, c.modified, c.name, "time")
	}
}

// What is sent comes back as it was, but for what gives rights on one machine.
func TestThereAndBack(t *testing.T) {
	n := &table.Inode{Mode: syscall.S_IFREG | 0o4711, UID: 5, GID: 6, Mtime: table.TimeOf(then),
		Xattrs: map[string][]byte{"user.x": []byte("1"), "trusted.t": []byte("2"), foreign + "odd": []byte("3")}}
	sent := kept.Of(n)
	assert.Equal(t, len(sent.Xattrs), 2)
	back := kept.Inode(told(providers.KindFile, sent), now, 0)
	assert.Equal(t, back.Mode, uint32(syscall.S_IFREG|0o711))
	assert.Equal(t, back.UID, n.UID)
	assert.Equal(t, back.Mtime, n.Mtime)
	assert.True(t, SameSent(n, back), "extended attributes")
	assert.Equal(t, string(back.Xattrs[foreign+"odd"]), "3")
	back.Xattrs = n.Xattrs
	kept.TakeXattrs(back, told(providers.KindFile, providers.Attr{Valid: all}))
	assert.Equal(t, len(back.Xattrs), 1, "what never goes there stays")
	assert.Equal(t, string(back.Xattrs["trusted.t"]), "2")

	n.AttrsUnknown = true
	assert.False(t, kept.Of(n).Valid.Has(providers.AttrXattrs), "what is not known is not sent")
	assert.False(t, Mapping{Kept: all}.Of(n).Valid.Has(providers.AttrOwner), "owners are not mapped")
	n.Mode = syscall.S_IFLNK | 0o777
	assert.False(t, kept.Of(n).Valid.Has(providers.AttrMode), "a link has no mode")
}

// An inode takes what the remote tells, and keeps the rest. Its time does not go back.
func TestTake(t *testing.T) {
	n := &table.Inode{Mode: syscall.S_IFREG | 0o600, UID: 5, GID: 6, Mtime: now, Xattrs: map[string][]byte{"user.x": nil}}
	kept.Take(n, told(providers.KindFile, providers.Attr{Valid: providers.AttrModTime | providers.AttrOwner, UID: 9, GID: 9, ModTime: then}))
	assert.Equal(t, n.Mode, uint32(syscall.S_IFREG|0o600))
	assert.Equal(t, n.UID, 9)
	assert.Equal(t, n.Mtime, now)
	assert.Equal(t, len(n.Xattrs), 0, "it has none there")

	newer := kept.Inode(told(providers.KindFile, providers.Attr{}), now, 0)
	kept.Inherit(newer, &table.Inode{Mode: syscall.S_IFREG | 0o640, UID: 5, GID: 6, Xattrs: map[string][]byte{"user.x": nil}}, told(providers.KindFile, providers.Attr{}))
	assert.Equal(t, newer.Mode, uint32(syscall.S_IFREG|0o640))
	assert.Equal(t, newer.UID, 5)
	assert.Equal(t, len(newer.Xattrs), 1, "nothing is told of them")
}

func TestDiffers(t *testing.T) {
	dir := kept.Inode(told(providers.KindDir, providers.Attr{Valid: all, Mode: 0o755, UID: 1, GID: 2}), now, 0)
	for name, c := range map[string]struct {
		info *providers.Info
		want bool
	}{
		"the same":           {told(providers.KindDir, providers.Attr{Valid: all, Mode: 0o755, UID: 1, GID: 2, ModTime: then}), false},
		"nothing told":       {told(providers.KindDir, providers.Attr{}), false},
		"mode":               {told(providers.KindDir, providers.Attr{Valid: providers.AttrMode, Mode: 0o700}), true},
		"owner":              {told(providers.KindDir, providers.Attr{Valid: providers.AttrOwner, UID: 3}), true},
		"extended attribute": {told(providers.KindDir, providers.Attr{Valid: providers.AttrXattrs, Xattrs: map[string][]byte{"user.a": nil}}), true},
		"something untold":   {&providers.Info{Kind: providers.KindDir, Untold: 1}, true},
	} {
		assert.Equal(t, kept.Differs(dir, c.info), c.want, name)
	}
}

func TestTakeMode(t *testing.T) {
	exec := providers.Attr{Valid: providers.AttrExec, Mode: 0o100}
	for _, c := range []struct {
		name       string
		a          providers.Attr
		mode, want uint32
	}{
		{"nothing told", providers.Attr{}, 0o640, 0o640},
		{"a mode, without rights on this machine", providers.Attr{Valid: providers.AttrMode, Mode: 0o6755}, 0o4600, 0o4755},
		{"executable: who may read it", exec, 0o640, 0o750},
		{"executable already", exec, 0o700, 0o700},
		{"not executable", providers.Attr{Valid: providers.AttrExec}, 0o751, 0o640},
	} {
		assert.Equal(t, TakeMode(c.mode, c.a), c.want, c.name)
	}
}

// entry is one of an ACL.
func entry(tag, perm byte) []byte { return []byte{tag, 0, perm, 0, 0xff, 0xff, 0xff, 0xff} }

func aclOf(entries ...[]byte) []byte {
	return append([]byte{aclVersion, 0, 0, 0}, bytes.Join(entries, nil)...)
}

// An ACL that an inode cannot have is kept for the remote, and no program sees it. One
// that it can have follows its mode.
func TestTakeACL(t *testing.T) {
	rules := aclOf(entry(aclUserObj, 7), entry(aclUser, 6), entry(aclGroupObj, 5), entry(aclMask, 7), entry(aclOther, 0))
	for _, c := range []struct {
		name, attr string
		value      []byte
		kind       providers.Kind
		stored     string
	}{
		{"access", AccessACL, rules, providers.KindFile, AccessACL},
		{"that of a link", AccessACL, rules, providers.KindSymlink, foreign + AccessACL},
		{"default of a directory", DefaultACL, rules, providers.KindDir, DefaultACL},
		{"default of a file", DefaultACL, rules, providers.KindFile, foreign + DefaultACL},
		{"no ACL", AccessACL, []byte("x"), providers.KindFile, foreign + AccessACL},
		{"no more than a mode", AccessACL, aclOf(entry(aclUserObj, 7), entry(aclGroupObj, 5), entry(aclOther, 0)), providers.KindFile, foreign + AccessACL},
	} {
		n := kept.Inode(told(c.kind, providers.Attr{Valid: all, Mode: 0o640, Xattrs: map[string][]byte{c.attr: c.value}}), now, 0)
		got, ok := n.Xattrs[c.stored]
		assert.True(t, ok && len(n.Xattrs) == 1, c.name, "is stored as", c.stored)
		if c.stored == AccessACL {
			assert.Equal(t, ACL(got).Mode(), 0o640, c.name)
		}
	}
	n := &table.Inode{Mode: syscall.S_IFREG | 0o666}
	Inherit(n, &table.Inode{Xattrs: map[string][]byte{DefaultACL: rules}}, 0o077)
	assert.Equal(t, n.Mode, uint32(syscall.S_IFREG|0o660))
	Chmod(n, 0o600)
	assert.Equal(t, ACL(n.Xattrs[AccessACL]).Mode(), 0o600)
}
