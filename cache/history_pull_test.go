package cache

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// sameTime is a store with the clock of the working copy.
func sameTime(t *testing.T, change ...func(*world, *Options)) (*scene, *testClock) {
	t.Helper()
	c := newTestClock()
	w := newScene(t, append([]func(*world, *Options){func(w *world, o *Options) {
		o.Now = c.now
		w.p = memory.New(memory.Options{Now: c.now})
	}}, change...)...)
	return w, c
}

// brings has others write a file, and a pull bring it.
func (w *scene) brings(c *testClock, path, content string) {
	w.Helper()
	w.tamper(path, content)
	w.pull()
	w.later(c, 3*time.Second)
}

// same asks ten times, and is told the same.
func same(t *testing.T, ask func() string) string {
	t.Helper()
	first := ask()
	for range 9 {
		assert.Equal(t, ask(), first, "asked again")
	}
	return first
}

// turns12 is a file that two turns wrote, and others then again and again.
func turns12(t *testing.T) (*scene, *testClock) {
	w, c := sameTime(t)
	for _, turn := range []string{"1", "2"} {
		w.v.SetActor(Actor{Turn: turn})
		w.ok(w.put("f", "v"+turn+"\n"))
		w.later(c, 3*time.Second)
	}
	w.v.SetActor(Actor{})
	w.settle()
	for i := range 4 {
		w.brings(c, "f", fmt.Sprintf("p%d\n", i))
		w.get("f")
	}
	return w, c
}

// What others wrote later was not there before, however much came.
func TestRestoreToBeforeManyPulls(t *testing.T) {
	w, _ := turns12(t)
	for _, path := range []string{"f", ""} {
		for _, turn := range []string{"1", "2"} {
			got := same(t, func() string { return w.diff(DiffOptions{Path: path, From: State{Turn: turn}}) })
			assert.Equal(t, got, "--- f@turn:"+turn+"\n+++ f\n@@ -1,1 +1,1 @@\n-v"+turn+"\n+p3\n", "turn", turn, "of", path)
		}
		w.restore(RestoreOptions{Path: path, To: State{Turn: "1"}})
		w.tree("f: v1\n")
		w.forgetAll()
		w.restore(RestoreOptions{Path: "f", To: State{Version: w.versionOf("f", "p3\n")}})
		w.tree("f: p3\n")
		w.forgetAll()
	}
}

// What a pull brings, renames, replaces and takes away is undone, and done again.
func TestRestoreAroundAPull(t *testing.T) {
	w, c := sameTime(t, holding("d/f", "old f\n", "d/gone", "old gone\n", "moved", "m\n"))
	for _, dir := range []string{"", "d"} {
		w.names(dir)
	}
	for _, path := range []string{"d/f", "d/gone", "moved"} {
		w.get(path)
	}
	w.turn(c, "1")
	w.do("put mine mine\n", "mv moved d/moved")
	w.settle()
	w.turn(c, "2")
	w.tamper("d/f", "new f\n")
	w.tamper("n/f", "new\n")
	w.tamper("d/new", "new too\n")
	w.gonePath("d/gone")
	w.pull()
	for _, path := range []string{"d/f", "d/new", "n/f"} {
		w.get(path)
	}
	w.turn(c, "3")
	w.do("put n/f again\n", "mv d/new elsewhere", "put d/f ours\n")
	w.settle()
	w.turn(c, "")
	turn1 := []string{"d/", "d/f: old f\n", "d/gone: old gone\n", "d/moved: m\n", "mine: mine\n"}
	turn2 := []string{"d/", "d/f: new f\n", "d/moved: m\n", "d/new: new too\n", "mine: mine\n", "n/", "n/f: new\n"}
	w.again()
	w.goesBack(State{Turn: "1"}, turn1...)
	w.goesBack(State{Turn: "2"}, turn2...)
	w.goesBack(State{Turn: "2", Before: true}, turn1...)
	w.goesBack(State{Turn: "3", Before: true}, turn2...)
}

