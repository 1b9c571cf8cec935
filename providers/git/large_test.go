package git_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

const tracked = "*.bin filter=lfs diff=lfs merge=lfs -text\n"

// A largeStage is a repository of which some files are in LFS.
type largeStage struct {
	t      *testing.T
	server *gitserver.Server
	lfs    *gitserver.LFS
	repo   *gitserver.Repo
	other  *gitserver.Repo
	dir    string
	p      *git.Provider
}

const inLFS = "the content of a file that is large\n"

// newLargeStage has a.bin and dir/b.bin in LFS, raw.bin which should be and is not,
// and the text of a pointer that is not meant to be one.
func newLargeStage(t *testing.T, change ...func(*git.Options)) *largeStage {
	t.Helper()
	s := &largeStage{t: t, server: gitserver.Start(t), dir: place(t)}
	s.lfs = s.server.StartLFS(t)
	s.repo = s.server.Create(t, "acme/r")
	s.other = s.repo.Clone(filepath.Join(t.TempDir(), "other"))
	s.other.Write(map[string]string{".gitattributes": tracked, ".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:1/away\n", "a.bin": s.lfs.Put(inLFS), "dir/b.bin": s.lfs.Put("b"), "raw.bin": "raw\n",
		"pointer.txt": s.lfs.Put(inLFS), "text": "text\n", "empty.bin": ""})
	s.other.Commit("main", "begin")
	s.p = clone(t, s.repo.URL, append([]func(*git.Options){in(s.dir)}, change...)...)
	return s
}

// asked compares what was asked of LFS since it was last looked at.
func (s *largeStage) asked(what string, want ...string) {
	s.t.Helper()
	got := s.lfs.Requests()
	assert.True(s.t, slices.Equal(got, want), what, "LFS was asked", got, "want", want)
}

func (s *largeStage) push() error {
	return assert.ErrOf(s.p.Push(s.t.Context(), providers.PushOptions{}))
}

// blob is what git has at a path of the branch.
func (s *largeStage) blob(path string) string { return s.repo.Git("show", "main:"+path) }

// kept are the objects that wait for a push.
func (s *largeStage) kept() int {
	entries, _ := os.ReadDir(filepath.Join(s.dir, "wsmount/lfs"))
	return len(entries)
}

func pointerTo(content string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(content)), len(content))
}

func part(t *testing.T, p providers.Provider, name string, offset, length int64) (string, error) {
	t.Helper()
	got, _, err := providers.Fetch(t.Context(), p, at(name), providers.ReadOptions{Offset: offset, Length: length})
	return string(got), err
}

// A file in LFS has the size of its content, which is asked for when it is read, and
// in parts when parts are read. What has no filter, or is no pointer, is what git has.
func TestLarge(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	infos := map[string]providers.Info{}
	for info, err := range providers.All(t.Context(), s.p, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		assert.OK(t, err)
		infos[info.Locator.String()] = info
	}
	s.asked("a listing asks once whether there is LFS", "POST objects")
	for name, want := range map[string]int{"a.bin": len(inLFS), "dir/b.bin": 1, "raw.bin": 4, "pointer.txt": len(pointerTo(inLFS)), "empty.bin": 0} {
		stat, err := s.p.Stat(t.Context(), at(name))
		if err != nil || stat.Size != int64(want) || stat.Version != infos[name].Version || infos[name].Size != stat.Size || stat.Version.Size != stat.Size {
			t.Errorf("%s: %+v, %v, in a listing %+v, want %d bytes", name, stat, err, infos[name], want)
		}
	}
	assert.Equal(t, infos["a.bin"].Digest, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(inLFS))), "digest")
	for name, want := range map[string]bool{"a.bin": true, "raw.bin": true, "pointer.txt": false, "text": false} {
		assert.Equal(t, infos[name].Opaque, want, name, "opaque is", !want)
	}
	s.asked("sizes need nothing more")
	reads(t, s.p, "a.bin", inLFS)
	s.asked("the first read", "POST objects", "GET object")
	assert.Of(part(t, s.p, "a.bin", 4, 7)).Equal(t, inLFS[4:11], "a part")
	assert.Of(part(t, s.p, "a.bin", 1000, 7)).Equal(t, "", "a part beyond the end")
	s.asked("parts use the same link", "GET object bytes=4-10")
	reads(t, s.p, "raw.bin", "raw\n")
	reads(t, s.p, "pointer.txt", pointerTo(inLFS))
	reads(t, s.p, "empty.bin", "")
	s.asked("what git has")
	s.p = reopen(t, s.p, s.repo.URL, s.dir)
	assert.Equal(t, assert.Of(s.p.Stat(t.Context(), at("a.bin"))).OK(t).Version, infos["a.bin"].Version, "opened again")
	s.asked("what the server offers is remembered")
	past := assert.Of(s.p.At(t.Context(), providers.Revision(strings.TrimSpace(s.repo.Git("rev-parse", "main"))))).OK(t)
	reads(t, past, "dir/b.bin", "b")
}

