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
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A sshStage is a server that is reached over SSH, whose key is known, and a client
// whose key it admits.
type sshStage struct {
	t            *testing.T
	git          *gitserver.Server
	ssh          *gitserver.SSH
	host, client gitserver.Key
	known        string // the file of known hosts
	fields       map[string]string
}

func newSSHStage(t *testing.T) *sshStage {
	t.Helper()
	return newSSHStageOf(t, gitserver.Start(t))
}

func newSSHStageOf(t *testing.T, server *gitserver.Server) *sshStage {
	t.Helper()
	s := &sshStage{t: t, git: server, known: filepath.Join(t.TempDir(), "known_hosts")}
	s.ssh, s.host, s.client = gitserver.StartSSH(t, s.git)
	s.fields = map[string]string{"ssh_private_key": s.client.PEM}
	s.knows(s.host.Known(s.ssh.Addr))
	return s
}

// knows says which keys of servers are known.
func (s *sshStage) knows(lines string) {
	s.t.Helper()
	assert.OK(s.t, os.WriteFile(s.known, []byte(lines), 0o600))
}

// over has a clone go over SSH.
func (s *sshStage) over(o *git.Options) {
	o.SSH = git.SSH{KnownHosts: []string{filepath.Join(s.t.TempDir(), "none"), s.known}, Patience: 2 * time.Minute}
	o.Credentials = func(context.Context) (map[string]string, error) { return s.fields, nil }
}

func (s *sshStage) url(name string) string { return s.ssh.URL + "/" + name + ".git" }

// What asks a remote over SSH does as over HTTP.
func TestContractClonesOverSSH(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	n := 0
	providertest.RunCloneVariant(t, providertest.OverWire, func(ct providertest.T) providertest.Clones {
		n++
		name := fmt.Sprint("r", n)
		repo := s.git.Create(t, name)
		return providertest.Clones{
			A: clone(ct, s.url(name), s.over), B: clone(ct, s.url(name), s.over),
			Drop: dropping(repo),
		}
	})
}

// open is how a first mount of a repository ends.
func (s *sshStage) open(url string, change ...func(*git.Options)) error {
	o := git.Options{URL: url, Dir: s.t.TempDir()}
	s.over(&o)
	for _, f := range change {
		f(&o)
	}
	p, err := git.Open(s.t.Context(), o)
	if err == nil {
		err = p.Close()
	}
	return err
}

func (s *sshStage) wants(what string, err, kind error, words ...string) {
	s.t.Helper()
	assert.Must(s.t, errors.Is(err, kind), what, err, "want", kind)
	for _, w := range words {
		assert.False(s.t, err != nil && !strings.Contains(err.Error(), w), what, err, "does not say", w)
	}
	assert.False(s.t, err != nil && strings.Contains(err.Error(), "PRIVATE KEY"), what, "the error shows a key:", err)
}

// A server is spoken with only when its key is the one that is known, which never
// is so because it was seen once.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	s.git.Create(t, "r")
	url := s.url("r")
	other := gitserver.MakeKey(t)
	host, port, _ := net.SplitHostPort(s.ssh.Addr)
	scan := "ssh-keyscan -p " + port + " " + host

	s.knows("")
	for range 2 { // the second time it is as unknown
		s.wants("an unknown key", s.open(url), providers.ErrPermission, "is in none of", s.ssh.Addr, s.host.Fingerprint(), s.known, scan)
	}
	s.knows(s.host.Known("git.acme.test"))
	s.wants("a key of another host", s.open(url), providers.ErrPermission, "is in none of")
	s.knows("# a comment\n" + other.Known(s.ssh.Addr))
	s.wants("another key", s.open(url), providers.ErrPermission, "somebody may be in between", s.ssh.Addr, s.host.Fingerprint(), other.Fingerprint(), s.known+":2", scan)
	s.knows(s.host.Known(s.ssh.Addr) + "@revoked * " + strings.SplitN(s.host.Known("x"), " ", 2)[1])
	s.wants("a revoked key", s.open(url), providers.ErrPermission, "revokes", s.host.Fingerprint(), s.known+":2")
	s.knows("nonsense\n")
	s.wants("a damaged file", s.open(url), providers.ErrPermission, s.known+":1")
	s.wants("no file at all", s.open(url, func(o *git.Options) { o.SSH.KnownHosts = nil }), providers.ErrPermission, "no file of known hosts")
	asked := s.ssh.Commands()
	assert.True(t, len(asked) == 0, "a server that is not believed was asked to run", asked)
	s.knows(other.Known("git.acme.test") + s.host.Known(s.ssh.Addr))
	s.wants("the key that is known", s.open(url), nil)
}

// A server has keys of several kinds. It is asked for the one that is known, which
// need not be the one that it would show.
func TestHostKeyOfTheKnownKind(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	s.git.Create(t, "r")
	ecdsa := gitserver.MakeECDSAKey(t)
	s.ssh.AlsoHas(ecdsa)
	s.knows(ecdsa.Known(s.ssh.Addr))
	s.wants("an ECDSA key", s.open(s.url("r")), nil)
	s.knows(s.host.Known(s.ssh.Addr))
	s.wants("an Ed25519 key", s.open(s.url("r")), nil)
}

