package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

func archive(t *testing.T, dir string) (providers.Archive, error) {
	t.Helper()
	return git.Drivers()[0].Archive(t.Context(), providers.Settings{StateDir: dir})
}

func commitOf(t *testing.T, p *git.Provider, message string, changes ...providers.Change) {
	t.Helper()
	for i := range changes {
		changes[i].If = always.If
	}
	set := providers.ChangeSet{Message: message, Author: providers.Identity{Name: "Bob", Email: "bob@acme.test"}, Changes: changes}
	assert.Of(p.Commit(t.Context(), set)).OK(t)
}

func content(name, text string) providers.Change {
	return providers.Change{Locator: at(name), Body: providers.String(text)}
}

// branchesOf are the branches of an archive with the subjects of their commits.
func branchesOf(t *testing.T, a providers.Archive) (all []string) {
	t.Helper()
	for _, b := range assert.Of(a.Unpushed(t.Context())).OK(t) {
		text := b.Name
		for _, c := range b.Commits {
			assert.True(t, c.Author == "Bob <bob@acme.test>" && len(c.Revision) == 40 && !c.Time.IsZero(), "commit", c)
			text += "|" + c.Subject
			assert.True(t, assert.Of(a.Has(c.Revision)).OK(t), "it has not", c)
		}
		all = append(all, text)
	}
	has, _ := a.Has(providers.Revision(strings.Repeat("12", 20)))
	assert.False(t, has, "it has what was never made")
	return all
}

// filesOf are the files of an archive with what they show, or why they cannot be read.
func filesOf(t *testing.T, a providers.Archive) map[string]string {
	t.Helper()
	all := map[string]string{}
	assert.OK(t, a.Files(t.Context(), func(f providers.Info, open providers.Opener) error {
		body, err := open()
		if err != nil {
			all[f.Locator.String()] = "!" + fmt.Sprint(errors.Is(err, providers.ErrNotExist))
			return nil
		}
		b, err := io.ReadAll(body)
		all[f.Locator.String()] = string(b)
		return errors.Join(err, body.Close())
	}))
	return all
}

// fetched has another clone fetch the bundle of an archive, which says what commits of the remote it
// stands on.
func fetched(t *testing.T, a providers.Archive, other *gitserver.Repo) {
	t.Helper()
	bundle := assert.Of(a.Bundle(t.Context())).OK(t)
	content := assert.Of(io.ReadAll(bundle)).OK(t)
	file := filepath.Join(t.TempDir(), "bundle")
	assert.OK(t, errors.Join(os.WriteFile(file, content, 0o600), bundle.Close()))
	other.Git("bundle", "verify", file)
	other.Git("fetch", "-q", file, "refs/heads/*:refs/heads/recovered/*")
	other.Git("fsck", "--strict")
	head, _, _ := strings.Cut(string(content), "\n\n")
	var named, standsOn []string
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, "-") {
			named = append(named, strings.TrimSpace(line))
		}
	}
	for _, commit := range strings.Fields(other.Git("rev-list", "--boundary", "--glob=refs/heads/recovered/*", "--not", "--remotes=origin")) {
		if strings.HasPrefix(commit, "-") {
			standsOn = append(standsOn, commit)
		}
	}
	slices.Sort(named)
	slices.Sort(standsOn)
	assert.True(t, len(standsOn) > 0 && slices.Equal(named, standsOn), "the bundle names", named, "and stands on", standsOn)
}