// A link that has expired is asked for again, whether it said when or not.
func TestLargeLinks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newLargeStage(t, func(o *git.Options) { o.Now = func() time.Time { return now } })
	reads(t, s.p, "a.bin", inLFS)
	s.asked("first", "POST objects", "POST objects", "GET object")
	now = now.Add(time.Hour)
	reads(t, s.p, "a.bin", inLFS)
	s.asked("after its time", "POST objects", "GET object")
	s.lfs.Forget()
	reads(t, s.p, "a.bin", inLFS)
	s.asked("before its time", "GET object", "POST objects", "GET object")
}

// Content that does not come, or is not what its pointer says, is an I/O error with a
// reason, and never other bytes or an early end.
func TestLargeFails(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	reads(t, s.p, "a.bin", inLFS)
	answers := func(isObject bool, status int, header map[string]string, body string) {
		s.lfs.Fail(func(r *http.Request) *gitserver.Answer {
			if strings.HasPrefix(r.URL.Path, "/objects/") != isObject {
				return nil
			}
			return &gitserver.Answer{Status: status, Header: header, Body: body}
		})
	}
	check := func(what, name string, kind error, says string) {
		t.Helper()
		_, _, err := providers.Fetch(t.Context(), s.p, at(name), providers.ReadOptions{})
		if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), says) || !errors.Is(err, syscall.EIO) || errors.Is(err, providers.ErrNotExist) {
			t.Errorf("%s: %v, want %v that says %q", what, err, kind, says)
		}
	}
	oid := strings.TrimPrefix(strings.Fields(pointerTo(inLFS))[3], "sha256:")
	answers(true, 200, nil, strings.Repeat("x", len(inLFS)))
	check("other content", "a.bin", providers.ErrCorrupt, oid)
	answers(true, 200, map[string]string{"Content-Length": fmt.Sprint(len(inLFS) + 1)}, inLFS+"!")
	check("too much", "a.bin", providers.ErrCorrupt, "37 bytes and not 36")
	answers(true, 200, map[string]string{"Transfer-Encoding": "chunked"}, inLFS[:10])
	check("too little", "a.bin", providers.ErrUnavailable, "broke off")
	answers(true, 206, map[string]string{"Content-Range": "bytes 5-35/36"}, inLFS[5:])
	check("another part", "a.bin", providers.ErrCorrupt, "range")
	answers(true, 500, nil, "")
	check("a storage that fails", "a.bin", providers.ErrUnavailable, "500")
	answers(true, 403, nil, "")
	check("a storage that refuses", "a.bin", providers.ErrPermission, "403")
	answers(true, 307, map[string]string{"Location": "http://127.0.0.1:1/away?signature=hush"}, "")
	check("a redirect", "a.bin", providers.ErrUnavailable, "dial tcp 127.0.0.1:1: ")
	answers(false, 200, nil, `{"objects": [`)
	check("half an answer", "dir/b.bin", providers.ErrUnavailable, "JSON")
	answers(false, 200, nil, `{"objects": []}`)
	check("an answer about nothing", "dir/b.bin", providers.ErrUnavailable, "does not answer")
	answers(false, 200, nil, `{"transfer": "tus", "objects": []}`)
	check("another transfer", "dir/b.bin", providers.ErrUnsupported, "tus")
	answers(false, 403, nil, `{"message": "pay first"}`)
	check("an API that refuses", "dir/b.bin", providers.ErrPermission, "pay first")
	answers(false, 509, nil, `{"message": "too much was read"}`)
	check("a limit", "dir/b.bin", providers.ErrQuota, "too much was read")
	answers(false, 404, nil, `{"message": "who?"}`)
	check("LFS that is switched off", "dir/b.bin", providers.ErrUnsupported, "does not offer LFS")
	s.lfs.Fail(nil)
	s.lfs.Drop("b")
	check("an object that is not there", "dir/b.bin", providers.ErrPermission, "Object does not exist")
	// A server that takes no parts gives all, of which the part is taken.
	answers(true, 200, nil, inLFS)
	assert.Of(part(t, s.p, "a.bin", 4, 7)).Equal(t, inLFS[4:11], "a part of all")
}