// Who we are is what the credentials say, and nothing that lies about.
func TestSSHKeys(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	s.git.Create(t, "r")
	stranger := gitserver.MakeKey(t)
	for _, c := range []struct {
		name   string
		fields map[string]string
		kind   error
		says   string
	}{
		{"a key", map[string]string{"ssh_private_key": s.client.PEM}, nil, ""},
		{"a key as the only field", map[string]string{"value": s.client.PEM}, nil, ""},
		{"a key beside a token for the API", map[string]string{"ssh_private_key": s.client.PEM, "token": "t"}, nil, ""},
		{"a key that is not admitted", map[string]string{"ssh_private_key": stranger.PEM}, providers.ErrUnauthenticated, "does not take the key"},
		{"no key", map[string]string{"ssh_private_key": "PRIVATE KEY of nobody"}, providers.ErrUnauthenticated, "no private key"},
		{"a token", map[string]string{"token": "t"}, providers.ErrUnauthenticated, "no field ssh_private_key"},
	} {
		s.fields = c.fields
		s.wants(c.name, s.open(s.url("r")), c.kind, c.says)
	}
	nothing := func(o *git.Options) { o.Credentials = nil }
	s.wants("nothing", s.open(s.url("r"), nothing), providers.ErrUnauthenticated, "wants a key")
	agent := gitserver.StartAgent(t, s.client)
	s.wants("an agent", s.open(s.url("r"), nothing, func(o *git.Options) { o.SSH.Agent = agent }), nil)
	s.wants("no agent", s.open(s.url("r"), nothing, func(o *git.Options) { o.SSH.Agent = agent + ".gone" }), providers.ErrUnauthenticated, "does not answer")
	strange := gitserver.StartAgent(t, stranger)
	s.wants("an agent with another key", s.open(s.url("r"), nothing, func(o *git.Options) { o.SSH.Agent = strange }), providers.ErrUnauthenticated, "no key that the ssh-agent has")
}

// A key that is closed is opened with its passphrase, once as long as both stay.
func TestSSHPassphrase(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "ssh-keygen")
	s := newSSHStage(t)
	s.git.Create(t, "r")
	closed := assert.Of(s.client.Closed(t.Context(), "sesame")).OK(t)
	says := func(passphrase string) {
		s.fields = map[string]string{"ssh_private_key": closed, "ssh_passphrase": passphrase}
	}
	says("")
	s.wants("no passphrase", s.open(s.url("r")), providers.ErrUnauthenticated, "no field ssh_passphrase")
	says("open")
	s.wants("another passphrase", s.open(s.url("r")), providers.ErrUnauthenticated, "does not open")
	says("sesame")
	p := clone(t, s.url("r"), s.over)
	defer p.Close()
	write(t, p, "a", "1")
	assert.OK(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})))
	fetched := func(what string, kind error) {
		t.Helper()
		s.wants(what, assert.ErrOf(p.Fetch(t.Context())), kind)
	}
	fetched("the same passphrase", nil)
	says("open")
	fetched("a passphrase that has changed", providers.ErrUnauthenticated)
	says("sesame")
	fetched("the passphrase again", nil)
	s.fields["ssh_private_key"] = s.host.PEM
	fetched("a key that is not admitted", providers.ErrUnauthenticated)
}

// What a server answers is of the kinds that it is of over HTTP.
func TestSSHAnswers(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	s.git.Create(t, "r")
	s.wants("no such repository", s.open(s.url("none")), providers.ErrNotExist, "does not appear to be a git repository")
	s.wants("a URL with a quote", s.open(s.ssh.URL+"/a';touch%20b'.git"), providers.ErrInvalid)
	s.wants("an option", s.open(s.ssh.URL+"/~/--help"), providers.ErrInvalid)

	says := func(text string) { // as the great hosts do
		s.ssh.Hook(func(_ string, c gitserver.Channel) bool { fmt.Fprintln(c.Stderr(), text); return true })
	}
	for text, kind := range map[string]error{
		"ERROR: Repository not found.":                                            providers.ErrNotExist,
		"Gitea: Cannot find repository: acme/r":                                   providers.ErrNotExist,
		"ERROR: Permission to acme/r.git denied to bob.":                          providers.ErrPermission,
		"ERROR: The key you are authenticating with has been marked as read only": providers.ErrPermission,
		"This account is currently not available.":                                providers.ErrUnavailable,
	} {
		says(text)
		s.wants(text, s.open(s.url("r")), kind, text)
	}
	for _, text := range []string{"", "Welcome to acme!\n", "<html>Log in</html>", "HTTP/1.1 200 OK\r\n\r\n", "0008NAK\n0000"} { // and ends well
		s.ssh.Hook(func(_ string, c gitserver.Channel) bool { fmt.Fprint(c, text); return true })
		s.wants(fmt.Sprintf("an answer that is not git's, %q", text), s.open(s.url("r")), providers.ErrUnavailable)
	}
	s.ssh.Hook(nil)
	s.ssh.Away()
	s.wants("a server that is away", s.open(s.url("r")), providers.ErrUnavailable, "refused")
	assert.OK(t, s.ssh.Back())
	s.wants("a server that is back", s.open(s.url("r")), nil)
}