// Of what was replaced before anybody had read it the content is nowhere. That is
// said; what came instead is not what was.
func TestRestoreWhatNobodyHadRead(t *testing.T) {
	w, c := sameTime(t, holding("f", "old\n"))
	w.names("")
	w.v.SetActor(Actor{Turn: "1"})
	w.ok(w.put("mine", "mine\n"))
	w.settle()
	w.turn(c, "")
	w.brings(c, "f", "new\n")
	w.skips(RestoreOptions{To: State{Turn: "1"}}, "f", ErrNotKept.Error())
	w.logs("f", "written pulled f: -")
}

// Of a file that was younger than a state when it was first seen nobody knows what
// was there. That is said, also when the file was changed here since.
func TestRestoreWhatCameUnseen(t *testing.T) {
	w, c := sameTime(t, holding("d/old", "old\n"))
	w.v.SetActor(Actor{Turn: "1"})
	w.ok(w.put("mine", "mine\n"))
	w.turn(c, "")
	w.tamper("d/f", "theirs\n")
	w.tamper("d/g", "theirs\n")
	w.later(c, 3*time.Second)
	w.get("d/old")
	w.get("d/f")
	w.do("put d/f ours\n", "put d/old ours\n")
	w.settle()
	got := same(t, func() string {
		return fmt.Sprintf("%+v", w.restore(RestoreOptions{To: State{Turn: "1"}, DryRun: true}))
	})
	assert.Equal(t, got, fmt.Sprintf("%+v", RestoreReport{Restored: []string{"d/old"}, Skipped: []Skipped{{Path: "d/f", Reason: past.ErrUnsure.Error()}}}))
	w.skips(RestoreOptions{Path: "d/g", To: State{Turn: "1"}}, "d/g", past.ErrUnsure.Error())
}

// So it is of a store that tells no times: what is first listed of a revision is
// as old as the pull that brought that.
func TestRestoreWhatAPulledRevisionHad(t *testing.T) {
	w, c := historic(t)
	w.v.SetActor(Actor{Turn: "1"})
	w.saves(c, "mine", "mine\n")
	info := providers.Info{Kind: providers.KindFile}
	birth := func() int64 {
		locked := w.v.lock()
		defer locked.unlock()
		return locked.attrs().Inode(&info, locked.side.Stamp(), revision.Since(locked)).Birth
	}
	assert.Equal(t, birth(), 0, "without a pull")
	now := c.now().UnixNano()
	w.ok(w.v.updateTree(func(tx *tree.Tx) error { revision.Comes(tx, w.v.o.Now().UnixNano()); return nil }))
	c.pass(time.Hour)
	got := birth() - now
	assert.True(t, got > 0 && got <= int64(time.Second), got, "ns after the pull")
}

