package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// stores are the kinds of backend that names are sent to one by one.
var stores = map[string]memory.Options{
	"rename": {PageSize: 3},
	"copy": {PageSize: 3, Without: providers.Capabilities{EmptyDirs: true,
		Abilities: providers.AbilityMove}},
	"flat": {PageSize: 3, Without: providers.Capabilities{EmptyDirs: true, OperationIDs: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs,
		Abilities:  providers.AbilityMove | providers.AbilityCopy | providers.AbilityAttr}},
	"flat, no digest": {PageSize: 3, NoDigest: true, Without: providers.Capabilities{EmptyDirs: true, OperationIDs: true,
		Abilities: providers.AbilityMove | providers.AbilityCopy}},
}

// over has the working copy of a test stand on such a backend.
func over(o memory.Options) func(*world, *Options) {
	return func(w *world, _ *Options) { w.p = memory.New(o) }
}

// eachStore runs a test on each kind of backend, on all of them at a time.
func eachStore(t *testing.T, test func(t *testing.T, store func(*world, *Options))) {
	on := func(name string, store func(*world, *Options)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, store)
		})
	}
	for name, o := range stores {
		on(name, over(o))
	}
	on("sets", inSets)
	on("sets, flat", func(w *world, o *Options) {
		o.Policy.Atomic = true
		w.p = memory.New(memory.Options{PageSize: 3, Without: providers.Capabilities{EmptyDirs: true}})
	})
	on("repository", repository)
}

// repository has the working copy stand on a clone of a remote.
func repository(w *world, _ *Options) {
	w.repo = memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{PageSize: 3})
}

// upload is Volume.Commit that holds nothing back.
func (w *world) upload() CommitReport {
	w.Helper()
	r := assert.Of(w.v.Commit(context.Background(), CommitOptions{})).OK(w)
	assert.Must(w, len(r.HeldBack) == 0, "held back", r.HeldBack)
	return r
}

// local lists what programs see, as listBackend does.
func (w *world) local() []string { return w.localBelow("") }

func (w *world) localBelow(dir string) (lines []string) {
	w.Helper()
	for _, name := range sorted(w.list(dir)) {
		if name == "." || name == ".." {
			continue
		}
		path := strings.TrimPrefix(dir+"/"+name, "/")
		e := assert.Of(w.v.Lookup(me, w.walk(dir), name)).OK(w)
		switch e.Attr.Mode & syscall.S_IFMT {
		case syscall.S_IFDIR:
			lines = append(lines, path+"/")
			lines = append(lines, w.localBelow(path)...)
		case syscall.S_IFLNK:
			target := assert.Of(w.v.Readlink(me, e.Ino)).OK(w)
			lines = append(lines, path+" -> "+target)
		default:
			lines = append(lines, path+": "+w.get(path))
		}
	}
	return lines
}

// same checks that the backend has what programs see, and that nothing differs
// any more. A store without empty directories does not show them.
func (w *world) same() {
	w.Helper()
	p := w.remote()
	got, want := sorted(listBackend(p)), sorted(w.local())
	if !p.Capabilities().EmptyDirs {
		notDir := func(line string) bool { return strings.HasSuffix(line, "/") }
		got, want = slices.DeleteFunc(got, notDir), slices.DeleteFunc(want, notDir)
	}
	assert.Must(w, strings.Join(got, "\n") == strings.Join(want, "\n"), "the backend has", strings.Join(got, "\n\t"), "programs see", strings.Join(want, "\n\t"))
	locked := w.v.lock()
	defer locked.unlock()
	locked.Dirty(0, func(_ uint64, l table.Link) bool {
		rec, _ := locked.Name(l.Dir, l.Name)
		w.Errorf("%v still differs: %+v, base %+v, attempt %+v", l, rec, rec.Remote, rec.Attempt)
		return true
	})
	assert.Is(w, locked.Check(), nil)
}

// uploadSame uploads all, after which both sides are the same.
func (w *world) uploadSame() {
	w.Helper()
	w.upload()
	w.same()
}