// The credentials of git go to the API and to nobody else. Every place is asked for
// through the transport, and what that refuses says what is to be granted.
func TestLargeCredentials(t *testing.T) {
	t.Parallel()
	refused := ""
	s := newLargeStage(t)
	s.server.Require("s3cret")
	s.p = clone(t, s.repo.URL, func(o *git.Options) {
		o.Credentials = func(context.Context) (map[string]string, error) { return map[string]string{"token": "s3cret"}, nil }
		o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if origin := r.URL.Scheme + "://" + r.URL.Host; origin == refused {
				return nil, fmt.Errorf("not listed: %w", providers.ErrPermission)
			}
			return http.DefaultTransport.RoundTrip(r)
		})
	})
	reads(t, s.p, "a.bin", inLFS) // the storage fails the test when it sees them
	write(t, s.p, "new.bin", "new")
	assert.OK(t, s.push())
	refused = s.lfs.Storage
	_, _, err := providers.Fetch(t.Context(), s.p, at("dir/b.bin"), providers.ReadOptions{})
	if !errors.Is(err, providers.ErrPermission) || !strings.Contains(err.Error(), refused) || !strings.Contains(err.Error(), "allow_endpoints") {
		t.Errorf("a storage that is not granted: %v", err)
	}
	wrong := clone(t, s.repo.URL, func(o *git.Options) {
		n := 0
		o.Credentials = func(context.Context) (map[string]string, error) {
			if n++; n > 1 {
				return map[string]string{"token": "old"}, nil
			}
			return map[string]string{"token": "s3cret"}, nil
		}
	})
	_, _, err = providers.Fetch(t.Context(), wrong, at("dir/b.bin"), providers.ReadOptions{})
	assert.Is(t, err, providers.ErrUnauthenticated, "with an old token")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What is written is a pointer in git, byte for byte that of git-lfs, and its content