// A server that keeps silent, and a connection that breaks off, end what waits for
// them, wherever in the dialogue that is.
func TestSSHSilence(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	work := s.git.Create(t, "r").Clone(filepath.Join(t.TempDir(), "work"))
	work.Write(map[string]string{"f": "content\n"})
	work.Commit("main", "begin")
	short := func(o *git.Options) { o.SSH.Patience = 200 * time.Millisecond }

	mute := assert.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	defer mute.Close()
	s.wants("no handshake", s.open("ssh://git@"+mute.Addr().String()+"/r.git", short), providers.ErrUnavailable, "stopped answering")

	s.ssh.Hook(func(_ string, c gitserver.Channel) bool { io.Copy(io.Discard, c); return true })
	s.wants("no branches", s.open(s.url("r"), short), providers.ErrUnavailable, "stopped answering")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	o := git.Options{URL: s.url("r"), Dir: t.TempDir()}
	s.over(&o)
	assert.Is(t, assert.ErrOf(git.Open(ctx, o)), context.DeadlineExceeded, "with a deadline")

	s.ssh.Hook(s.cutting(300, false))
	s.wants("half of what it has", s.open(s.url("r"), short), providers.ErrUnavailable, "stopped answering")
	s.ssh.Hook(s.cutting(300, true))
	s.wants("an end in the middle", s.open(s.url("r")), providers.ErrUnavailable)
	s.ssh.Hook(nil)
	s.wants("all of it", s.open(s.url("r")), nil)
}

// cutting answers with so much of what the server says, and then ends or not.
func (s *sshStage) cutting(n int64, end bool) func(string, gitserver.Channel) bool {
	return func(command string, c gitserver.Channel) bool {
		s.ssh.Run(command, nil, c, &firstBytes{c, n, end})
		return true
	}
}

// firstBytes takes all and hands on the beginning.
type firstBytes struct {
	c    io.WriteCloser
	left int64
	end  bool
}

func (f *firstBytes) Write(p []byte) (int, error) {
	n := min(int64(len(p)), f.left)
	f.left -= n
	_, err := f.c.Write(p[:n])
	if f.left == 0 && f.end {
		f.c.Close()
	}
	return len(p), err
}

// A push that the server refuses is told apart from one that was lost, over SSH too.
func TestSSHPushRefused(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	repo := s.git.Create(t, "r")
	hook := filepath.Join(repo.Dir, "hooks", "pre-receive")
	assert.OK(t, os.WriteFile(hook, []byte("#!/bin/sh\ncat >/dev/null\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"), 0o755))
	p := clone(t, s.url("r"), s.over)
	defer p.Close()
	write(t, p, "a", "1")
	_, err := p.Push(t.Context(), providers.PushOptions{})
	s.wants("a protected branch", err, providers.ErrPermission, providers.RefusedBranch, "pre-receive hook declined", "GH006")
	assert.OK(t, os.Remove(hook))
	pushed := assert.Of(p.Push(t.Context(), providers.PushOptions{})).OK(t)
	assert.Must(t, pushed.Pushed, "without the hook", pushed)
	assert.Equal(t, repo.Git("show", "main:a"), "1", "the server")
	repo.Git("fsck", "--strict")
}

// OpenSSH's own server, which a team's is more often than not.
func TestOpenSSH(t *testing.T) {
	t.Parallel()
	s := newSSHStage(t)
	repo := s.git.Create(t, "r")
	addr, root := gitserver.StartOpenSSH(t, s.host, s.client)
	s.wants("an unknown key", s.open(root+repo.Dir), providers.ErrPermission, "is in none of")
	s.knows(s.host.Known(addr))
	p := clone(t, root+repo.Dir, s.over)
	defer p.Close()
	write(t, p, "a", "1")
	pushed, err := p.Push(t.Context(), providers.PushOptions{})
	assert.Must(t, err == nil && pushed.Pushed, "push", pushed, err)
	assert.Equal(t, repo.Git("show", "main:a"), "1", "the server")
	work := repo.Clone(filepath.Join(t.TempDir(), "work"))
	work.Write(map[string]string{"b": "2"})
	work.Commit("main", "theirs")
	assert.Of(p.Fetch(t.Context())).Equal(t, providers.Revision(strings.TrimSpace(repo.Git("rev-parse", "main"))), "fetch")
	s.wants("no such repository", s.open(root+"/none.git"), providers.ErrNotExist, "does not appear to be a git repository")
	s.fields["ssh_private_key"] = gitserver.MakeKey(t).PEM
	s.wants("another key", s.open(root+repo.Dir), providers.ErrUnauthenticated, "does not take the key")
	s.knows(gitserver.MakeKey(t).Known(addr))
	s.wants("another host", s.open(root+repo.Dir), providers.ErrPermission, "somebody may be in between")
	repo.Git("fsck", "--strict")
}
