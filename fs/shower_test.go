package fs

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/wsmount/wsmount/integration/assert"
)

// shower is a volume that shows files of its own.
type shower struct {
	*fakeVolume
	files  map[string]string
	closed int
}

func (s *shower) Show(_ *Op, path string) (Shown, error) {
	if text, ok := s.files[path]; ok {
		return Shown{Mode: 0o640, UID: 7, GID: 8, Size: int64(len(text)), Open: func(*Op) (ShownFile, error) {
			return &shownText{bytes.NewReader([]byte(text)), s}, nil
		}}, nil
	}
	var names []string
	for p := range s.files {
		rest, ok := strings.CutPrefix(p, path+"/")
		if path == "" {
			rest, ok = p, true
		}
		name, _, isDir := strings.Cut(rest, "/")
		if isDir {
			name += "/"
		}
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return Shown{}, syscall.ENOENT
	}
	return Shown{Names: names, Mode: 0o755}, nil
}

type shownText struct {
	*bytes.Reader
	s *shower
}

func (f *shownText) Close() error { f.s.closed++; return nil }

// What a volume shows of itself stands in .wsmount beside what its part shows.
func TestShower(t *testing.T) {
	v := &shower{fakeVolume: newFake("f"), files: map[string]string{
		"history/a/1": "one", "history/a/2": "two", "status.json": "of the volume", "own": "x"}}
	w := newWorld(t, Part{Volume: v, Control: mapControl{"status.json": "of the part", "history/README": "read"}})
	for dir, want := range map[string][]string{
		".wsmount":           {"conflicts", "history", "own", "status.json"},
		".wsmount/history":   {"README", "a"},
		".wsmount/history/a": {"1", "2"},
	} {
		got := w.list(dir, 4096, true)
		assert.True(t, slices.Equal(got, want), "list of", dir, "=", got, "want", want)
	}
	out := w.mustWalk(".wsmount/history/a/2")
	if out.Size != 3 || out.Mode != syscall.S_IFREG|0o440 || out.Uid != 7 || out.Gid != 8 {
		t.Errorf("size %d mode %o owner %d:%d", out.Size, out.Mode, out.Uid, out.Gid)
	}
	assert.Equal(t, w.mustWalk(".wsmount/status.json").Size, uint64(len("of the part")), "the volume hides what its part shows: size")
	var o fuse.OpenOut
	if st := w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId)}, &o); st != fuse.OK {
		t.Fatal(st)
	}
	delete(v.files, "history/a/2") // who has it open goes on
	r, st := w.Read(nil, &fuse.ReadIn{InHeader: header(out.NodeId), Fh: o.Fh, Offset: 1}, make([]byte, 100))
	assert.Must(t, st == fuse.OK, st)
	b, _ := r.Bytes(nil)
	assert.True(t, string(b) == "wo", "read", b)
	w.Release(nil, &fuse.ReleaseIn{InHeader: header(out.NodeId), Fh: o.Fh})
	assert.Equal(t, v.closed, 1, "times closed")
	_, st = w.walk(".wsmount/history/a/2")
	assert.True(t, st == fuse.ENOENT, "lookup after it is gone:", st)
	dir := w.mustWalk(".wsmount/history/a")
	assert.Equal(t, w.Open(nil, &fuse.OpenIn{InHeader: header(dir.NodeId)}, &o), fuse.Status(syscall.EISDIR), "open of a directory")
}