// is at the server before the commit is. Until then it is here, and reads say so.
func TestLargeWritten(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	info := write(t, s.p, "dir/new.bin", "new content")
	stat, err := s.p.Stat(t.Context(), at("dir/new.bin"))
	if err != nil || stat.Version != info.Version || stat.Size != 11 || stat.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("new content"))) {
		t.Errorf("written: %+v, then %+v, %v", info, stat, err)
	}
	reads(t, s.p, "dir/new.bin", "new content")
	assert.Of(part(t, s.p, "dir/new.bin", 4, 3)).Equal(t, "con", "a part")
	s.p = reopen(t, s.p, s.repo.URL, s.dir)
	reads(t, s.p, "dir/new.bin", "new content")
	s.lfs.Requests()
	var sent atomic.Int64
	s.server.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "git-receive-pack") && len(s.lfs.Objects()) != 3 {
			t.Errorf("git is pushed to when LFS has %d objects", len(s.lfs.Objects()))
		}
		return false
	})
	assert.OK(t, assert.ErrOf(s.p.Push(t.Context(), providers.PushOptions{Sent: func(n int) { sent.Add(int64(n)) }})))
	if sent.Load() < int64(len("new content"))+100 { // and a pack
		t.Errorf("%d bytes are told to go out", sent.Load())
	}
	s.server.Hook(nil)
	s.asked("a push, whose answers could be those of any server", "POST objects", "PUT object", "POST verify", "POST objects")
	assert.Equal(t, s.blob("dir/new.bin"), pointerTo("new content"), "git")
	assert.Equal(t, s.kept(), 0, "objects are kept after the push")
	reads(t, s.p, "dir/new.bin", "new content")
	assert.OK(t, s.push())
	write(t, s.p, "text", "changed\n")
	assert.OK(t, s.push())
	write(t, s.p, "copy.bin", inLFS) // the server has it
	s.lfs.Requests()
	assert.OK(t, s.push())
	s.asked("content that is there", "POST objects")
	write(t, s.p, "empty.bin", "")
	write(t, s.p, "none.bin", "")
	write(t, s.p, "not.txt", "text")
	assert.OK(t, s.push())
	for path, want := range map[string]string{"empty.bin": "", "none.bin": "", "not.txt": "text", "copy.bin": pointerTo(inLFS), "a.bin": pointerTo(inLFS)} {
		assert.Equal(t, s.blob(path), want, "what git has as", path)
	}
	before := s.repo.Git("rev-parse", "main")
	write(t, s.p, "a.bin", inLFS)
	assert.OK(t, s.push())
	assert.Equal(t, s.repo.Git("rev-parse", "main"), before, "the same content made a commit")
	_, err = s.p.Write(t.Context(), at("bad.bin"), providers.String(pointerTo(inLFS)), always)
	assert.Is(t, err, providers.ErrUnsupported, "the text of a pointer in place of content")
	write(t, s.p, "pointer2.txt", pointerTo(inLFS))
	reads(t, s.p, "pointer2.txt", pointerTo(inLFS))
	s.repo.Git("--git-dir", s.dir, "fsck", "--strict")
}

// A pointer that another tool wrote in its own way stays as it is while its content
// does.
func TestLargeOldPointer(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	old := strings.Replace(s.lfs.Put("old"), "git-lfs.github.com", "hawser.github.com", 1)
	s.other.Write(map[string]string{"old.bin": old})
	s.other.Commit("main", "old")
	theirs := assert.Of(s.p.Fetch(t.Context())).OK(t)
	head := assert.Of(s.p.Head(t.Context())).OK(t)
	assert.OK(t, s.p.Adopt(t.Context(), head, theirs))
	reads(t, s.p, "old.bin", "old")
	write(t, s.p, "old.bin", "old")
	assert.OK(t, s.push())
	assert.Equal(t, s.blob("old.bin"), old, "git")
}

// A push that cannot bring the content does not bring the commit; the content waits.
func TestLargeNotUploaded(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	write(t, s.p, "new.bin", "new")
	before := s.repo.Git("rev-parse", "main")
	for _, c := range []struct {
		what, part string
		status     int
		kind       error
	}{
		{"the API fails", "/batch", 503, providers.ErrUnavailable}, {"the API refuses", "/batch", 403, providers.ErrPermission},
		{"no more room", "/batch", 507, providers.ErrQuota}, {"the storage fails", "/objects/", 500, providers.ErrUnavailable},
		{"too large", "/objects/", 413, providers.ErrTooLarge}, {"a redirect", "/objects/", 307, providers.ErrPermission},
		{"the check fails", "/verify/", 422, providers.ErrInvalid},
	} {
		s.lfs.Fail(func(r *http.Request) *gitserver.Answer {
			if !strings.Contains(r.URL.Path, c.part) || c.part == "/objects/" && !strings.HasPrefix(r.URL.Path, c.part) {
				return nil
			}
			return &gitserver.Answer{Status: c.status, Header: map[string]string{"Location": s.server.URL}, Body: "{}"}
		})
		assert.Is(t, s.push(), c.kind, c.what)
	}
	s.lfs.Fail(nil)
	now := s.repo.Git("rev-parse", "main")
	assert.True(t, now == before && s.kept() == 1, "main is at", now, "was", before, s.kept(), "objects wait")
	s.p = reopen(t, s.p, s.repo.URL, s.dir)
	assert.OK(t, s.push())
	got := s.lfs.Objects()
	assert.True(t, got[strings.TrimPrefix(strings.Fields(pointerTo("new"))[3], "sha256:")] == "new", "the server has", got)
}