// listed are the parts of a list with commas.
func listed(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ", ")
}

// ours runs a script that is such a list.
func (w *world) ours(script string) {
	w.Helper()
	w.do(listed(script)...)
}

// do runs a script of changes: "put a all the content", "mkdir d", "mv a b", "swap a b",
// "rm a", "read a", "again", "rmdir d", "ln a b", "sym target l", "chmod a", "chmod a 755", "append a content",
// "cut a 3", "tag a user.x=1", "touch a".
func (w *world) do(script ...string) {
	w.Helper()
	for _, line := range script {
		assert.OK(w, w.try(strings.SplitN(line, " ", 3)), line)
	}
}

func (w *world) try(f []string) error {
	w.Helper()
	switch f[0] {
	case "put":
		return w.put(f[1], f[2])
	case "append":
		o := w.open(f[1], syscall.O_RDWR)
		w.write(o, f[2], int64(len(w.read(o))))
		return w.shut(o)
	case "cut":
		size := assert.Of(strconv.ParseUint(f[2], 10, 64)).OK(w)
		_, err := w.v.SetAttr(me, w.walk(f[1]), nil, &fs.SetAttr{Size: &size})
		return err
	case "read":
		w.get(f[1])
	case "again":
		w.again()
	case "mkdir":
		w.mkdir(f[1])
	case "mv":
		return w.rename(f[1], f[2])
	case "swap":
		err := w.exchange(f[1], f[2])
		if errors.Is(err, syscall.EINVAL) && w.v.sets != nil && !w.v.caps.EmptyDirs {
			return nil // directories cannot be exchanged there
		}
		return err
	case "rm":
		return w.unlink(f[1])
	case "rmdir":
		dir, name := w.dirOf(f[1])
		return w.v.Rmdir(me, dir, name)
	case "ln":
		dir, name := w.dirOf(f[2])
		_, err := w.v.Link(me, w.walk(f[1]), dir, name)
		return err
	case "sym":
		dir, name := w.dirOf(f[2])
		_, err := w.v.Symlink(me, dir, name, f[1])
		return err
	case "chmod":
		mode := uint64(0o640)
		if len(f) > 2 {
			mode, _ = strconv.ParseUint(f[2], 8, 32)
		}
		set := uint32(mode)
		_, err := w.v.SetAttr(me, w.walk(f[1]), nil, &fs.SetAttr{Mode: &set})
		return err
	case "tag":
		w.tag(f[1], f[2])
	case "touch":
		_, err := w.v.SetAttr(me, w.walk(f[1]), nil, &fs.SetAttr{Mtime: &longAgo})
		return err
	default:
		return fmt.Errorf("what is %q", f[0])
	}
	return nil
}

// longAgo is the time that "touch" gives.
var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)