// What was committed and not pushed comes out of a clone whose server is gone: branch by branch,
// as files, and as commits that say what they said.
func TestArchive(t *testing.T) {
	t.Parallel()
	server, repo, other := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	commitOf(t, p, "pushed", content("pushed", "1"))
	push(t, p)
	commitOf(t, p, "first\n\nbody", content("a", "mine"), content("x/new", "new"), content("gone", "gone"))
	commitOf(t, p, "second", providers.Change{Locator: at("gone"), Delete: true}, content("x/new", "newer"))
	goTo(t, p, "side")
	commitOf(t, p, "aside", content("side", "s"))
	assert.Is(t, assert.ErrOf(archive(t, dir)), providers.ErrUnavailable, "while it is open")
	assert.OK(t, p.Close())
	server.Stop()

	reader := assert.Of(archive(t, dir)).OK(t)
	a := assert.Of(archive(t, dir)).OK(t, "while another reads it")
	assert.OK(t, reader.Close())
	assert.Slice(t, branchesOf(t, a), []string{"side|aside", "main|second|first"})
	assert.True(t, maps.Equal(filesOf(t, a), map[string]string{"side": "s"}), "files", filesOf(t, a))
	other.Git("fetch", "-q", "origin")
	fetched(t, a, other)
	assert.Equal(t, other.Git("log", "--format=%an <%ae> %B", "origin/main..recovered/main"), "Bob <bob@acme.test> second\n\nBob <bob@acme.test> first\n\nbody\n\n")
	assert.Equal(t, other.Git("show", "recovered/main:x/new")+other.Git("show", "recovered/side:side"), "newers")
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Is(t, assert.ErrOf(a.Unpushed(ended)), context.Canceled)
	assert.OK(t, a.Close())
}

// The files are those of the head's branch; a merge brings what it made of both sides alone.
func TestArchiveFiles(t *testing.T) {
	t.Parallel()
	_, repo, other := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	commitOf(t, p, "ours", content("a", "mine"), content("x/new", "new"), content("gone", "gone"))
	commitOf(t, p, "less", providers.Change{Locator: at("gone"), Delete: true})
	other.Write(map[string]string{"theirs": "t"})
	other.Commit("main", "theirs")
	ours := mustHead(t, p)
	theirs := assert.Of(p.Fetch(t.Context())).OK(t)
	set := providers.ChangeSet{Merge: theirs, Message: "merge", Changes: []providers.Change{content("theirs", "t"), content("both", "b")}}
	for i := range set.Changes {
		set.Changes[i].If = always.If
	}
	set.Base = ours
	assert.Of(p.Commit(t.Context(), set)).OK(t)
	assert.OK(t, p.Close())
	a := assert.Of(archive(t, dir)).OK(t)
	defer a.Close()
	want := map[string]string{"a": "mine", "x/new": "new", "both": "b"}
	assert.True(t, maps.Equal(filesOf(t, a), want), "files", filesOf(t, a))
}

// Of a clone where all was pushed there is nothing, and it is not locked for that.
func TestArchiveOfNothing(t *testing.T) {
	t.Parallel()
	_, repo, _ := seeded(t)
	dir := place(t)
	assert.Is(t, assert.ErrOf(archive(t, dir)), fs.ErrNotExist, "no clone")
	p := clone(t, repo.URL, in(dir))
	commitOf(t, p, "pushed", content("pushed", "1"))
	push(t, p)
	a := assert.Of(archive(t, dir)).OK(t)
	assert.Equal(t, len(branchesOf(t, a))+len(filesOf(t, a)), 0, "what there is")
	head := mustHead(t, p)
	assert.OK(t, errors.Join(a.Close(), p.Close()))

	// One that has lost its head has nothing that could not be had again, and is made anew.
	for name, text := range map[string]string{"refs": "", "refs/heads/main": "", "HEAD": "", "HEAD ": "garbage"} {
		lost := filepath.Join(dir, strings.TrimSpace(name))
		assert.OK(t, os.RemoveAll(lost))
		if text != "" {
			assert.OK(t, os.WriteFile(lost, []byte(text), 0o600))
		}
		err := assert.ErrOf(archive(t, dir))
		assert.True(t, errors.Is(err, fs.ErrNotExist) && errors.Is(err, providers.ErrCorrupt), "without", name, err)
		p = clone(t, repo.URL, in(dir))
		assert.Equal(t, mustHead(t, p), head, "anew without", name)
		commitOf(t, p, "more", content("more", name))
		push(t, p)
		head = mustHead(t, p)
		assert.OK(t, p.Close())
	}
}