// Objects that no commit names, or that the server has, go when the clone is opened;
// those that a commit names which no branch has any more stay.
func TestLargeSwept(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	write(t, s.p, "x.bin", "x")
	head := assert.Of(s.p.Head(t.Context())).OK(t)
	_, err := s.p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
		{Locator: at("y.bin"), Body: providers.String("y"), If: providers.IfAbsent()}, {Locator: at("text"), Body: providers.String("y"), If: providers.IfAbsent()}}})
	assert.Is(t, err, providers.ErrExist, "a set that fails")
	assert.Equal(t, s.kept(), 2, "objects are kept")
	s.p = reopen(t, s.p, s.repo.URL, s.dir)
	assert.Equal(t, s.kept(), 1, "objects are kept after a restart")
	s.other.Write(map[string]string{"text": "theirs\n"})
	s.other.Commit("main", "theirs")
	theirs := assert.Of(s.p.Fetch(t.Context())).OK(t)
	assert.OK(t, s.p.Adopt(t.Context(), head, theirs)) // and ours is left behind
	s.p = reopen(t, s.p, s.repo.URL, s.dir)
	past := assert.Of(s.p.At(t.Context(), head)).OK(t)
	reads(t, past, "x.bin", "x")
}

// A file that gets a name with another filter shows what it did; one with the same
// keeps its pointer. A change of attributes, or of a directory's name, that would have
// other files show something else is refused, unless these are written anew with it.
func TestLargeRenamed(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	move := func(from, to string) error {
		_, err := s.p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
			{Locator: at(to), From: at(from), If: providers.IfAbsent()}, {Locator: at(from), Delete: true, If: providers.Unconditional()}}})
		return err
	}
	assert.OK(t, move("a.bin", "dir/c.bin"))
	reads(t, s.p, "dir/c.bin", inLFS)
	assert.OK(t, move("dir/c.bin", "c.out"))
	reads(t, s.p, "c.out", inLFS)
	assert.OK(t, move("text", "text.bin"))
	reads(t, s.p, "text.bin", "text\n")
	assert.OK(t, move("raw.bin", "raw2.bin"))
	assert.Is(t, move("pointer.txt", "pointer.bin"), providers.ErrUnsupported, "the text of a pointer gets a name with the filter")
	assert.OK(t, s.push())
	for path, want := range map[string]string{"c.out": inLFS, "text.bin": pointerTo("text\n"), "raw2.bin": "raw\n", "pointer.txt": pointerTo(inLFS)} {
		assert.Equal(t, s.blob(path), want, "what git has as", path)
	}
	attributes := func(path, text string, more ...providers.Change) error {
		return assert.ErrOf(s.p.Commit(t.Context(), providers.ChangeSet{Changes: append(more, providers.Change{Locator: at(path), Body: providers.String(text), If: providers.Unconditional()})}))
	}
	assert.Is(t, attributes(".gitattributes", "* text\n"), providers.ErrUnsupported, "no file goes through LFS any more")
	assert.Is(t, attributes("dir/.gitattributes", "*.bin -filter\n"), providers.ErrUnsupported, "none of a directory")
	assert.Is(t, attributes(".gitattributes", tracked+"*.txt filter=lfs\n"), providers.ErrUnsupported, "the text of a pointer does")
	assert.Is(t, s.p.Delete(t.Context(), at(".gitattributes"), providers.DeleteOptions{If: providers.Unconditional()}), providers.ErrUnsupported, "the attributes go")
	assert.Is(t, move(".gitattributes", "far/.gitattributes"), providers.ErrUnsupported, "the attributes get another place")
	assert.OK(t, attributes(".gitattributes", tracked+"other/** filter=lfs\n"))
	assert.OK(t, attributes("dir/.gitattributes", "*.bin -filter\n", providers.Change{Locator: at("dir/b.bin"), Body: providers.String("b in git"), If: providers.Unconditional()}))
	reads(t, s.p, "dir/b.bin", "b in git")
	assert.OK(t, attributes(".gitattributes", tracked+"other/** filter=lfs\nnew/** filter=lfs\n", providers.Change{Locator: at("new/x"), Body: providers.String("x"), If: providers.IfAbsent()}))
	reads(t, s.p, "new/x", "x")
	_, err := s.p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
		{Locator: at("newer"), From: at("new"), Dir: true, If: providers.IfAbsent()}, {Locator: at("new"), Delete: true, Dir: true, If: providers.IfDir()}}})
	assert.Is(t, err, providers.ErrUnsupported, "a directory leaves its filter behind")
	_, err = s.p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
		{Locator: at("other"), From: at("new"), Dir: true, If: providers.IfAbsent()}, {Locator: at("new"), Delete: true, Dir: true, If: providers.IfDir()}}})
	assert.OK(t, err)
	reads(t, s.p, "other/x", "x")
	assert.OK(t, s.push())
	assert.Equal(t, s.blob("dir/b.bin")+s.blob("other/x"), "b in git"+pointerTo("x"), "git")
}

