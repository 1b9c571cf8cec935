package fs

import (
	"slices"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/wsmount/wsmount/integration/assert"
)

type mapControl map[string]string

func (m mapControl) List() []string { return append(sortedKeys(m), "conflicts/") }

func (m mapControl) Read(p string) ([]byte, error) {
	if s, ok := m[p]; ok {
		return []byte(s), nil
	}
	return nil, syscall.ENOENT
}

func (m mapControl) Harmless(p string) bool { return p == "status.json" }

func TestControlDirectory(t *testing.T) {
	files := mapControl{"status.json": "{}", "history/1/a": "old"}
	w := newWorld(t, Part{Volume: newFake("f", ".wsmount/theirs"), Control: files}) // it covers what has its name

	if got, want := w.list(".wsmount", 4096, true), []string{"conflicts", "history", "status.json"}; !slices.Equal(got, want) {
		t.Errorf("list = %q, want %q", got, want)
	}
	got := w.list("", 4096, false)
	assert.False(t, slices.Contains(got, ".wsmount"), ".wsmount is listed")
	got = w.list(".wsmount/history/1", 4096, false)
	assert.True(t, slices.Equal(got, []string{"a"}), "list of a directory that is only implied =", got)
	out := w.mustWalk(".wsmount/history/1/a")
	if out.Size != 3 || out.Mode != syscall.S_IFREG|0o444 {
		t.Errorf("size %d mode %o", out.Size, out.Mode)
	}
	again := w.mustWalk(".wsmount/history/1/a")
	assert.True(t, again.NodeId == out.NodeId, "the same file has another number at the second look")
	files["history/1/a"] = "newer"
	var a fuse.AttrOut
	w.GetAttr(nil, &fuse.GetAttrIn{InHeader: header(out.NodeId)}, &a)
	if a.Size != 5 || a.Timeout() != 0 {
		t.Errorf("size %d for %v after a change, want 5 for no time", a.Size, a.Timeout())
	}
	delete(files, "history/1/a")
	_, st := w.walk(".wsmount/history/1/a")
	assert.True(t, st == fuse.ENOENT, "lookup after it is gone:", st)
}

func TestControlFileIsOneVersionFromEndToEnd(t *testing.T) {
	files := mapControl{"status.json": "first"}
	w := newWorld(t, Part{Volume: newFake(), Control: files})
	out := w.mustWalk(".wsmount/status.json")
	var o fuse.OpenOut
	if st := w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId)}, &o); st != fuse.OK {
		t.Fatal(st)
	}
	files["status.json"] = "second"
	r, st := w.Read(nil, &fuse.ReadIn{InHeader: header(out.NodeId), Fh: o.Fh, Offset: 2}, make([]byte, 100))
	assert.Must(t, st == fuse.OK, st)
	b, _ := r.Bytes(nil)
	assert.True(t, string(b) == "rst", "read", b, "want the rest of what was there at open")
	assert.True(t, o.OpenFlags&fuse.FOPEN_DIRECT_IO != 0, "through the page cache, so that the next open would see old content")
	assert.Equal(t, w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId), Flags: syscall.O_WRONLY}, &o), fuse.EROFS, "open for writing")
}

// Whoever meets a part that is not there can ask why, also without privilege:
// reading an attribute and entering .wsmount need the permissions to read and to
// search. The directory itself refuses to be listed.
func TestUnavailablePartSaysWhy(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake()}, Part{At: "gone", Unavailable: "no such disk", Control: mapControl{"errors.log": "x"}})
	dir := w.mustWalk("gone")
	assert.Equal(t, dir.Mode&0o777, 0o555, "mode")
	h := header(dir.NodeId)
	for name, want := range map[string]string{"user.wsmount.reason": "no such disk", "user.wsmount.state": "unavailable"} {
		buf := make([]byte, 100)
		n, st := w.GetXAttr(nil, &h, name, buf)
		got := string(buf[:n])
		assert.True(t, st == fuse.OK && got == want, name, got, st, "want", want)
	}
	w.mustWalk("gone/.wsmount/errors.log")
	_, st := w.walk("gone/file")
	assert.True(t, st == fuse.EACCES, "lookup in it:", st, "want EACCES")
	assert.Equal(t, w.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{}), fuse.EACCES, "listing it")
}