// changesOfNames are scripts that a commit must make true at the backend,
// which holds a, b, d/x, d/y and d/s/z.
var changesOfNames = []struct {
	name   string
	script []string
}{
	{"create", []string{"put n new", "put d/n new", "mkdir e", "put e/f new"}},
	{"create empty", []string{"put n x", "rm n", "put d/s/n y"}},
	{"change", []string{"put a other", "append d/x more"}},
	{"delete", []string{"rm a", "rm d/s/z"}},
	{"delete a tree", []string{"rm d/s/z", "rmdir d/s", "rm d/x", "rm d/y", "rmdir d"}},
	{"rename", []string{"mv a c"}},
	{"rename twice", []string{"mv a c", "mv c e"}},
	{"rename there and back", []string{"mv a c", "mv c a"}},
	{"rename over", []string{"mv a b"}},
	{"rename over what moved away", []string{"mv b c", "mv a b"}},
	{"rename and change", []string{"mv a c", "append c more"}},
	{"change and rename over", []string{"append a more", "mv a b"}},
	{"rename and a new one", []string{"mv a c", "put a new"}},
	{"editor", []string{"put .a.tmp new", "mv .a.tmp a"}},
	{"editor with backup", []string{"mv a a~", "put a new", "rm a~"}},
	{"exchange", []string{"swap a b"}},
	{"exchange across", []string{"swap a d/x"}},
	{"exchange and change", []string{"swap a b", "append a more"}},
	{"ring of three", []string{"mv a t", "mv b a", "mv d/x b", "mv t d/x"}},
	{"rename a directory", []string{"mv d e"}},
	{"rename a directory twice", []string{"mv d e", "mv e f"}},
	{"rename a directory and change in it", []string{"mv d e", "append e/x more", "rm e/y", "put e/n new", "mv e/s/z e/z"}},
	{"rename a directory down", []string{"mkdir n", "mv d n/d"}},
	{"rename a directory up", []string{"mv d/s s"}},
	{"exchange parent and child", []string{"mv d/s s", "mv d s/d"}},
	{"parent and child change places by name", []string{"mv d/s t", "mv d t/s", "mv t d"}},
	{"exchange directories", []string{"mkdir e", "put e/q 1", "swap d e"}},
	{"exchange a file and a directory", []string{"swap a d"}},
	{"directory over a removed one", []string{"mkdir n", "put n/q 1", "rm d/x", "rm d/y", "rm d/s/z", "rmdir d/s", "mv n d"}},
	{"a known directory over a removed one", []string{"rm d/x", "rm d/y", "mv d/s t", "rmdir d", "mv t d"}},
	{"directory anew", []string{"rm d/x", "rm d/y", "rm d/s/z", "rmdir d/s", "rmdir d", "mkdir d", "put d/x new"}},
	{"directory becomes a file", []string{"rm d/x", "rm d/y", "rm d/s/z", "rmdir d/s", "rmdir d", "put d new"}},
	{"file becomes a directory", []string{"rm a", "mkdir a", "put a/f new"}},
	{"file moves below its own name", []string{"mv a t", "mkdir a", "mv t a/a"}},
	{"out of a directory that goes", []string{"mv d/s/z z", "rmdir d/s", "rm d/x", "mv d/y y", "rmdir d"}},
	{"hard link", []string{"ln a c"}},
	{"hard link and change", []string{"ln a c", "append a more"}},
	{"hard link, first name gone", []string{"ln a c", "rm a"}},
	{"hard link over", []string{"ln a c", "mv c b"}},
	{"symbolic link", []string{"sym a l", "sym d/x d/l"}},
	{"symbolic link over a file", []string{"rm a", "sym b a"}},
	{"rename of a symbolic link", []string{"sym a l", "mv l m"}},
	{"attributes", []string{"chmod a", "chmod d"}},
	{"attributes and rename", []string{"chmod a", "mv a c", "chmod d", "mv d e"}},
}

// inDir puts all paths of a script into a directory.
func inDir(dir string, script []string) (moved []string) {
	for _, line := range script {
		f := strings.Fields(line)
		for i := 1; i < len(f); i++ {
			if i == 1 && f[0] != "sym" || i == 2 && (f[0] == "mv" || f[0] == "swap" || f[0] == "ln" || f[0] == "sym") {
				f[i] = dir + "/" + f[i]
			}
		}
		moved = append(moved, strings.Join(f, " "))
	}
	return moved
}

// everyScript has all of changesOfNames, each in a directory of its own.
func everyScript() (files []string, scripts [][]string) {
	for _, c := range changesOfNames {
		dir := strings.NewReplacer(" ", "-", ",", "").Replace(c.name)
		for i, f := range origin {
			if i%2 == 0 {
				f = dir + "/" + f
			}
			files = append(files, f)
		}
		scripts = append(scripts, inDir(dir, c.script))
	}
	return files, scripts
}

// has puts files into any kind of backend before the working copy opens.
func has(files ...string) func(*world, *Options) {
	return func(w *world, o *Options) {
		if w.repo == nil {
			holding(files...)(w, o)
			return
		}
		set := providers.ChangeSet{Message: "begin"}
		for i := 0; i < len(files); i += 2 {
			set.Changes = append(set.Changes, providers.Change{Locator: at(files[i]),
				Body: providers.String(files[i+1]), If: providers.IfAbsent()})
		}
		c, _ := providers.As[providers.Committer](w.repo)
		w.ok(assert.ErrOf(c.Commit(context.Background(), set)))
	}
}

