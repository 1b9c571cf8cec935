package git_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// commits makes one commit after another in a clone, and says of each that it
// is made, until this process is killed. With $GIT_TEST_LARGE they have a file in LFS,
// and every third is pushed.
func commits(t *testing.T, url, dir, run string) {
	p := assert.Of(git.Open(t.Context(), git.Options{URL: url, Dir: dir})).OK(t)
	for i := 0; ; i++ {
		op := fmt.Sprint(run, "-", i)
		fmt.Println("begin", op)
		set := providers.ChangeSet{Op: op, Changes: []providers.Change{{Locator: at("run/" + op), Body: providers.String(op), If: providers.IfAbsent()}}}
		large := os.Getenv("GIT_TEST_LARGE") != ""
		if large {
			set.Changes = append(set.Changes, providers.Change{Locator: at("run/" + op + ".bin"), Body: providers.String("large " + op), If: providers.IfAbsent()})
		}
		result := assert.Of(p.Commit(t.Context(), set)).OK(t)
		fmt.Println("made", op, result.Revision)
		if large && i%3 == 2 {
			assert.OK(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})))
		}
	}
}

// Content that a commit names is here or at the server, whenever a process was killed,
// and all of it is at the server after a push.
func TestLargeKilled(t *testing.T) {
	t.Setenv("GIT_TEST_LARGE", "1")
	s := newLargeStage(t)
	assert.OK(t, s.p.Close())
	made := map[string]string{}
	kills, reaper := tier.Pick(3, 8), newReaper(t)
	for run := range kills {
		killed(t, s.repo.URL, s.dir, run, made, reaper)
		s.p = clone(t, s.repo.URL, in(s.dir))
		for op := range made {
			reads(t, s.p, "run/"+op+".bin", "large "+op)
		}
		assert.OK(t, s.p.Close())
	}
	s.p = clone(t, s.repo.URL, in(s.dir))
	assert.OK(t, s.push())
	objects := s.lfs.Objects()
	for _, line := range strings.Split(strings.TrimSpace(s.repo.Git("grep", "oid sha256:", "main", "--", "run")), "\n") {
		if oid := line[len(line)-64:]; !strings.HasPrefix(objects[oid], "large r") {
			t.Errorf("%s: the server has %q", line, objects[oid])
		}
	}
	if len(made) < kills || s.kept() != 0 {
		t.Errorf("%d commits before %d kills; %d objects are kept", len(made), kills, s.kept())
	}
}

// Whenever a process is killed, what it said is so, of what it was about to say
// there is an answer that agrees with the tree, and git finds nothing wrong.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("GIT_TEST_DIR"); dir != "" {
		commits(t, os.Getenv("GIT_TEST_URL"), dir, os.Getenv("GIT_TEST_RUN"))
	}
	_, repo, _ := seeded(t)
	dir := t.TempDir()
	assert.OK(t, clone(t, repo.URL, in(dir)).Close())
	made := map[string]string{}
	kills, reaper := tier.Pick(3, 12), newReaper(t)
	for run := range kills {
		last := killed(t, repo.URL, dir, run, made, reaper)
		p := clone(t, repo.URL, in(dir))
		for op, want := range made {
			reads(t, p, "run/"+op, op)
			result, err := p.Commit(t.Context(), providers.ChangeSet{Base: "none", Op: op})
			assert.True(t, err == nil && string(result.Revision) == want, "run", run, "of", op, result, "was", want, err)
		}
		result, err := p.Commit(t.Context(), providers.ChangeSet{Base: "none", Op: last})
		_, there := p.Stat(t.Context(), at("run/"+last))
		if done := err == nil && result.Committed; done != (there == nil) || err != nil && !errors.Is(err, providers.ErrConflict) {
			t.Errorf("run %d: of %s, when the kill came: %+v, %v; its file: %v", run, last, result, err, there)
		}
		if there == nil {
			made[last] = string(result.Revision)
		}
		assert.OK(t, p.Close())
	}
	assert.True(t, len(made) >= kills, "only", len(made), "commits before", kills, "kills")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// A reaper says when a process is killed: in make test when it says a certain line, in make
// soak at any time.
type reaper struct{ r *rand.Rand }

func newReaper(t *testing.T) reaper { return reaper{rand.New(rand.NewPCG(tier.Seed(t), 0))} }

