package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A daemonStage is a git daemon, and how a mount of a repository at it ends.
type daemonStage struct {
	*testing.T
	git    *gitserver.Server
	daemon *gitserver.Daemon
}

func newDaemonStage(t *testing.T, more ...string) *daemonStage {
	t.Helper()
	s := &daemonStage{T: t, git: gitserver.Start(t)}
	s.daemon = gitserver.StartDaemon(t, s.git, more...)
	return s
}

func (s *daemonStage) url(name string) string { return s.daemon.URL + "/" + name + ".git" }

func (s *daemonStage) open(url string, change ...func(*git.Options)) error {
	o := git.Options{URL: url, Dir: s.TempDir()}
	for _, f := range change {
		f(&o)
	}
	p, err := git.Open(s.Context(), o)
	if err == nil {
		err = p.Close()
	}
	return err
}

func (s *daemonStage) wants(what string, err, kind error, words ...string) {
	s.Helper()
	assert.Must(s, errors.Is(err, kind) && (err == nil || kind != nil), what, err, "want", kind)
	for _, w := range words {
		assert.Contains(s, err.Error(), w, what, err, "does not say")
	}
}

// What asks a remote at a daemon does as over HTTP.
func TestContractClonesOverGit(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t, gitserver.Pushable)
	n := 0
	providertest.RunCloneVariant(t, providertest.OverWire, func(ct providertest.T) providertest.Clones {
		n++
		name := fmt.Sprint("r", n)
		repo := s.git.Create(t, name)
		return providertest.Clones{A: clone(ct, s.url(name)), B: clone(ct, s.url(name)), Drop: dropping(repo)}
	})
}

// What a daemon answers is of the kinds that it is of over HTTP, as far as it tells.
func TestDaemonAnswers(t *testing.T) { // not beside others, whose servers would take the address of one that is away
	s, tells := newDaemonStage(t), newDaemonStage(t, "--informative-errors")
	s.git.Create(t, "r")
	var advice interface{ Advice() string }
	err := s.open(s.url("none"))
	s.wants("no such repository", err, providers.ErrPermission, "not exported: /none.git")
	assert.True(t, errors.As(err, &advice) && strings.Contains(advice.Advice(), "git-daemon-export-ok"), err, "advises nothing")
	tells.wants("no such repository, told", tells.open(tells.url("none")), providers.ErrNotExist, "no such repository: /none.git")
	s.wants("a user", s.open("git://ann@"+s.daemon.Addr+"/r.git"), providers.ErrInvalid)
	s.daemon.Hook(answering("0014ERR down for now"))
	s.wants("other words", s.open(s.url("r")), providers.ErrUnavailable, "the server says: down for now")
	for _, text := range []string{"", "HTTP/1.1 400 Bad Request\r\n\r\n", "<html>Log in</html>", "0008NAK\n0000"} {
		s.daemon.Hook(answering(text))
		s.wants(fmt.Sprintf("an answer that is not git's, %q", text), s.open(s.url("r")), providers.ErrUnavailable)
	}
	s.daemon.Hook(nil)
	s.daemon.Away()
	s.wants("a daemon that is away", s.open(s.url("r")), providers.ErrUnavailable, "refused")
	assert.OK(t, s.daemon.Back())
	s.wants("a daemon that is back", s.open(s.url("r")), nil)
}

// answering reads the question, since a connection that is closed with something unread
// takes back what was said on it.
func answering(text string) func(net.Conn) bool {
	return func(c net.Conn) bool {
		pktline.NewScanner(c).Scan()
		fmt.Fprint(c, text)
		return true
	}
}

