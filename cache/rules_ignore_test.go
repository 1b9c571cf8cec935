package cache

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// ignoring has a working copy over a repository know ignore files.
func ignoring(w *world, o *Options) {
	repository(w, o)
	onlyAsked(w, o)
	o.IgnoreFile = ".ignore"
}

// rules writes an ignore file.
func (w *world) rules(dir string, lines ...string) {
	w.Helper()
	w.ok(w.put(strings.TrimPrefix(dir+"/.ignore", "/"), strings.Join(lines, "\n")))
}

// tracks commits and expects what the repository has then, apart from ignore
// files and directories, and that nothing is left.
func (w *world) tracks(want ...string) {
	w.Helper()
	got, held := w.commit()
	got = slices.DeleteFunc(got, func(line string) bool { return strings.Contains(line, ".ignore: ") || strings.HasSuffix(line, "/") })
	assert.Must(w, slices.Equal(got, want), "the repository has", got, "want", want)
	s := w.v.Status()
	assert.Must(w, len(held) == 0 && s.Queued == 0, "held back is", held, s.Queued, "changes wait")
}

// What is ignored stays here, and what the repository has goes on going there.
func TestIgnored(t *testing.T) {
	t.Parallel()
	check := func(name string, do func(w *world), want string) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ignoring)
			do(w)
			w.tracks(listed(want)...)
			w.again()
			w.tracks(listed(want)...)
			w.noProblems()
		})
	}
	for _, c := range []struct{ name, before, tracked, then, want string }{ // there is a commit between, unless nothing is before
		{"new names", "", "", "put .ignore *.o\nbuild/\n!keep.o, put a.o 1, put a.c 2, put keep.o 3, mkdir build, put build/x 4, " +
			"mkdir build/sub, put build/sub/y 5, mkdir d, put d/b.o 6", "a.c: 2, keep.o: 3"},
		{"rules of below and above", "", "", "put .ignore *.o\n/top, mkdir d, mkdir d/e, put top 1, put d/top 2, put d/x.o 3, put d/e/x.o 4, " +
			"put d/e/local 5, put d/.ignore !x.o\ne/local", "d/e/x.o: 4, d/top: 2, d/x.o: 3"},
		{"rules that came last", "", "", "put a.o 1, mkdir build, put build/x 2, put b 3, put .ignore *.o\nbuild", "b: 3"},
		{"what is tracked", "put a.o 1, mkdir build, put build/x 2, put save 3", "a.o: 1, build/x: 2, save: 3",
			"put .ignore *.o\nbuild/\nsave*, put a.o changed, put b.o new, put build/x changed, put build/y new, put save~ saved, mv save~ save",
			"a.o: changed, build/x: changed, save: saved"},
		{"rules that say less now", "put .ignore *.o\nbuild/\n*.log, put a.o 1, mkdir build, put build/x 2, put a.log 3", "",
			"put .ignore *.log", "a.o: 1, build/x: 2"},
		{"rules that are gone", "mkdir d, put d/.ignore *, put d/a 1, mkdir d/e, put d/e/b 2", "", "rm d/.ignore", "d/a: 1, d/e/b: 2"},
		{"rules that are gone after a restart", "mkdir d, put d/.ignore *, put d/a 1", "", "again, rm d/.ignore", "d/a: 1"},
		{"rules of below that take back those of above", "put .ignore *.o, mkdir d, put d/a.o 1", "", "put d/.ignore !*.o", "d/a.o: 1"},
		{"rules that are renamed", "put .ignore *.o, put a.o 1, put a.c 2", "a.c: 2", "put rules *.c, mv rules .ignore, put b.c 3", "a.c: 2, a.o: 1"},
		{"rules about what a directory of the repository is called now", "mkdir d, put d/a 1, mkdir e", "d/a: 1",
			"mv d e/d.o, put e/d.o/b 2, put e/.ignore *.o", "e/d.o/a: 1"},
		{"rules about where a directory of the repository is now", "mkdir d, put d/a 1", "d/a: 1",
			"mkdir e, mkdir e/f, put e/b 2, put e/f/c 3, mv d e/f/d, put e/f/d/new 4, put .ignore *\n!.ignore", "e/f/d/a: 1"},
		{"rules in a link", "", "", "put rules *.o, sym rules .ignore, put a.o 1", ".ignore -> rules, a.o: 1, rules: *.o"},
	} {
		check(c.name, func(w *world) {
			if c.before != "" {
				w.ours(c.before)
				w.tracks(listed(c.tracked)...)
			}
			w.ours(c.then)
		}, c.want)
	}
	check("what is tracked no more", func(w *world) {
		w.do("put a.o 1")
		w.tracks("a.o: 1")
		w.do("put .ignore *.o", "rm a.o")
		w.tracks()
		w.do("put a.o again")
	}, "")
	check("rules that were looked at before a directory of the repository came", func(w *world) {
		w.do("mkdir d", "put d/a 1")
		w.tracks("d/a: 1")
		w.do("mkdir e", "put e/b 2", "mv d e/d", "put .ignore *\n!.ignore")
		w.ok(w.v.learner.ForCommit(t.Context()))
		w.staysIgnored("e")
	}, "e/d/a: 1")
	check("rules that a program still writes", func(w *world) {
		w.do("put .ignore *.o")
		w.tracks()
		o := w.open(".ignore", syscall.O_RDWR)
		defer o.File.Release()
		w.write(o, "*.c", 0)
		w.ok(o.File.Flush(me))
		w.do("put a.o 1", "put a.c 2")
	}, "a.o: 1")
}