// A link whose target was never asked for goes back with it, or not at all.
func TestRestoreALinkThatNobodyFollowed(t *testing.T) {
	w, c := sameTime(t, func(w *world, _ *Options) {
		for _, name := range []string{"moves", "goes"} {
			_, err := w.p.Write(t.Context(), at(name), providers.String("target"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
			w.ok(err)
		}
	})
	w.names("")
	w.v.SetActor(Actor{Turn: "1"})
	w.ok(w.put("f", "f"))
	w.turn(c, "")
	w.ok(w.rename("moves", "moved"))
	w.gonePath("goes")
	w.settle()
	w.pull()
	w.forgetAll()
	got := w.diff(DiffOptions{From: State{Turn: "1"}})
	assert.Contains(t, got, "-target\n")
	assert.Contains(t, got, "Files goes@turn:1 and /dev/null cannot be compared: "+ErrNotKept.Error())
	r := w.restore(RestoreOptions{To: State{Turn: "1"}})
	assert.True(t, len(r.Skipped) == 1 && r.Skipped[0] == (Skipped{Path: "goes", Reason: ErrNotKept.Error()}), r)
	w.tree("f: f", "moves -> target")
}

// What becomes of a file that was changed here and there is in the history, on
// behalf of who changed it, and goes back with all else.
func TestHistoryOfAConflict(t *testing.T) {
	copied := "f.conflict-" + short("ours!") + ": ours!"
	for _, test := range []struct {
		name   string
		there  func(w *scene)
		pulled bool // before the close
		after  []string
		log    string
	}{
		{"changed", func(w *scene) { w.tamper("f", "theirs") }, true, []string{"f: theirs", copied}, "written conflict"},
		{"changed, and seen later", func(w *scene) { w.tamper("f", "theirs") }, false, []string{"f: theirs", copied}, "moved conflict"},
		{"deleted", func(w *scene) { w.gonePath("f") }, true, []string{"f: ours!"}, "written conflict"},
		{"a directory", func(w *scene) { w.gonePath("f"); w.tamper("f/in", "theirs") }, true, []string{"f/", "f/in: theirs", copied}, "written conflict"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, c := sameTime(t)
			w.ok(w.put("f", "begun"))
			w.settle()
			w.later(c, 3*time.Second)
			begun := State{Time: c.now()}
			w.v.SetActor(Actor{Turn: "1"})
			op := &fs.Op{UID: 1234, PID: 1}
			o := assert.Of(w.v.Open(op, w.walk("f"), syscall.O_RDWR)).OK(w)
			w.write(o, "ours!", 0)
			test.there(w)
			if test.pulled {
				w.pull()
			}
			w.ok(w.shut(o))
			w.settle()
			w.pull()
			w.settle()
			tree := listBackend(w.p)
			assert.Slice(t, sorted(slices.Clone(tree)), sorted(slices.Clone(test.after)))
			path, _, _ := strings.Cut(tree[slices.IndexFunc(tree, func(line string) bool { return strings.HasSuffix(line, ": ours!") })], ":")
			w.later(c, 3*time.Second)
			list := w.versions(LogFilter{Path: path})
			assert.Must(t, len(list) > 0, "there is no history of", path)
			assert.Equal(t, list[0].Change+" "+list[0].Why, test.log, "the history of", path, list)
			assert.True(t, list[0].Kept && (!test.pulled || list[0].UID == 1234), "the history of", path, "is", list)
			if path != "f" && test.name != "a directory" {
				w.get("f")
			}
			w.v.SetActor(Actor{Turn: "2"})
			w.ok(w.put(path, "overwritten"))
			w.settle()
			w.turn(c, "")
			assert.Contains(t, strings.Join(w.log(path), "\n"), ": ours!", "the history")
			w.goesBack(State{Turn: "2", Before: true}, tree...)
			if test.name != "a directory" { // which is in the way
				w.goesBack(begun, "f: begun")
			}
		})
	}
}

// A text that was merged is one version more, and not what was there before.
func TestHistoryOfAMergedText(t *testing.T) {
	c := under(t, Combine, text(), func(c *clone) {
		c.v.SetActor(Actor{Turn: "1"})
		c.ok(c.put("g", "g"))
		c.v.SetActor(Actor{Turn: "2"})
		c.ok(c.put("f", text("1=ours")))
	})
	c.v.SetActor(Actor{Turn: "3"})
	c.there("f", text("7=theirs"))
	c.pull()
	c.v.SetActor(Actor{Turn: "4"})
	c.ok(c.put("f", "after"))
	c.v.SetActor(Actor{})
	for turn, want := range map[string]string{"1": text(), "2": text("1=ours"), "3": text("1=ours", "7=theirs"), "4": "after"} {
		assert.Equal(t, len(c.restore(RestoreOptions{To: State{Turn: turn}}).Skipped), 0, "turn", turn)
		c.forgetAll()
		c.sees("f: "+want, "g: g")
	}
}

// A file that gets its first name later was not there before.
func TestHistoryOfAFileWithoutAName(t *testing.T) {
	w, c := historic(t)
	w.ok(w.put("other", "x"))
	e, o, err := w.v.Tmpfile(me, fs.RootIno, syscall.O_RDWR, 0o666)
	w.ok(err)
	w.write(o, "late", 0)
	w.ok(o.File.Flush(me))
	w.later(c, 3*time.Second)
	was := State{Time: c.now()}
	w.ok(assert.ErrOf(w.v.Link(me, e.Ino, fs.RootIno, "f")))
	o.File.Release()
	w.settle()
	w.logs("f", "written linked f: late")
	w.goesBack(was, "other: x")
}

// shortReads leaves out the last byte of all content.
type shortReads struct{ providers.Provider }

func (p shortReads) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	c, err := p.Provider.Read(ctx, l, o)
	if err == nil {
		c.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(c.Body, c.Info.Size-1), c.Body}
	}
	return c, err
}

