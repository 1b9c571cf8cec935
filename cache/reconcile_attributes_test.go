package cache

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// bare is a store whose listings tell no attributes, with what others put there.
func bare(t *testing.T) func(*world, *Options) {
	return func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{Without: asKeys, ImpliedDirs: true})
		when := time.Unix(1e9, 0)
		for path, o := range map[string]providers.WriteOptions{
			"run":  {Attr: providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o755, ModTime: when}, Metadata: map[string]string{"x": "y"}},
			"link": {Kind: providers.KindSymlink},
		} {
			o.If = providers.IfAbsent()
			assert.OK(t, assert.ErrOf(w.p.Write(t.Context(), at(path), providers.String("run"), o)))
		}
	}
}

func (w *world) mode(path string) uint32 {
	w.Helper()
	return w.attr(path).Mode
}

// A read tells what the listing left out.
func TestReadTellsAttributes(t *testing.T) {
	w := newWorld(t, bare(t))
	assert.Equal(t, w.mode("run"), syscall.S_IFREG|0o666, "the mode before")
	w.get("run")
	a := w.attr("run")
	assert.Equal(t, a.Mode, syscall.S_IFREG|0o755, "mode")
	assert.True(t, a.Mtime.Equal(time.Unix(1e9, 0)), "mtime", a.Mtime)
	w.again()
	assert.Equal(t, w.mode("run"), syscall.S_IFREG|0o755, "the mode later")
}

// The answer to a read that was under way while a chmod of ours arrived may say
// what was before: the mode stays what the chmod made it, and is what a later read
// tells.
func TestReadDoesNotUndoChmod(t *testing.T) {
	w := newScene(t, bare(t), background)
	w.walk("run")
	gate, read := w.answerLate(providers.MethodRead)
	done := async(func() { w.get("run") })
	<-read
	w.do("chmod run 640")
	w.upload()
	close(gate)
	<-done
	assert.Equal(t, w.mode("run"), 0o640, "mode")
	info := w.stat("run")
	assert.True(t, info.Attr.Mode == 0o640 && info.Metadata["x"] == "y", "the storage has", info)
}

// What is written over a file of which little is known keeps its attributes.
func TestWriteKeepsAttributesUnseen(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_TRUNC, syscall.O_RDWR} {
		w := newWorld(t, bare(t))
		o := w.open("run", flags)
		w.writeLast(o, "new", 0)
		w.settle()
		info := w.stat("run")
		assert.True(t, info.Attr.Mode == 0o755 && info.Metadata["x"] == "y", "flags", flags, "the backend has", info)
	}
}

// A symbolic link that was listed as a file becomes one when it is opened, and
// stays one.
func TestLinkUnseen(t *testing.T) {
	w := newWorld(t, bare(t), func(_ *world, o *Options) { o.Policy.TTL = time.Nanosecond })
	w.is(assert.ErrOf(w.v.Open(me, w.walk("link"), syscall.O_RDONLY)), fs.ErrStale)
	for range 2 {
		assert.Equal(t, w.mode("link")&syscall.S_IFMT, syscall.S_IFLNK, "type")
	}
	target := assert.Of(w.v.Readlink(me, w.walk("link"))).OK(w)
	assert.Equal(t, target, "run", "target")
	w.again()
	assert.Equal(t, w.mode("link")&syscall.S_IFMT, syscall.S_IFLNK, "later, type")
}

// Who writes does not wait for a backend that is gone.
func TestWriteUnseenWithoutBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, bare(t), unwaited, impatient)
		x := w.walk("run")
		w.p.Switches().Cut(true)
		o := w.openIno(x, syscall.O_WRONLY|syscall.O_TRUNC)
		w.writeLast(o, "new", 0)
		w.p.Switches().Connect()
		w.upload()
		w.backend("link -> run", "run: new")
	})
}

// A directory that only files of others made stays when its last file is deleted
// or moved away, for others too.
func TestImpliedDirectoryStays(t *testing.T) {
	w := newWorld(t, func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{ImpliedDirs: true})
		w.p.Tamper(at("d/in/f"), []byte("x"))
		w.p.Tamper(at("e/f"), []byte("y"))
	}, func(_ *world, o *Options) { o.Policy.TTL = time.Nanosecond })
	w.list("d/in")
	w.list("e")
	w.do("rm d/in/f", "mv e/f g")
	w.settle()
	w.list("")
	w.settle()
	w.backend("d/", "d/in/", "e/", "g: y")
	w.same()
}