// staysIgnored has a name of the root stay here, as if its rules had been looked at.
func (w *world) staysIgnored(name string) {
	w.Helper()
	w.ok(w.v.update(func(v *Tx) error {
		l := table.Link{Dir: table.Root, Name: name}
		rec, _ := v.Name(l.Dir, l.Name)
		rec.Local = true
		v.SetName(l, rec)
		v.Mark(l)
		return nil
	}))
}

// What is made after the rules are known is no change that waits.
func TestIgnoredAtOnce(t *testing.T) {
	w := newWorld(t, ignoring)
	w.tracks()
	w.knowsRules()
	w.rules("", "build/")
	w.knowsRules()
	w.do("mkdir build", "put build/before x")
	assert.Equal(t, w.v.Status().Queued, 1, "changes that wait, with that of the rules")
	w.tracks()
	w.doEach(0, 10, "put build/%d x")
	s := w.v.Status()
	assert.True(t, s.Queued == 0 && s.UnsavedBytes == 0, "changes that wait:", s)
	w.killed()
	w.knowsRules()
	w.do("put build/more x")
	assert.Equal(t, w.v.Status().Queued, 0, "changes that wait after a kill")
}

// Names cross the border of what is ignored as that of what is excluded. A
// directory that the repository has does not: it would have to go name by name.
func TestRenameAcrossIgnored(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           syscall.Errno
		tracked        []string
		told           bool
	}{
		{"a file leaves", "f", "f.o", 0, []string{"d/a: 1"}, true},
		{"a file comes in", "x.o", "x", 0, []string{"d/a: 1", "f: 2", "x: 3"}, false},
		{"a file comes in over another", "x.o", "f", 0, []string{"d/a: 1", "f: 3"}, false},
		{"a file stays ignored", "x.o", "y.o", 0, []string{"d/a: 1", "f: 2"}, false},
		{"a directory of the repository leaves", "d", "build", syscall.EXDEV, []string{"d/a: 1", "f: 2"}, false},
		{"a directory of the repository with something ignored", "d", "e", 0, []string{"e/a: 1", "f: 2"}, false},
		{"a new directory leaves", "new", "build", 0, []string{"d/a: 1", "f: 2"}, false},
		{"a directory comes in", "out", "in", 0, []string{"d/a: 1", "f: 2", "in/a: 5", "in/e/b: 6"}, false},
		{"a directory to where other rules are", "out/e", "d/e", 0, []string{"d/a: 1", "d/e/b: 6", "f: 2"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ignoring)
			w.rules("", "*.o", "build/", "/out/")
			w.do("mkdir d", "put d/a 1", "put f 2", "put x.o 3", "put d/z.o 4", "mkdir out", "put out/a 5", "mkdir out/e", "put out/e/b 6")
			w.tracks("d/a: 1", "f: 2")
			w.do("mkdir new", "put new/a 7")
			if c.from != "new" {
				w.do("rm new/a", "rmdir new")
			}
			assert.Equal(t, fs.Errno(w.rename(c.from, c.to)), c.want)
			w.tracks(c.tracked...)
			assert.Equal(t, len(w.v.Status().Problems) == 1, c.told, "it is told")
		})
	}
}

// Content that is not here does not go to an ignored name, where nobody else
// would have it: the commit that lets go of its place fetches it first.
func TestIgnoredContentIsHere(t *testing.T) {
	c := newClone(t, seeded(t, "f", "content", ".ignore", "*.o"), func(_ *world, o *Options) { o.IgnoreFile = ".ignore" })
	c.world.repo = c.repo
	c.knowsRules()
	assert.Equal(t, fs.Errno(c.rename("f", "f.o")), syscall.EXDEV)
	c.do("mkdir new", "mv f new/f", "mv new new.o")
	c.tracks()
	assert.Equal(t, c.get("new.o/f"), "content")
}

// knowsRules waits until those of the root were learned in the background.
func (w *world) knowsRules() {
	w.Helper()
	w.untilLocked(func(locked *View) bool { return locked.border.Ignores.IsLearned(locked, table.Root) })
}

// Rules that come with a pull count, and what another has committed is tracked
// here too: ours of that name is kept beside it.
func TestIgnoredAndPulled(t *testing.T) {
	c := newClone(t, seeded(t, ".ignore", "*.o\nbuild/"), func(_ *world, o *Options) { o.IgnoreFile = ".ignore" })
	c.world.repo = c.repo
	c.do("put a.o ours", "put b.o same", "put c.o 3", "mkdir build", "put build/x 4", "put build/same 5")
	c.tracks()
	c.there("a.o", "theirs")
	c.there("b.o", "same")
	c.there("build/same", "5")
	c.pull()
	assert.Equal(t, c.get("a.o"), "theirs", "a.o")
	c.tracks("a.o: theirs", "b.o: same", "build/same: 5")
	copies := slices.DeleteFunc(c.list(""), func(name string) bool { return !strings.HasPrefix(name, "a.conflict") })
	assert.True(t, len(copies) == 1 && c.get(copies[0]) == "ours", "ours is in", copies)
	c.do("put build/same mine", "put build/x more")
	c.tracks("a.o: theirs", "b.o: same", "build/same: mine")
	c.push()

	c.there(".ignore", "build/")
	c.pull()
	c.tracks(copies[0]+": ours", "a.o: theirs", "b.o: same", "build/same: mine", "c.o: 3")
}