// No credentials are taken, so none are sent: they are not even revealed.
func TestDaemonTakesNoCredentials(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t)
	s.git.Create(t, "acme/r")
	reveal := func(context.Context) (map[string]string, error) {
		t.Error("they were revealed")
		return map[string]string{"token": "hunter2"}, nil
	}
	for _, url := range []string{s.url("acme/r"), "GIT" + strings.TrimPrefix(s.url("acme/r"), "git")} {
		s.wants(url, s.open(url, func(o *git.Options) { o.Credentials = reveal }), providers.ErrInvalid, "credentials are never sent over git://")
	}
	for _, dir := range []string{"", t.TempDir()} { // to look, and to clone
		_, err := git.Drivers()[0].Open(t.Context(), providers.Settings{StateDir: dir, Credentials: reveal,
			Config: map[string]string{"base_url": s.daemon.URL, "owner": "acme", "repo": "r"}})
		s.wants("the driver", err, providers.ErrInvalid, "credentials are never sent over git://")
	}
	assert.Equal(t, s.daemon.Heard(), "", "the daemon was asked")
}

// The daemon is asked for the path of the URL, at the host of the URL, over a
// connection that somebody else made.
func TestDaemonIsDialled(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t)
	s.git.Create(t, "acme/r")
	var origins []string
	var refuse atomic.Bool
	dial := func(ctx context.Context, origin string) (net.Conn, error) {
		origins = append(origins, origin)
		if refuse.Load() {
			return nil, fmt.Errorf("not listed: %w", providers.ErrPermission)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.daemon.Addr)
	}
	p, err := git.Drivers()[0].Open(t.Context(), providers.Settings{Dial: dial,
		Config: map[string]string{"base_url": "git://git.acme.test", "owner": "acme", "repo": "r"}})
	assert.OK(t, err)
	found := p.(providers.Examiner).Examine(t.Context())
	assert.True(t, len(found) == 3 && found[1].Grade == providers.Less && strings.Contains(found[1].Says, "nothing is encrypted"), "found", found)
	assert.OK(t, p.Close())
	want := "git-upload-pack /acme/r.git\x00host=git.acme.test\x00"
	assert.True(t, strings.Contains(s.daemon.Heard(), want), "the daemon did not hear", want)
	refuse.Store(true)
	s.wants("who may not", s.open("git://git.acme.test:4000/acme/r.git", func(o *git.Options) { o.Daemon.Dial = dial }), providers.ErrPermission, "not listed")
	// It is asked for its branches, for that which an empty repository is to have, and by Examine.
	const usual = "git://git.acme.test:9418"
	assert.Slice(t, origins, []string{usual, usual, usual, "git://git.acme.test:4000"}, "dialled")
}

// A daemon that keeps silent, and a connection that breaks off, end what waits for
// them, wherever in the dialogue that is.
func TestDaemonSilence(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t)
	work := s.git.Create(t, "r").Clone(filepath.Join(t.TempDir(), "work"))
	work.Write(map[string]string{"f": "content\n"})
	work.Commit("main", "begin")
	short := func(o *git.Options) { o.Daemon.Patience = 200 * time.Millisecond }
	s.daemon.Hook(func(c net.Conn) bool { io.Copy(io.Discard, c); return true })
	s.wants("no answer", s.open(s.url("r"), short), providers.ErrUnavailable, "stopped answering")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	late := git.Options{URL: s.url("r"), Dir: t.TempDir()}
	late.Daemon.Patience = time.Hour // which is not waited for
	assert.Is(t, assert.ErrOf(git.Open(ctx, late)), context.DeadlineExceeded, "with a deadline")
	cutting := func(n int64, end bool) func(net.Conn) bool {
		return func(c net.Conn) bool { s.daemon.Run(c, &firstBytes{c, n, end}); return true }
	}
	for _, n := range []int64{10, 300} { // of the branches, of the content
		s.daemon.Hook(cutting(n, false))
		s.wants("half of what it has", s.open(s.url("r"), short), providers.ErrUnavailable, "stopped answering")
		s.daemon.Hook(cutting(n, true))
		s.wants("an end in the middle", s.open(s.url("r")), providers.ErrUnavailable)
	}
	s.daemon.Hook(func(net.Conn) bool { return true })
	s.wants("an end at once", s.open(s.url("r")), providers.ErrUnavailable)
	s.daemon.Hook(nil)
	s.wants("all of it", s.open(s.url("r")), nil)
}