// What others change of attributes is a difference of the files that show something
// else by it.
func TestLargeDifferences(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	from := assert.Of(s.p.Head(t.Context())).OK(t)
	s.other.Write(map[string]string{".gitattributes": "dir/*.bin filter=lfs\n*.txt filter=lfs\n"})
	s.other.Commit("main", "attributes")
	to := assert.Of(s.p.Fetch(t.Context())).OK(t)
	all := assert.Of(s.p.Differences(t.Context(), from, to)).OK(t)
	got := map[string]string{}
	for _, d := range all {
		got[d.Locator.String()] = fmt.Sprint(d.Was.Size, " ", d.Is.Size)
	}
	text := len(pointerTo(inLFS))
	want := map[string]string{".gitattributes": got[".gitattributes"], "a.bin": fmt.Sprint(len(inLFS), " ", text), "pointer.txt": fmt.Sprint(text, " ", len(inLFS))}
	assert.Equal(t, fmt.Sprint(got), fmt.Sprint(want), got, want)
}

// Over SSH the server says where its LFS is and how it is asked; one that does not
// know the question has none.
func TestLargeOverSSH(t *testing.T) {
	t.Parallel()
	for _, offers := range []bool{true, false} {
		s := newLargeStage(t)
		h := newSSHStageOf(t, s.server)
		s.server.Require("s3cret")
		if !offers {
			s.server.StopLFS()
		}
		s.p = clone(t, h.url("acme/r"), h.over)
		if !offers {
			reads(t, s.p, "a.bin", pointerTo(inLFS))
			continue
		}
		h.ssh.Commands()
		reads(t, s.p, "a.bin", inLFS)
		reads(t, s.p, "dir/b.bin", "b")
		write(t, s.p, "new.bin", "new")
		assert.OK(t, s.push())
		got, want := fmt.Sprint(h.ssh.Commands()), "[git-lfs-authenticate '/acme/r.git' download git-lfs-authenticate '/acme/r.git' upload git-receive-pack '/acme/r.git']"
		assert.True(t, got == want, "the server was asked", got, want)
		assert.Equal(t, len(s.lfs.Objects()), 3, "the server")
	}
}

