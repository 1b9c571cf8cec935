package fs

import (
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// mutation is one way to change a tree that has the file dir/f.
type mutation struct {
	name string
	do   func(w *world) fuse.Status
}

func mutations(dir, name string) []mutation {
	at := func(w *world) fuse.InHeader { return header(w.mustWalk(dir).NodeId) }
	file := func(w *world) fuse.InHeader { return header(w.mustWalk(dir + "/" + name).NodeId) }
	var eo fuse.EntryOut
	return []mutation{
		{"open for writing", func(w *world) fuse.Status {
			return w.Open(nil, &fuse.OpenIn{InHeader: file(w), Flags: syscall.O_WRONLY}, &fuse.OpenOut{})
		}},
		{"open to truncate", func(w *world) fuse.Status {
			return w.Open(nil, &fuse.OpenIn{InHeader: file(w), Flags: syscall.O_TRUNC}, &fuse.OpenOut{})
		}},
		{"chmod", func(w *world) fuse.Status {
			in := fuse.SetAttrIn{}
			in.InHeader = file(w)
			in.Valid = fuse.FATTR_MODE
			return w.SetAttr(nil, &in, &fuse.AttrOut{})
		}},
		{"setxattr", func(w *world) fuse.Status {
			return w.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: file(w)}, "user.x", nil)
		}},
		{"removexattr", func(w *world) fuse.Status {
			h := file(w)
			return w.RemoveXAttr(nil, &h, "user.x")
		}},
		{"unlink", func(w *world) fuse.Status { h := at(w); return w.Unlink(nil, &h, name) }},
		{"rename away", func(w *world) fuse.Status {
			h := at(w)
			return w.Rename(nil, &fuse.RenameIn{InHeader: h, Newdir: h.NodeId}, name, "elsewhere")
		}},
		{"rename over", func(w *world) fuse.Status {
			h := at(w)
			return w.Rename(nil, &fuse.RenameIn{InHeader: h, Newdir: h.NodeId}, "other", name)
		}},
		{"exchange", func(w *world) fuse.Status {
			h := at(w)
			return w.Rename(nil, &fuse.RenameIn{InHeader: h, Newdir: h.NodeId, Flags: unix.RENAME_EXCHANGE}, "other", name)
		}},
		{"create over", func(w *world) fuse.Status {
			return w.Create(nil, &fuse.CreateIn{InHeader: at(w)}, name, &fuse.CreateOut{})
		}},
		{"symlink over", func(w *world) fuse.Status { h := at(w); return w.Symlink(nil, &h, "x", name, &eo) }},
		{"mknod over", func(w *world) fuse.Status { return w.Mknod(nil, &fuse.MknodIn{InHeader: at(w)}, name, &eo) }},
		{"link from", func(w *world) fuse.Status {
			h := file(w)
			return w.Link(nil, &fuse.LinkIn{InHeader: at(w), Oldnodeid: h.NodeId}, "second", &eo)
		}},
	}
}

func TestReadOnlyPart(t *testing.T) {
	more := []mutation{
		{"mkdir", func(w *world) fuse.Status {
			return w.Mkdir(nil, &fuse.MkdirIn{InHeader: header(1)}, "new", &fuse.EntryOut{})
		}},
		{"rmdir", func(w *world) fuse.Status { h := header(1); return w.Rmdir(nil, &h, "d") }},
		{"tmpfile", func(w *world) fuse.Status {
			return w.Tmpfile(nil, &fuse.CreateIn{InHeader: header(1)}, &fuse.CreateOut{})
		}},
	}
	for _, m := range append(mutations("d", "f"), more...) {
		w := refuses(t, m, Part{Name: "@a/b", ReadOnly: "storage.read_only"})
		assert.Equal(t, w.stats.snapshot(w.tree.parts).Refused["@a/b"], 1, m.name, "times counted")
	}
}

// unread is an open file that counts what is written to it.
type unread struct {
	File
	writes int
}

func (u *unread) Write(_ *Op, data []byte, _ int64) (int, error) {
	u.writes++
	return len(data), nil
}