// A version that arrives incomplete is not in the history: it is not to be overwritten.
func TestIncompleteVersionIsNotKept(t *testing.T) {
	w := newScene(t, holding("f", "theirs"))
	w.walk("f")
	f := table.Link{Dir: table.Root, Name: "f"}
	info := assert.Of(w.v.p.Stat(t.Context(), at("f"))).OK(t)
	kept, err := w.v.keepRemote(t.Context(), f, info, 1<<20)
	assert.True(t, kept && err == nil, "a complete version", err)
	kept, err = w.v.keepRemote(t.Context(), f, info, info.Size)
	assert.True(t, !kept && err == nil, "one that fits by its bytes and not by its blocks", err)
	w.v.p = shortReads{w.v.p}
	kept, err = w.v.keepRemote(t.Context(), f, info, 1<<20)
	assert.Is(t, err, providers.ErrCorrupt)
	assert.False(t, kept, "it is in the history")
}

// What is overwritten at the remote is in the history before that, on the disk: a loss of power
// right after it takes nothing.
func TestOverwrittenVersionSurvivesALossOfPower(t *testing.T) {
	for name, policy := range map[string]Conflict{"by the last writer": LastWriterWins, "by a person's word": Abort} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newScene(t, holding("f", "one"), held(policy), onOneDisk)
				w.do("put f ours")
				w.tamper("f", "theirs")
				if policy == Abort {
					_ = w.sendAll()
					w.ok(w.v.Resolve(t.Context(), "f", Resolution{Keep: SideOurs}))
				}
				w.ok(w.sendAll())
				w.backend("f: ours")
				w.powerLostBetween()
				w.backend("f: ours")
				assert.Equal(t, w.overwritten("f"), "theirs", "the version in the history")
			})
		})
	}
}

// A symbolic link that is overwritten is in the history with its target.
func TestOverwrittenLinkIsKept(t *testing.T) {
	for name, policy := range map[string]Conflict{"by the last writer": LastWriterWins, "by a person's word": Abort} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, holding("f", "one"), held(policy))
			w.do("put f ours")
			w.ok(w.p.Delete(t.Context(), at("f"), providers.DeleteOptions{If: providers.Unconditional()}))
			w.ok(assert.ErrOf(w.p.Write(t.Context(), at("f"), providers.String("target"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})))
			_ = w.sendAll()
			if policy == Abort {
				w.ok(w.v.Resolve(t.Context(), "f", Resolution{Keep: SideOurs}))
				w.ok(w.sendAll())
			}
			w.backend("f: ours")
			assert.Equal(t, w.overwritten("f"), "-> target", "the version in the history")
		})
	}
}

// overwritten is the content, or the target, of the newest version of a path that was overwritten
// at the remote.
func (w *scene) overwritten(path string) string {
	w.Helper()
	for _, v := range assert.Of(w.v.Log(w.Context(), LogFilter{Path: path})).OK(w) {
		if v.Why != "overwritten" {
			continue
		}
		if v.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			id, err := strconv.ParseUint(v.ID, 10, 64)
			w.ok(err)
			locked := w.v.lock()
			defer locked.unlock()
			return "-> " + history.Get(locked, id).Target
		}
		r, _, err := w.v.Content(v.ID)
		w.ok(err)
		defer r.Close()
		return string(assert.Of(io.ReadAll(r)).OK(w))
	}
	return "(no version)"
}