// upTo is a number below most, in make test fixed.
func (k reaper) upTo(most, fixed int) int {
	if tier.Soak {
		return k.r.IntN(most)
	}
	return fixed
}

// moment is how long after a line a process goes on that is to be killed.
func (k reaper) moment() time.Duration { return time.Duration(k.upTo(20_000, 0)) * time.Microsecond }

// killed runs commits, kills it at some time, and says which operation came
// last.
func killed(t *testing.T, url, dir string, number int, made map[string]string, by reaper) (last string) {
	t.Helper()
	run := fmt.Sprint("r", number)
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "GIT_TEST_URL="+url, "GIT_TEST_DIR="+dir, "GIT_TEST_RUN="+run)
	out := assert.Of(child.StdoutPipe()).OK(t)
	assert.OK(t, child.Start())
	lines, line := bufio.NewScanner(out), 4+by.upTo(1, number)
	for n := 0; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 2 && words[0] == "begin":
			last = words[1]
		case len(words) == 3 && words[0] == "made":
			made[words[1]] = words[2]
		default:
			t.Errorf("run %s says %q", run, lines.Text())
		}
		if n != line {
			continue
		}
		if moment := by.moment(); moment > 0 { // in the commit that follows, or somewhere in those
			time.AfterFunc(moment, func() { child.Process.Kill() })
		} else {
			assert.OK(t, child.Process.Kill())
		}
	}
	child.Wait()
	return last
}

// wander begins a branch for every second commit, and says where each commit is,
// until this process is killed.
func wander(t *testing.T, url, dir, run string) {
	p := assert.Of(git.Open(t.Context(), git.Options{URL: url, Dir: dir})).OK(t)
	for i := 0; ; i++ {
		branch := fmt.Sprintf("wsmount/c/%s-%d", run, i/2)
		from := assert.Of(p.Head(t.Context())).OK(t)
		to := assert.Of(p.Begin(t.Context(), branch, false)).OK(t)
		fmt.Println("begin", branch)
		assert.OK(t, p.Start(t.Context(), branch, from, to))
		name := fmt.Sprint("f", i)
		result, err := p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{{Locator: at(name), Body: providers.String(name), If: providers.IfAbsent()}}})
		assert.OK(t, err)
		fmt.Println("made", branch, result.Revision)
	}
}

// Whenever a process is killed between branches, the clone is on the last one that
// it said, or on the one that it was about to say, and every commit is on its
// branch.
func TestKilledBetweenBranches(t *testing.T) {
	if dir := os.Getenv("GIT_TEST_DIR"); dir != "" {
		wander(t, os.Getenv("GIT_TEST_URL"), dir, os.Getenv("GIT_TEST_RUN"))
	}
	_, repo, _ := seeded(t)
	dir := t.TempDir()
	assert.OK(t, clone(t, repo.URL, in(dir)).Close())
	commits := 0
	kills, reaper := tier.Pick(3, 8), newReaper(t)
	for run := range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledBetweenBranches$")
		child.Env = append(os.Environ(), "GIT_TEST_URL="+repo.URL, "GIT_TEST_DIR="+dir, fmt.Sprint("GIT_TEST_RUN=", run))
		out := assert.Of(child.StdoutPipe()).OK(t)
		assert.OK(t, child.Start())
		made, begun, last := map[string]string{}, "", ""
		lines := bufio.NewScanner(out)
		for n := 5 + reaper.upTo(40, 7*run); lines.Scan(); n-- {
			switch words := strings.Fields(lines.Text()); {
			case len(words) == 2 && words[0] == "begin":
				begun = words[1]
			case len(words) == 3 && words[0] == "made":
				made[words[1]], last = words[2], words[1]
				commits++
			}
			if n == 0 {
				assert.OK(t, child.Process.Kill())
			}
		}
		_ = child.Wait()
		p := clone(t, repo.URL, in(dir))
		on := branches(t, p).On
		assert.False(t, on != begun && on != last, "run", run, "on", on, "begun", begun, "the last commit on", last)
		assert.OK(t, p.Close())
		for branch, c := range made {
			_, err := repo.Try("--git-dir", dir, "merge-base", "--is-ancestor", c, "refs/heads/"+branch)
			assert.True(t, err == nil, "run", run, "commit", c, "is not on", branch, err)
		}
	}
	assert.True(t, commits >= kills, "only", commits, "commits before", kills, "kills")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}