// A daemon that takes no pushes has refused the branch, until it does.
func TestDaemonWithoutPushes(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"as it is": nil, "told": {"--informative-errors"}} {
		s := newDaemonStage(t, more...)
		repo := s.git.Create(t, "r")
		dir := place(t)
		p := clone(t, s.url("r"), in(dir))
		write(t, p, "a", "1")
		_, err := p.Push(t.Context(), providers.PushOptions{})
		s.wants(name, err, providers.ErrPermission, providers.RefusedService, "pushes are not taken", "/r.git")
		assert.OK(t, p.Close())
		p = clone(t, s.url("r"), in(dir)) // which remembers it
		all, err := p.Branches(t.Context())
		if assert.OK(t, err); len(all.Unmerged) != 1 || all.Unmerged[0].Refused.Code != providers.RefusedService || !strings.Contains(all.Unmerged[0].Refused.Says, "the server says: ") {
			t.Errorf("%s: %+v", name, all)
		}
		repo.Git("config", "daemon.receivepack", "true")
		pushed := assert.Of(p.Push(t.Context(), providers.PushOptions{})).OK(t)
		assert.Must(t, pushed.Pushed, name, "when it does", pushed)
		all, err = p.Branches(t.Context())
		assert.True(t, err == nil && len(all.Unmerged) == 0, name, "still refused:", all, err)
		assert.Equal(t, repo.Git("show", "main:a"), "1", name, "the server")
		repo.Git("fsck", "--strict")
		assert.OK(t, p.Close())
	}
}

// A push that a hook refuses is told apart from one that was lost, and one that was
// lost is sent again.
func TestDaemonPushes(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t, gitserver.Pushable)
	repo := s.git.Create(t, "r")
	hook := filepath.Join(repo.Dir, "hooks", "pre-receive")
	assert.OK(t, os.WriteFile(hook, []byte("#!/bin/sh\ncat >/dev/null\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"), 0o755))
	p := clone(t, s.url("r"))
	defer p.Close()
	write(t, p, "a", strings.Repeat("0123456789", 1<<10))
	_, err := p.Push(t.Context(), providers.PushOptions{})
	s.wants("a protected branch", err, providers.ErrPermission, providers.RefusedBranch, "pre-receive hook declined", "GH006")
	assert.OK(t, os.Remove(hook))
	s.daemon.Hook(func(c net.Conn) bool { // it goes as the push begins
		s.daemon.Run(c, &firstBytes{c, 100, true})
		return true
	})
	s.wants("a push that is lost", assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})), providers.ErrUnavailable)
	s.daemon.Hook(nil)
	pushed := assert.Of(p.Push(t.Context(), providers.PushOptions{})).OK(t)
	assert.Must(t, pushed.Pushed, pushed)
	all := assert.Of(p.Branches(t.Context())).OK(t)
	assert.True(t, len(all.Unmerged) == 0, "still refused", all)
	repo.Git("fsck", "--strict")
}

// Contents come later at a daemon as well, if it filters.
func TestBloblessOverGit(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(30, 40))
	daemon := gitserver.StartDaemon(t, s.server)
	p := clone(t, daemon.URL+"/acme/r.git", in(s.dir))
	s.comeLater(p)
}

// At a daemon there is no LFS: a pointer is a file like others, and nothing that
// should become one is committed raw.
func TestLargeOverGit(t *testing.T) {
	t.Parallel()
	s := newDaemonStage(t, gitserver.Pushable)
	s.git.StartLFS(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0a", 32) + "\nsize 12\n"
	work := s.git.Create(t, "r").Clone(filepath.Join(t.TempDir(), "work"))
	work.Write(map[string]string{".gitattributes": "*.bin filter=lfs -text\n", "old.bin": pointer})
	work.Commit("main", "begin")
	p := clone(t, s.url("r"))
	defer p.Close()
	reads(t, p, "old.bin", pointer)
	_, err := p.Write(t.Context(), at("new.bin"), providers.String("raw"), always)
	s.wants("raw", err, providers.ErrUnsupported, "which the server does not offer")
	asked := s.git.Requests()
	assert.True(t, len(asked) == 0, "over HTTP it was asked for", asked)
}
