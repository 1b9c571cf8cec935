package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// xattrs are all that programs see of an inode's extended attributes: "user.x=y".
func (w *world) xattrs(path string) string {
	w.Helper()
	names := assert.Of(w.v.ListXattr(me, w.walk(path))).OK(w)
	var all []string
	for _, name := range names {
		value := assert.Of(w.v.GetXattr(me, w.walk(path), name)).OK(w)
		if attrs.IsACL(name) {
			value = fmt.Appendf(nil, "%o", attrs.ACL(value).Mode())
		}
		all = append(all, fmt.Sprintf("%s=%s", name, value))
	}
	return strings.Join(all, " ")
}

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

// tag sets extended attributes: "user.x=y user.z=".
func (w *world) tag(path, tags string) {
	w.Helper()
	for _, t := range strings.Fields(tags) {
		name, value, _ := strings.Cut(t, "=")
		w.ok(w.v.SetXattr(me, w.walk(path), name, []byte(value), 0))
	}
}

// another is a working copy of the same store, on a machine that never saw it.
func (w *world) another(change ...func(*world, *Options)) *world {
	w.Helper()
	w.settle()
	return newWorld(w.T, append([]func(*world, *Options){func(o *world, _ *Options) { o.p = w.p }}, change...)...)
}

// eachListing runs a test on stores whose listings tell extended attributes, and
// on some that only say that there are some.
func eachListing(t *testing.T, test func(t *testing.T, store func(*world, *Options))) {
	for name, o := range map[string]memory.Options{
		"complete": {}, "incomplete": {Without: providers.Capabilities{ListComplete: true}}, "keys": {Without: providers.Capabilities{ListComplete: true, Abilities: asKeys.Abilities}},
	} {
		t.Run(name, func(t *testing.T) { test(t, over(o)) })
	}
}

// What programs say of files and directories here, others see there, whatever is
// done to them first; and the other way round.
func TestXattrsReachOthers(t *testing.T) {
	eachListing(t, func(t *testing.T, store func(*world, *Options)) {
		var here, there ticking
		w := newWorld(t, store, clocked(&here, time.Second))
		w.do("mkdir d", "mkdir e", "put d/f text", "put g text", "put plain text")
		w.tag("d", "user.d=1 user.gone=1")
		w.tag("d/f", "user.x=y trusted.here=z")
		w.tag("g", "user.g=1")
		w.ok(w.v.RemoveXattr(me, w.walk("d"), "user.gone"))
		w.ok(w.v.SetXattr(me, w.walk("g"), attrs.AccessACL, aclOf("u::6 u:9:6 g::4 m::6 o::0"), 0))
		w.ok(w.v.SetXattr(me, w.walk("e"), attrs.DefaultACL, aclOf("u::7 u:9:7 g::5 m::7 o::5"), 0))
		w.do("chmod d/f 600")

		o := w.another(clocked(&there, time.Second))
		o.do("put d/f other", "mv d moved", "mv g h")
		for path, want := range map[string]string{
			"moved": "user.d=1", "moved/f": "user.x=y", "plain": "",
			"h": attrs.AccessACL + "=660 user.g=1", "e": attrs.DefaultACL + "=775",
		} {
			assert.Equal(t, o.xattrs(path), want, "there,", path)
		}
		assert.Equal(t, o.mode("moved/f"), syscall.S_IFREG|0o600, "mode")
		o.tag("moved", "user.d=2")
		o.tag("plain", "user.new=1")
		o.ok(o.v.RemoveXattr(me, o.walk("moved/f"), "user.x"))
		o.settle()
		here.add(2 * time.Second)
		for path, want := range map[string]string{"moved": "user.d=2", "plain": "user.new=1", "moved/f": ""} {
			got := w.xattrs(path)
			assert.True(t, got == want || got == want+"trusted.here=z", "here", path, "has", got, "want", want)
		}
		there.add(2 * time.Second)
		o.ok(o.v.RemoveXattr(me, o.walk("moved"), "user.d"))
		o.settle()
		here.add(2 * time.Second)
		assert.Equal(t, w.xattrs("moved"), "", "here, moved")
	})
}

// A backend that does not answer has not told that a file has no extended attributes; once it
// has, it is not asked again.
func TestXattrsAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		w := newWorld(t, over(memory.Options{Without: asKeys, Hook: c.hook}), impatient)
		w.do("put some text")
		w.tag("some", "user.x=y")
		o := w.another(impatient)
		o.list("")
		x := o.walk("some")
		c.of("")
		w.p.Switches().Cut(true)
		o.is(assert.ErrOf(o.v.GetXattr(me, x, "user.x")), fs.ErrUnavailable)
		o.is(o.v.SetXattr(me, x, "user.z", nil, 0), fs.ErrUnavailable)
		w.p.Switches().Connect()
		for range 2 {
			o.until(func() bool {
				value, err := o.v.GetXattr(me, x, "user.x")
				return err == nil && string(value) == "y"
			})
		}
		assert.Equal(t, c.of(providers.MethodStat), 1, "times asked")
	})
}

// A store that takes its time has them all the same.
func TestXattrsOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, over(memory.Options{Without: asKeys}))
		w.do("put some text")
		w.tag("some", "user.x=y user.gone=1")
		o := w.another()
		o.list("")
		o.intercept(func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
			if call.Method == providers.MethodStat {
				time.Sleep(2 * listing.MostWait)
			}
			return next(ctx)
		})
		value, err := o.v.GetXattr(me, o.walk("some"), "user.x")
		o.ok(err)
		assert.Equal(t, string(value), "y")
		o.ok(o.v.RemoveXattr(me, o.walk("some"), "user.gone"))
	})
}

// What a backend has that gives rights on this machine, or makes no sense, no
// program sees, and it stays there.
func TestForeignXattrsStay(t *testing.T) {
	theirs := map[string][]byte{
		"user.x": []byte("y"), "trusted.overlay.opaque": []byte("y"), "security.capability": []byte("z"),
		attrs.AccessACL: []byte("none"), "user." + strings.Repeat("n", 300): nil, "odd": nil, "user.a\x00b": nil,
	}
	w := newWorld(t, func(w *world, _ *Options) {
		_, err := w.p.Write(t.Context(), at("f"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(),
			Attr: providers.Attr{Valid: providers.AttrXattrs, Xattrs: theirs}})
		w.ok(err)
	})
	assert.Equal(t, w.xattrs("f"), "user.x=y", "programs see")
	w.ok(w.put("f", "new"))
	w.tag("f", "user.x=z")
	w.settle()
	info := w.stat("f")
	got, want := slices.Sorted(maps.Keys(info.Attr.Xattrs)), slices.Sorted(maps.Keys(theirs))
	assert.True(t, slices.Equal(got, want) && string(info.Attr.Xattrs["user.x"]) == "z", "the backend has", info.Attr.Xattrs)
}