// What is removed while a directory that lost its last entry is looked for at the
// backend goes there too, whether others had made it by itself or not; what is
// not removed stays.
func TestImpliedDirectoryRemovedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		own    bool
		script []string
		want   []string
	}{
		"all, implied":   {false, []string{"rmdir d/in", "rmdir d"}, []string{"keep: y"}},
		"all, own":       {true, []string{"rmdir d/in", "rmdir d"}, []string{"keep: y"}},
		"lower, implied": {false, []string{"rmdir d/in"}, []string{"d/", "keep: y"}},
		"lower, own":     {true, []string{"rmdir d/in"}, []string{"d/", "keep: y"}},
		"moved, implied": {false, []string{"mv d/in e"}, []string{"d/", "e/", "keep: y"}},
		"moved, own":     {true, []string{"mv d/in e"}, []string{"d/", "e/", "keep: y"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world, _ *Options) {
				w.p = memory.New(memory.Options{ImpliedDirs: true})
				if c.own {
					w.p.TamperMkdir(at("d/in"))
				}
				w.p.Tamper(at("d/in/f"), []byte("x"))
				w.p.Tamper(at("keep"), []byte("y"))
			})
			w.list("d/in")
			reached, open := w.gate(providers.MethodStat)
			w.do("rm d/in/f")
			<-reached
			w.do(c.script...)
			open()
			w.settle()
			w.backend(c.want...)
			w.same()
		})
	}
}

// lateNotes is a notifier whose notes have not reached the kernel yet.
type lateNotes struct{ fs.DiscardNotifier }

// Who opens a file reads all of the version that the open found, also where the
// kernel still believes in the size of the one before: half of a version is none
// that anybody wrote.
func TestOpenKnowsTheSizeOfItsVersion(t *testing.T) {
	tier.RequireFUSE(t)
	const theirs = "theirs, which is longer"
	w := newWorld(t, holding("f", "short"), func(_ *world, o *Options) { o.Owner, o.Policy.TTL = nil, time.Hour })
	dir := t.TempDir()
	s := assert.Of(fs.Serve(dir, []fs.Part{{Name: "@acme/test", Volume: w.v}}, fs.Options{})).OK(w)
	t.Cleanup(func() {
		w.ok(s.Unmount())
		s.Wait()
		w.gone = true // the server has closed it
	})
	w.v.Bind(lateNotes{})
	path := filepath.Join(dir, "f")
	if _, err := os.Stat(filepath.Join(dir, "@acme/test")); err == nil {
		path = filepath.Join(dir, "@acme/test/f")
	}
	// Another process opens it: one that opens a file of its own mount may wait for itself.
	shell := func(script string) string {
		t.Helper()
		out, err := exec.Command("sh", "-c", script, "sh", path).CombinedOutput()
		assert.OK(t, err, script, out)
		return string(out)
	}
	before := shell(`stat -c %s "$1"`)
	w.tamper("f", theirs)
	got := shell(`cat <>"$1"`)
	assert.True(t, before == "5\n" && got == theirs, "size", before, "read", got, "want 5 and", theirs)
}

// Attributes that others change come with a pull, but the time of a file never goes
// back, which tools that compare times rely on, and an owner only where owners are mapped.
func TestAttributesOfOthers(t *testing.T) {
	for _, maps := range []bool{false, true} {
		w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.MapIDs = maps })
		w.get("f")
		before := w.attr("f")
		info := w.stat("f")
		_, err := w.p.SetAttr(t.Context(), at("f"), providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{
			Valid: providers.AttrMode | providers.AttrOwner | providers.AttrModTime,
			Mode:  0o600, UID: before.UID + 5, GID: before.GID + 6, ModTime: before.Mtime.Add(-time.Hour)}})
		w.ok(err)
		w.pull()
		after := w.attr("f")
		assert.Equal(t, after.Mode, syscall.S_IFREG|0o600, "the mode")
		assert.Equal(t, after.UID == before.UID+5 && after.GID == before.GID+6, maps, "the owner is theirs")
		assert.True(t, after.Mtime.Equal(before.Mtime), "the time has gone from", before.Mtime, "to", after.Mtime)
	}
}