// A part may be taken from programs while they are in it: nothing more is changed, by what
// is open either, or nothing is opened any more. It says why, and other parts stay as they are.
func TestRestrictedPart(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake("f")}, Part{Name: "@a/lib", At: "lib", Volume: newFake("f")})
	server := &Server{front: w.front}
	var told Failure
	w.tell = func(f Failure) { told = f }
	file, dir := header(w.mustWalk("lib/f").NodeId), header(w.mustWalk("lib").NodeId)
	slot, ino := w.tree.at(file.NodeId)
	was := &unread{}
	fh := w.handles.add(&handle{s: slot, ino: ino, file: was, writable: true})
	write := func() fuse.Status {
		_, st := w.Write(nil, &fuse.WriteIn{InHeader: file, Fh: fh}, []byte("x"))
		return st
	}
	open := func(h fuse.InHeader, flags uint32) fuse.Status {
		return w.Open(nil, &fuse.OpenIn{InHeader: h, Flags: flags}, &fuse.OpenOut{})
	}
	list := func(h fuse.InHeader) fuse.Status {
		return w.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{})
	}
	want := func(when string, got, st fuse.Status) { t.Helper(); assert.Equal(t, got, st, when) }

	want("written", write(), fuse.OK)
	server.Restrict("@a/lib", Access{ReadOnly: "policy (ttl-expired)"})
	want("written when it is read-only", write(), fuse.EROFS)
	want("opened to write", open(file, syscall.O_WRONLY), fuse.EROFS)
	want("opened to read", open(file, syscall.O_RDONLY), fuse.OK)
	want("removed", w.Unlink(nil, &dir, "f"), fuse.EROFS)
	assert.Contains(t, told.Err.Error(), "policy (ttl-expired)")
	assert.Equal(t, was.writes, 1, "writes that reached the file")

	server.Restrict("@a/lib", Access{Closed: "policy (no-grant)"})
	want("written when it is closed", write(), fuse.OK)
	want("opened when it is closed", open(file, syscall.O_RDONLY), fuse.EACCES)
	want("made", w.Create(nil, &fuse.CreateIn{InHeader: dir}, "new", &fuse.CreateOut{}), fuse.EACCES)
	want("made without a name", w.Tmpfile(nil, &fuse.CreateIn{InHeader: dir}, &fuse.CreateOut{}), fuse.EACCES)
	want("listed", list(dir), fuse.EACCES)
	want("the root opened", open(header(w.mustWalk("f").NodeId), syscall.O_RDWR), fuse.OK)
	want("the root listed", list(header(1)), fuse.OK)

	server.Restrict("@a/lib", Access{})
	want("opened again", open(file, syscall.O_RDWR), fuse.OK)
	want("listed again", list(dir), fuse.OK)
}

// What a part that is closed holds is not shown by other ways either: by what its volume
// shows of itself in .wsmount, now or of another time, nor by links and attributes. How
// the part is can be read.
func TestClosedPartShowsNoContent(t *testing.T) {
	v := &shower{fakeVolume: newFake("f"), files: map[string]string{"history/d/1": "one", "conflicts/f": "two", "README": "of the volume"}}
	w := newWorld(t, Part{Name: "@a/b", Volume: v, Control: mapControl{"status.json": "{}", "unsent": "f", "history/status.json": "x"}})
	server := &Server{front: w.front}
	status := func(_ any, st fuse.Status) fuse.Status { return st }
	ask := map[string]func(h fuse.InHeader) fuse.Status{
		"open": func(h fuse.InHeader) fuse.Status {
			return w.Open(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{})
		},
		"opendir": func(h fuse.InHeader) fuse.Status {
			return w.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{})
		},
		"readlink": func(h fuse.InHeader) fuse.Status { return status(w.Readlink(nil, &h)) },
		"user.x": func(h fuse.InHeader) fuse.Status {
			return status(w.GetXAttr(nil, &h, "user.x", nil))
		},
		"security.x": func(h fuse.InHeader) fuse.Status {
			return status(w.GetXAttr(nil, &h, "security.x", nil))
		},
	}
	for _, tt := range []struct {
		path, how string
		was       fuse.Status
		closed    bool
	}{
		{"f", "open", fuse.OK, true},
		{"f", "readlink", fuse.EINVAL, true},
		{"f", "user.x", fuse.ENODATA, true},
		{"f", "security.x", fuse.ENODATA, false},
		{".wsmount", "opendir", fuse.OK, false},
		{".wsmount/status.json", "open", fuse.OK, false},
		{".wsmount/unsent", "open", fuse.OK, true},
		{".wsmount/README", "open", fuse.OK, true},
		{".wsmount/history", "opendir", fuse.OK, true},
		{".wsmount/history/status.json", "open", fuse.OK, true},
		{".wsmount/history/d", "opendir", fuse.OK, true},
		{".wsmount/history/d/1", "open", fuse.OK, true},
		{".wsmount/history/d/1", "readlink", fuse.EINVAL, true},
		{".wsmount/conflicts", "opendir", fuse.OK, true},
		{".wsmount/conflicts/f", "open", fuse.OK, true},
	} {
		h := header(w.mustWalk(tt.path).NodeId)
		server.Restrict("@a/b", Access{})
		assert.Equal(t, ask[tt.how](h), tt.was, tt.path, tt.how)
		server.Restrict("@a/b", Access{Closed: "policy (no-grant)"})
		if tt.closed {
			tt.was = fuse.EACCES
		}
		assert.Equal(t, ask[tt.how](h), tt.was, tt.path, tt.how, "when it is closed")
	}
}