// Where the server offers no LFS pointers are files like others, and what should go
// there does not go into git.
func TestLargeNotOffered(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing there":   nil,
		"not implemented": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotImplemented) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newLargeStage(t)
			s.server.StopLFS()
			s.server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
				if answer == nil || !strings.Contains(r.URL.Path, "/info/lfs/") {
					return false
				}
				answer(w)
				return true
			})
			reads(t, s.p, "a.bin", pointerTo(inLFS))
			s.server.Hook(nil)
			s.lfs = s.server.StartLFS(t)
			s.p = reopen(t, s.p, s.repo.URL, s.dir)
			info, err := s.p.Stat(t.Context(), at("a.bin"))
			assert.True(t, err == nil && info.Size == int64(len(pointerTo(inLFS))), "when it offers LFS later:", info, err)
			_, err = s.p.Write(t.Context(), at("new.bin"), providers.String("new"), always)
			assert.True(t, errors.Is(err, providers.ErrUnsupported) && strings.Contains(err.Error(), "does not offer"), "written:", err)
			write(t, s.p, "copy.bin", pointerTo(inLFS))
			write(t, s.p, "text", "changed\n")
			assert.OK(t, s.push())
			got := s.blob("copy.bin")
			assert.True(t, got == pointerTo(inLFS) && s.kept() == 0, "git has", got, s.kept(), "objects wait")
		})
	}
}

// A clone of a time when pointers were files stays so: who has looked at it knows their
// sizes.
func TestLargeBefore(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	assert.OK(t, s.p.Close())
	file := filepath.Join(s.dir, "wsmount/clone.json")
	b := assert.Of(os.ReadFile(file)).OK(t)
	before := strings.Replace(string(b), `,"LFS":"unasked"`, "", 1)
	assert.False(t, before == string(b), "a clone says", b)
	assert.OK(t, os.WriteFile(file, []byte(before), 0o600))
	s.p = clone(t, s.repo.URL, in(s.dir))
	reads(t, s.p, "a.bin", pointerTo(inLFS))
}

// While nobody can say whether the server offers LFS, nothing is given a size, and
// what goes there waits without keeping other files.
func TestLargeUnknown(t *testing.T) {
	t.Parallel()
	s := newLargeStage(t)
	s.server.Stop()
	assert.Is(t, assert.ErrOf(s.p.Stat(t.Context(), at("a.bin"))), providers.ErrUnavailable, "a pointer")
	_, err := s.p.Write(t.Context(), at("new.bin"), providers.String("new"), always)
	assert.True(t, errors.Is(err, providers.ErrUnsupported) && !errors.Is(err, providers.ErrUnavailable), "written:", err)
	write(t, s.p, "text", "changed\n")
}

// Pointers are never merged, nor is what should be one. A rename of one is followed.
func TestLargeMerged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ours, theirs string }{
		{"a.bin", "ours", pointerTo("theirs")}, {"pointer.txt", pointerTo("ours"), pointerTo("theirs")}, {"raw.bin", "raw\nours\n", "theirs\nraw\n"},
		{"text", "ours\ntext\n", pointerTo("theirs")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newLargeStage(t)
			base := assert.Of(s.p.Head(t.Context())).OK(t)
			write(t, s.p, c.name, c.ours)
			ours := assert.Of(s.p.Head(t.Context())).OK(t)
			s.other.Write(map[string]string{c.name: c.theirs})
			s.other.Commit("main", "theirs")
			theirs := assert.Of(s.p.Fetch(t.Context())).OK(t)
			_, err := s.p.Rebase(t.Context(), base, ours, theirs, func(_, a, _ []byte, _ bool) ([]byte, bool) {
				t.Errorf("somebody is asked to merge %q", a)
				return a, true
			})
			assert.Is(t, err, providers.ErrConflict, "a rebase")
		})
	}
	s := newLargeStage(t)
	base := assert.Of(s.p.Head(t.Context())).OK(t)
	write(t, s.p, "a.bin", "ours")
	ours := assert.Of(s.p.Head(t.Context())).OK(t)
	s.other.Git("mv", "a.bin", "z.bin")
	s.other.Commit("main", "theirs")
	theirs := assert.Of(s.p.Fetch(t.Context())).OK(t)
	made := assert.Of(s.p.Rebase(t.Context(), base, ours, theirs, func(_, _, _ []byte, _ bool) ([]byte, bool) { return nil, false })).OK(t)
	assert.OK(t, s.p.Adopt(t.Context(), ours, made))
	reads(t, s.p, "z.bin", "ours")
	assert.OK(t, s.push())
	assert.Equal(t, len(s.lfs.Objects()), 3, "the server")
}