var origin = []string{"a", "A", "b", "B", "d/x", "X", "d/y", "Y", "d/s/z", "Z"}

// How commits come about is not the stores' concern: in make test each way has one
// of each kind.
func TestCommit(t *testing.T) {
	files, scripts := everyScript()
	holds := has(files...)
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		_, kind, _ := strings.Cut(t.Name(), "/")
		run := func(way string, kinds []string, test func(w *world), change ...func(*world, *Options)) {
			if !tier.Soak && kinds != nil && !slices.Contains(kinds, kind) {
				return
			}
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, append([]func(*world, *Options){store, holds}, change...)...)
				test(w)
				w.same()
				w.noProblems()
			})
		}
		all := func(w *world) {
			for _, script := range scripts {
				w.do(script...)
			}
		}
		run("at once", nil, func(w *world) {
			all(w)
			w.upload()
		}, unwaited)
		run("one by one", []string{"rename", "sets,_flat"}, func(w *world) {
			for _, script := range scripts {
				for _, line := range script {
					w.do(line)
					w.settle()
				}
			}
		})
		run("in the background", []string{"copy", "sets"}, func(w *world) {
			all(w)
			w.settle()
			w.upload()
		}, background)
		run("read before, and opened again", []string{"flat", "repository"}, func(w *world) {
			w.local()
			all(w)
			w.again()
			w.upload()
		}, unwaited)
	})
}

// Each request of a commit fails once, or its answer is lost once, or we are
// killed at that moment: in the end the backend has what programs see.
func TestCommitWithAccidents(t *testing.T) {
	holds := has(origin...)
	script := []string{"mv d e", "append e/x more", "put n new", "swap a b", "rm e/s/z", "chmod b", "ln a c", "mkdir d", "put d/x again"}
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		for i, accident := range []string{"fails", "lost", "killed before", "killed after"} {
			step := tier.Pick(10, 3)
			for nth := 1 + i%step; ; nth += step {
				hit := false
				t.Run(fmt.Sprintf("%s %d", accident, nth), func(t *testing.T) {
					hit = testAccident(t, accident, nth, script, store, holds, unwaited)
				})
				if !hit || t.Failed() {
					break
				}
			}
		}
	})
}

// testAccident has the nth change at the backend go wrong; false when there are
// not so many.
func testAccident(t *testing.T, accident string, nth int, script []string, change ...func(*world, *Options)) (hit bool) {
	var count atomic.Int64
	errKilled := errors.New("killed")
	reached, dead := make(chan struct{}), make(chan struct{})
	var w *world
	around := func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if !c.Method.Mutates() {
			return next(ctx)
		}
		if count.Add(1) != int64(nth) {
			return next(ctx)
		}
		switch accident {
		case "fails":
			return fmt.Errorf("%w: by accident", providers.ErrUnavailable)
		case "lost":
			_ = next(ctx)
			return fmt.Errorf("%w: answer lost by accident", providers.ErrUnavailable)
		case "killed after":
			_ = next(ctx)
		}
		close(reached)
		<-dead
		return errKilled
	}
	w = newWorld(t, append(change, func(w *world, _ *Options) {
		w.wrap = func(p providers.Provider) providers.Provider {
			return providers.Wrap(p, providers.WrapOptions{Around: around})
		}
	})...)
	w.do(script...)
	if !strings.HasPrefix(accident, "killed") {
		w.uploadSame()
		return count.Load() >= int64(nth)
	}
	done := async(func() { _, _ = w.v.Commit(context.Background(), CommitOptions{}) })
	select {
	case <-reached:
		count.Store(int64(nth)) // the accident has been
		w.killed()
		close(dead)
		hit = true
	case <-done:
	}
	w.uploadSame()
	w.noProblems()
	return hit
}