// A program inside must not be able to change what the mount may do.
func TestGoverningFile(t *testing.T) {
	for _, m := range mutations("d", "f") {
		refuses(t, m, Part{Governing: []string{"d/f"}})
	}
}

// Each part has governing files of its own, which say nothing of the others.
func TestGoverningFileOfAPart(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake("f", "g"), Governing: []string{"g"}}, Part{At: "lib", Volume: newFake("f", "g"), Governing: []string{"f"}})
	for at, want := range map[string]fuse.Status{"f": fuse.OK, "g": fuse.EROFS, "lib/f": fuse.EROFS, "lib/g": fuse.OK} {
		dir, name := path.Split(at)
		h := header(w.mustWalk(strings.Trim(dir, "/")).NodeId)
		assert.Equal(t, w.Unlink(nil, &h, name), want, at)
	}
}

// refuses wants a change of a part to be refused before it reaches the volume.
func refuses(t *testing.T, m mutation, p Part) *world {
	t.Helper()
	v := newFake("d/f", "d/other")
	p.Volume = v
	w := newWorld(t, p)
	assert.Equal(t, m.do(w), fuse.EROFS, m.name)
	assert.Slice(t, v.changed, nil, m.name, "reached the volume")
	return w
}

func TestGoverningFileByOtherWays(t *testing.T) {
	root := header(1)
	for _, tt := range []struct {
		name string
		do   func(w *world, v *fakeVolume) fuse.Status
		want fuse.Status
	}{
		{"its directory is renamed", func(w *world, v *fakeVolume) fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1}, "d", "e")
		}, fuse.EROFS},
		{"its directory is replaced", func(w *world, v *fakeVolume) fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1, Flags: unix.RENAME_EXCHANGE}, "x", "d")
		}, fuse.EROFS},
		{"a hard link that was there before", func(w *world, v *fakeVolume) fuse.Status {
			out := w.mustWalk("link")
			return w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId), Flags: syscall.O_RDWR}, &fuse.OpenOut{})
		}, fuse.EROFS},
		{"replaced from outside, then by a hard link", func(w *world, v *fakeVolume) fuse.Status {
			d := v.nodes[v.make("d/")]
			d.children["f"] = v.make("new")
			v.nodes[d.children["f"]].nlink = 2
			out := w.mustWalk("new")
			return w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId), Flags: syscall.O_RDWR}, &fuse.OpenOut{})
		}, fuse.EROFS},
		{"one that does not exist yet", func(w *world, v *fakeVolume) fuse.Status {
			return w.Create(nil, &fuse.CreateIn{InHeader: header(w.mustWalk("d").NodeId)}, "absent", &fuse.CreateOut{})
		}, fuse.EROFS},
		{"its directory does not exist yet: a symlink", func(w *world, v *fakeVolume) fuse.Status {
			return w.Symlink(nil, &root, "x", ".secrets", &fuse.EntryOut{})
		}, fuse.EROFS},
		{"its directory does not exist yet: made, then the file", func(w *world, v *fakeVolume) fuse.Status {
			var out fuse.EntryOut
			if st := w.Mkdir(nil, &fuse.MkdirIn{InHeader: root}, ".secrets", &out); st != fuse.OK {
				return st
			}
			return w.Create(nil, &fuse.CreateIn{InHeader: header(out.NodeId)}, "SECRETS.md", &fuse.CreateOut{})
		}, fuse.EROFS},
		{"its directory does not exist yet: made, and removed again", func(w *world, v *fakeVolume) fuse.Status {
			if st := w.Mkdir(nil, &fuse.MkdirIn{InHeader: root}, ".secrets", &fuse.EntryOut{}); st != fuse.OK {
				return st
			}
			return w.Rmdir(nil, &root, ".secrets")
		}, fuse.OK},
		{"its directory does not exist yet: another is renamed there", func(w *world, v *fakeVolume) fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1}, "x", ".secrets")
		}, fuse.EROFS},
		{"a directory lies at a governing path: something is made in it", func(w *world, v *fakeVolume) fuse.Status {
			v.make("d/absent/")
			return w.Create(nil, &fuse.CreateIn{InHeader: header(w.mustWalk("d/absent").NodeId)}, "x", &fuse.CreateOut{})
		}, fuse.EROFS},
		{"a neighbour may change", func(w *world, v *fakeVolume) fuse.Status {
			h := header(w.mustWalk("d").NodeId)
			return w.Unlink(nil, &h, "other")
		}, fuse.OK},
		{"it may be read", func(w *world, v *fakeVolume) fuse.Status {
			out := w.mustWalk("d/f")
			return w.Open(nil, &fuse.OpenIn{InHeader: header(out.NodeId)}, &fuse.OpenOut{})
		}, fuse.OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newFake("d/f", "d/other", "x/", "new")
			v.nodes[RootIno].children["link"] = v.make("d/f")
			v.nodes[v.make("d/f")].nlink = 2
			w := newWorld(t, Part{Volume: v, Governing: []string{"d/f", "d/absent", ".secrets/SECRETS.md"}})
			assert.Equal(t, tt.do(w, v), tt.want)
		})
	}
}