// A clone that cannot be read, or has lost what it had, says so, and is not taken for none.
func TestArchiveDamaged(t *testing.T) {
	t.Parallel()
	server, repo, _ := seeded(t)
	damages := map[string]func(dir string) error{}
	for _, name := range []string{"HEAD", "refs", "refs/heads", "objects"} {
		damages["without "+name] = func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	for _, state := range []string{"", "x", `{"Format":99}`} {
		damages["state "+state] = func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "wsmount", "clone.json"), []byte(state), 0o600)
		}
	}
	for _, url := range []string{repo.URL, server.Create(t, "acme/empty").URL} {
		good := filepath.Join(place(t), "clone")
		p := clone(t, url, in(good))
		a := assert.Of(archive(t, good)).OK(t, "without commits")
		assert.Equal(t, len(branchesOf(t, a)), 0, "branches without commits")
		assert.OK(t, a.Close())
		commitOf(t, p, "mine", content("a", "mine"))
		assert.OK(t, p.Close())
		for what, damage := range damages {
			dir := filepath.Join(place(t), "clone")
			assert.OK(t, errors.Join(os.CopyFS(dir, os.DirFS(good)), damage(dir)))
			err := assert.ErrOf(archive(t, dir))
			assert.True(t, err != nil && (!errors.Is(err, fs.ErrNotExist) || errors.Is(err, providers.ErrCorrupt)), what, "of", url, err)
		}
		a = assert.Of(archive(t, good)).OK(t)
		assert.Equal(t, len(branchesOf(t, a)), 1, "branches")
		assert.OK(t, a.Close())
	}
}

// Content in LFS that no server has comes out too, and beside the commits as git-lfs keeps it.
func TestArchiveLarge(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	commitOf(t, s.p, "large", content("new.bin", "large and mine"), content("text", "mine"))
	assert.OK(t, s.p.Close())
	a := assert.Of(archive(t, s.dir)).OK(t)
	defer a.Close()
	want := map[string]string{"new.bin": "large and mine", "text": "mine"}
	assert.True(t, maps.Equal(filesOf(t, a), want), "files", filesOf(t, a))
	var sums []string
	assert.OK(t, a.Large(t.Context(), func(sum string, open providers.Opener) error {
		body := assert.Of(open()).OK(t)
		defer body.Close()
		sums = append(sums, sum)
		assert.Equal(t, string(assert.Of(io.ReadAll(body)).OK(t)), "large and mine")
		return nil
	}))
	assert.True(t, len(sums) == 1 && strings.Contains(pointerTo("large and mine"), sums[0]), "large", sums)
	fetched(t, a, s.other)
	assert.Equal(t, s.other.Git("show", "recovered/main:new.bin"), pointerTo("large and mine"))
}

// What a clone without blobs never fetched is at the server alone: a file of that is told of, and
// the commits come out without it.
func TestArchiveBlobless(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(5, 20))
	p := s.open(git.CloneBlobless)
	commitOf(t, p, "mine", content("mine", "m"))
	assert.Of(p.Commit(t.Context(), providers.ChangeSet{Message: "move", Changes: []providers.Change{
		{Locator: at("moved"), From: at("d03"), Dir: true, If: providers.IfAbsent()}, {Locator: at("d03"), Delete: true, Dir: true}}})).OK(t)
	assert.OK(t, p.Close())
	s.leave(true)
	a := assert.Of(archive(t, s.dir)).OK(t)
	defer a.Close()
	got := filesOf(t, a)
	assert.True(t, len(got) == 21 && got["mine"] == "m" && got["moved/f004"] == "!true", "files", got)
	fetched(t, a, s.other)
	assert.Equal(t, s.other.Git("show", "recovered/main:moved/f004"), "file 4 of 3\n")
}
