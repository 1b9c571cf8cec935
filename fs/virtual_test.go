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
	if got := w.list("", 4096, false); slices.Contains(got, ".wsmount") {
		t.Error(".wsmount is listed")
	}
	if got := w.list(".wsmount/history/1", 4096, false); !slices.Equal(got, []string{"a"}) {
		t.Errorf("list of a directory that is only implied = %q", got)
	}
	out := w.mustWalk(".wsmount/history/1/a")
	if out.Size != 3 || out.Mode != syscall.S_IFREG|0o444 {
		t.Errorf("size %d mode %o", out.Size, out.Mode)
	}
	if again := w.mustWalk(".wsmount/history/1/a"); again.NodeId != out.NodeId {
		t.Error("the same file has another number at the second look")
	}
	files["history/1/a"] = "newer"
	var a fuse.AttrOut
	w.GetAttr(nil, &fuse.GetAttrIn{InHeader: header(out.NodeId)}, &a)
	if a.Size != 5 || a.Timeout() != 0 {
		t.Errorf("size %d for %v after a change, want 5 for no time", a.Size, a.Timeout())
	}
	delete(files, "history/1/a")
	if _, st := w.walk(".wsmount/history/1/a"); st != fuse.ENOENT {
		t.Errorf("lookup after it is gone: %v", st)
	}
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
	if st != fuse.OK {
		t.Fatal(st)
	}
	if b, _ := r.Bytes(nil); string(b) != "rst" {
		t.Errorf("read %q, want the rest of what was there at open", b)
	}
	if o.OpenFlags&fuse.FOPEN_DIRECT_IO == 0 {
		t.Error("through the page cache, so that the next open would see old content")
	}
	if st := w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId), Flags: syscall.O_WRONLY}, &o); st != fuse.EROFS {
		t.Errorf("open for writing: %v, want EROFS", st)
	}
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
		if got := string(buf[:n]); st != fuse.OK || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, st, want)
		}
	}
	w.mustWalk("gone/.wsmount/errors.log")
	if _, st := w.walk("gone/file"); st != fuse.EACCES {
		t.Errorf("lookup in it: %v, want EACCES", st)
	}
	assert.Equal(t, w.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{}), fuse.EACCES, "listing it")
}