// described is a volume that describes its files, and has attributes of that name from
// a backend.
type described struct{ *fakeVolume }

func (described) Describe(_ *Op, _ Ino, what string) (string, bool) {
	return "the " + what, what == "state"
}

func (described) ListXattr(*Op, Ino) ([]string, error) {
	return []string{"user.wsmount.state", "user.a", "user.wsmount.other"}, nil
}

func TestDescriptionIsNeitherListedNorSet(t *testing.T) {
	v := newFake("f")
	for _, volume := range []Volume{v, described{v}} {
		w := newWorld(t, Part{Volume: volume})
		h := header(w.mustWalk("f").NodeId)
		assert.Equal(t, w.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: h}, "user.wsmount.state", nil), fuse.EPERM, "setxattr")
		assert.Equal(t, w.RemoveXAttr(nil, &h, "user.wsmount.state"), fuse.EPERM, "removexattr")
		dest := make([]byte, 100)
		n, st := w.GetXAttr(nil, &h, "user.wsmount.state", dest)
		if volume == Volume(v) {
			assert.Equal(t, st, fuse.ENODATA, "getxattr of a volume without a description")
			continue
		}
		assert.Equal(t, st, fuse.OK, "getxattr")
		assert.Equal(t, string(dest[:n]), "the state", "getxattr")
		for _, dest := range [][]byte{dest, nil} { // nil asks for the size
			n, st = w.ListXAttr(nil, &h, dest)
			assert.Equal(t, n, uint32(len("user.a\x00")), "length of the list, status", st)
		}
		n, _ = w.ListXAttr(nil, &h, dest)
		assert.Equal(t, string(dest[:n]), "user.a\x00", "the list")
	}
}
