package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/memory"
)

// remote is a store that the test holds, so that it outlives the mounts.
type remote struct {
	*memoryserver.Control
	socket string
}

// serve serves a store of files, or with repository a remote with branches, of
// which ctl shows the branch main.
func serve(t *testing.T, repository bool) *remote {
	t.Helper()
	dir, err := os.MkdirTemp("", "ws") // short: a socket's name has 107 bytes
	assert.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &remote{socket: filepath.Join(dir, "s")}
	l := assert.Of(net.Listen("unix", r.socket)).OK(t)
	os.Chmod(r.socket, 0o600)
	var s *memoryserver.Server
	if repository {
		s = memoryserver.ServeRemote(l, memoryrepo.NewRemote(nil), memory.Options{})
		r.Control, err = memoryserver.DialCloneControl(t.Context(), "unix", r.socket, "a", "main")
	} else {
		s = memoryserver.Serve(l, memory.New(memory.Options{}))
		r.Control, err = memoryserver.DialControl(t.Context(), "unix", r.socket)
	}
	t.Cleanup(func() { s.Close() })
	assert.OK(t, err)
	return r
}

const ops = "@acme/ops"

// mountFiles mounts @acme/ops, which lies in a store of files.
func mountFiles(t *testing.T, sync string, flags ...string) (*world, *remote) {
	t.Helper()
	return mountRemote(t, false, sync, flags)
}

// mountRepository mounts @acme/ops, which lies in a remote with branches.
func mountRepository(t *testing.T, sync string, flags ...string) (*world, *remote) {
	t.Helper()
	return mountRemote(t, true, sync, flags)
}

func mountRemote(t *testing.T, repository bool, sync string, flags []string) (*world, *remote) {
	t.Helper()
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, repository)
	w.mount(append([]string{w.remoteWorkspace("ops", r, sync, ""), "mnt"}, flags...)...)
	return w, r
}

// remoteWorkspace registers @acme/<name>, which lies in the store. sync is the
// inside of its sync block, more are further lines.
func (w *world) remoteWorkspace(name string, r *remote, sync, more string) string {
	w.t.Helper()
	w.config("")
	config := fmt.Sprintf("socket: %q", r.socket)
	if strings.Contains(sync, "push:") {
		config += ", clone: a, branch: main"
	}
	w.write("remote/"+name+"/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/"+name+"\"\nversion: \"1.0.0\"\nname: "+name+
		"\nowner: {type: user, id: acme-1, slug: acme}\n"+more+
		"storage: {inline: {provider: memory, config: {"+config+"}, exclude: [\"*.local\"], sync: {"+sync+"}}}\n---\n")
	w.ok("registry", "add", w.path("remote/"+name))
	return "@acme/" + name
}

// config writes the host configuration, with further lines.
func (w *world) config(more string) {
	w.t.Helper()
	w.write("home/.config/wsmount/config.yaml", "allow_paths: [ "+os.TempDir()+" ]\n"+more)
	os.Chmod(w.path("home/.config/wsmount/config.yaml"), 0o600)
}

func (r *remote) dump(t *testing.T) string {
	t.Helper()
	return strings.Join(assert.Of(r.Dump(t.Context())).OK(t), "\n")
}

func (w *world) event(code exit.Code, args ...string) (res control.EventResult) {
	w.t.Helper()
	o := w.run(append(args, "--json")...)
	err := json.Unmarshal([]byte(o.out), &res)
	assert.Must(w.t, err == nil && o.code == code && res.Exit == int(code), "wsmount", args, "exit", o.code, "want", code, err, o.out, o.errOut)
	return res
}

// A follower runs `wsmount event --follow`.
type follower struct {
	*exec.Cmd
	w      *world
	errOut bytes.Buffer
	events chan lifecycle.Event
}

func (w *world) follow() *follower {
	w.t.Helper()
	f := &follower{Cmd: w.command("event", "mnt", "--follow"), w: w, events: make(chan lifecycle.Event, 1000)}
	f.Stderr = &f.errOut
	out := assert.Of(f.StdoutPipe()).OK(w.t)
	assert.OK(w.t, f.Start())
	w.t.Cleanup(func() { f.Process.Kill(); f.Cmd.Wait() })
	go func() {
		defer close(f.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e lifecycle.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				f.events <- e
			}
		}
	}()
	return f
}

// await waits for an event. Until it comes, poke is called: nobody may listen yet.
func (f *follower) await(what string, poke func(), is func(lifecycle.Event) bool) {
	f.w.t.Helper()
	end, again := time.After(hangs), time.Tick(50*time.Millisecond)
	for {
		select {
		case e := <-f.events:
			if is(e) {
				return
			}
		case <-again:
			poke()
		case <-end:
			f.w.t.Fatalf("no event: %s", what)
		}
	}
}

// listens waits until the follower gets what happens.
func (f *follower) listens() {
	f.w.t.Helper()
	f.await("any", func() { f.w.ok("event", "mnt", "tool-call") }, func(e lifecycle.Event) bool { return e.Name != "" })
}

// wait waits for the end of the program, whose output has been read by then.
func (f *follower) wait() error {
	for range f.events {
	}
	return f.Cmd.Wait()
}

const (
	perTurn = "mode: pull-push"
	byHand  = "mode: pull-push, pull: {on: manual}, commit: {on: manual}, push: {on: manual}"
)

// Changes stay here until the turn ends; what others change comes at the next
// opening, never into a turn.
func TestTurnsCommit(t *testing.T) {
	w, r := mountFiles(t, perTurn)
	w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId=t1", "--var", "conversationId=c1")
	w.write("mnt/docs/plan", "one")
	w.write("mnt/scratch.local", "never sent")
	assert.Equal(t, r.dump(t), "", "before the turn ends the store has")
	p := w.status().Parts[0]
	assert.True(t, p.Unsaved.Files == 1 && p.Unsaved.Bytes == 3 && !p.Unsaved.Oldest.IsZero() && p.Copy != nil, "status: got", p.Unsaved)
	got := w.event(exit.Done, "event", "mnt", "per-turn")
	assert.True(t, got.Event == "turn-end" && got.Committed == 2 && got.Parts == 1, "turn-end: got", got)
	if got := r.dump(t); !strings.Contains(got, `"docs/plan"`) || strings.Contains(got, "scratch") {
		t.Errorf("after the turn the store has:\n%s", got)
	}
	w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId=t2")
	r.theirs(t, "docs/theirs", "x")
	w.event(exit.Done, "event", "mnt", "workspace-open")
	assert.Is(t, assert.ErrOf(os.Stat(w.path("mnt/docs/theirs"))), fs.ErrNotExist, "within the turn")
	assert.Equal(t, w.event(exit.Done, "event", "mnt", "turn-end").Pulled, 1, "the pull that was put off")
	assert.Equal(t, w.read("mnt/docs/theirs"), "x", "after the turn")
	w.write("mnt/docs/late", "at unmount")
	w.ok("umount", "mnt")
	assert.Contains(t, r.dump(t), `"docs/late"`, "after the unmount the store has")
}

// What the storage does is told to who follows the events, and starts nothing.
func TestStorageEvents(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, true)
	w.mount(w.remoteWorkspace("ops", r, "mode: pull-push, commit: {on: each-write, batch_window_ms: 0, message_template: \"{{operator}}: {{summary}}\"}, push: {on: per-commit}",
		"identity: {name: Bob, email: bob@acme.test}\n"), "mnt")
	f := w.follow()
	f.listens()
	w.write("mnt/a", "1")
	for _, name := range []string{"storage-commit-completed", "storage-push-completed"} {
		f.await(name, func() {}, func(e lifecycle.Event) bool {
			return e.Name == name && e.Payload["storageId"] == ops && e.Payload["ref"] != ""
		})
	}
	commits, err := r.Log(t.Context())
	assert.True(t, err == nil && len(commits) == 1 && commits[0].Message == "Bob: update a" && commits[0].Author.Email == "bob@acme.test", "commits: got", commits, err)
}

// What a store without revisions is sent as it comes counts for a limit on commits.
func TestLimitOfWhatIsSentByItself(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	w.mount(w.remoteWorkspace("ops", r, "mode: pull-push, commit: {on: each-write, batch_window_ms: 0}",
		"policy: {schema: policy/v1, default: allow, limits: [{kind: rate-commits, value: 1, per: day, applies_to: [\"storage:commit\"]}]}\n"), "mnt")
	w.write("mnt/a", "1")
	eventually(t, "it is sent", func() bool { return strings.Contains(r.dump(t), "a") })
	w.refused(exit.Denied, "limit-exceeded", "commit", "mnt")
}

// commit, pull and push by hand, whatever the policy's time for them.
func TestSyncByHand(t *testing.T) {
	w, r := mountRepository(t, byHand)
	w.write("mnt/a", "1")
	assert.Equal(t, w.event(exit.Done, "event", "mnt", "turn-end").Committed, 0, "an event commits what is manual")
	got := w.event(exit.Done, "commit", "mnt", "-m", "by hand")
	assert.True(t, got.Committed == 1 && got.Revision != "" && got.Pushed == 0, "commit: got", got)
	assert.Equal(t, w.event(exit.Done, "push", "mnt").Pushed, 1, "push")
	commits, err := r.Log(t.Context())
	assert.True(t, err == nil && len(commits) == 1 && commits[0].Message == "by hand", "commits", commits, err)
	r.theirs(t, "b", "theirs")
	w.write("mnt/c", "unsaved")
	if got := w.run("pull", "mnt"); got.code != exit.Failed || !strings.Contains(got.errOut, "put off") {
		t.Errorf("a pull with changes: got %+v", got)
	}
	// The pull that was put off follows by itself, and what is committed stays so.
	got = w.event(exit.Done, "commit", "mnt")
	assert.True(t, got.Committed != 0 && got.Pulled == 1, "commit: got", got)
	p := w.status().Parts[0]
	assert.True(t, p.Unsaved.Names == 0 && p.Copy.Unpushed, "after the commit", p.Unsaved, p.Copy)
	assert.Equal(t, w.read("mnt/b"), "theirs", "pulled")
	// manual: what is unsaved is nobody's wish to send, but somebody should know
	w.write("mnt/d", "unsaved")
	w.write("mnt/e", "unsaved")
	assert.Equal(t, w.ok("umount", "mnt"), "2 changes stay in the working copy, unsent; 1 commit stays in the working copy, not pushed: `wsmount recover` lists them\n", "umount")
	assert.Contains(t, w.ok("recover"), "2 changes, ", "recover")
}

// What an unmount leaves unsent, it says, conflicts too; where all is sent it
// says nothing.
func TestUmountTellsWhatStays(t *testing.T) {
	w, r := mountFiles(t, perTurn+", conflict: {policy: manual}")
	w.write("mnt/f", "base")
	assert.Equal(t, w.ok("umount", "mnt"), "", "all is sent, and umount")
	w.mount(ops, "mnt")
	r.theirs(t, "f", "theirs")
	w.write("mnt/f", "ours")
	w.event(exit.Conflict, "event", "mnt", "turn-end")
	w.killed()
	o := w.run("umount", "mnt", "--json")
	var res control.UnmountResult
	if err := json.Unmarshal([]byte(o.out), &res); err != nil || o.code != exit.Unsafe || !res.Unmounted || !strings.Contains(o.out, `"unsent": 1`) || !strings.Contains(o.out, `"conflicts": 1`) {
		t.Errorf("umount --json: got %+v, %v", o, err)
	}
}

func TestHistoryByHand(t *testing.T) {
	w, _ := mountFiles(t, perTurn)
	w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId=t1")
	w.write("mnt/d/f", "one\n")
	w.event(exit.Done, "event", "mnt", "turn-end")
	w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId=t2")
	list := func(args ...string) []cache.Version {
		t.Helper()
		var log control.LogResult
		w.asJSON(&log, append([]string{"log"}, args...)...)
		return log.Versions
	}
	eventually(t, "the content to be kept", func() bool { v := list("mnt", "d", "--turn", "t1"); return len(v) > 0 && v[0].Kept })
	w.write("mnt/d/f", "two\n")
	got := list("mnt", "d", "--turn", "t1")
	assert.Must(t, len(got) != 0 && got[0].Path == "d/f" && got[0].Size == 4, "log of a turn: got", got)
	first := list("mnt", "d", "--turn", "t1")[0].ID
	assert.Contains(t, w.ok("diff", "mnt", "d/f", first), "-one\n+two\n", "diff")
	if said := w.ok("log", w.path("mnt/d/f")); strings.Count(said, "\n") < 2 || !strings.Contains(said, " created ") || !strings.Contains(said, "  d/f  (") || !strings.Contains(said, "turn t1") {
		t.Errorf("log: a line of each version: got %s", said)
	}
	assert.Contains(t, w.ok("restore", "mnt", "d/f", "--to", "turn:t1", "--dry-run"), "would restore d/f", "dry run")
	assert.Equal(t, w.read("mnt/d/f"), "two\n", "after a dry run")
	w.ok("restore", w.path("mnt/d"), "f", "--to", first)
	assert.Equal(t, w.read("mnt/d/f"), "one\n", "restored")
	w.refused(exit.Unresolvable, "no such version", "restore", "mnt", "d/f", "--to", "99999")

	// What changes between turns follows the last one, and is not of it.
	w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId=t3", "--var", "conversationId=c")
	w.event(exit.Done, "event", "mnt", "turn-end")
	w.write("mnt/between", "x") // an empty file is taken a moment after its close
	w.event(exit.Done, "event", "mnt", "conversation-end")
	w.write("mnt/after", "x")
	for _, tt := range []struct{ path, event, conversation string }{
		{"between", "turn-end", "c"}, {"after", "conversation-end", ""}} {
		got := list("mnt", tt.path, "--event", tt.event)
		assert.True(t, len(got) != 0 && got[0].Turn == "" && got[0].Conversation == tt.conversation, "log of", tt.path, "by", tt.event, "got", got)
	}
}

// The states of the past have one spelling for diff and restore, and lead
// through the whole tree.
func TestStatesByHand(t *testing.T) {
	w, _ := mountFiles(t, perTurn)
	turn := func(id string, change func()) {
		t.Helper()
		w.event(exit.Done, "event", "mnt", "turn-start", "--var", "turnId="+id, "--var", "conversationId=c"+id)
		change()
		w.event(exit.Done, "event", "mnt", "turn-end")
	}
	turn("1", func() { w.write("mnt/a", "one\n"); w.write("mnt/d/f", "one\n"); w.write("mnt/plan", "plan\n") })
	turn("2", func() {
		w.write("mnt/d/f", "two\n")
		w.write("mnt/made", "made\n")
		for from, to := range map[string]string{"a": "b", "plan": "d/plan"} {
			assert.OK(t, os.Rename(w.path("mnt/"+from), w.path("mnt/"+to)))
		}
	})
	for _, state := range []string{"turn:2", "conversation:c2", "event:turn-start"} {
		out := w.ok("diff", "mnt", ".", state, "--before")
		for _, want := range []string{"--- a@before " + state + "\n+++ /dev/null\n", "--- /dev/null\n+++ b\n", "--- d/f@", "-one\n+two\n", "+++ made\n"} {
			assert.Contains(t, out, want, "diff", state)
		}
	}
	out := w.ok("diff", "mnt", "d", "turn:1", "turn:2")
	assert.True(t, !strings.Contains(out, "made") && strings.Contains(out, "+++ d/f@turn:2\n"), "diff of a directory: got", out)
	w.refused(exit.Usage, "a directory needs a state", "diff", "mnt", "d")

	if got := w.run("restore", "mnt", "b", "--to", "turn:2", "--before"); got.code != exit.Failed ||
		!strings.Contains(got.out, "skipped b: it was a then, which comes back with: wsmount restore "+w.path("mnt")+" a --to turn:2 --before") {
		t.Errorf("what had another name: got %+v", got)
	}
	var log control.LogResult
	w.asJSON(&log, "log", "mnt", "made")
	id := log.Versions[0].ID
	got := w.run("restore", "mnt", "d/f", "--to", id)
	if got.code != exit.Usage || !strings.Contains(got.errOut, "is of made, not of d/f") || !strings.Contains(got.errOut, "wsmount restore "+w.path("mnt")+" made --to "+id) {
		t.Errorf("a version of another file: got %+v", got)
	}

	w.ok("restore", "mnt", ".", "--to", "turn:2", "--before")
	assert.Equal(t, w.files("mnt"), "a: one\nd/f: one\nplan: plan\n", "restored")
	assert.Equal(t, w.ok("diff", "mnt", ".", "turn:1"), "", "after the restore the diff")

	// A shell completes what is there, and what was.
	for line, want := range map[string]string{"umount ": w.path("mnt") + "\t\n\n", "restore " + w.path("mnt") + " ": "a\t\nb\t\nd/\t\nmade\t\nplan\t\n",
		"log " + w.path("mnt") + " d/p": "d/plan\t\n", "diff " + w.path("mnt/d") + " f": "f\t\n"} {
		assert.Equal(t, w.ok("completion", "words", "--", "wsmount "+line), want, line)
	}
}

// files are those below a directory with their content, a line each.
func (w *world) files(dir string) (lines string) {
	w.t.Helper()
	tree := os.DirFS(w.path(dir))
	err := fs.WalkDir(tree, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		lines += path + ": " + string(data)
		return err
	})
	assert.OK(w.t, err)
	return lines
}

// Bad input is refused before anything is done, in two lines.
func TestBadInputToCopies(t *testing.T) {
	w := newWorld(t)
	w.mkdir("plain")
	for _, tt := range []struct {
		code exit.Code
		says string
		args string
	}{
		{exit.Usage, "is needed", "pull"},
		{exit.Usage, "has no flag", "push mnt --confirm"},
		{exit.Unresolvable, "no workspace is mounted", "commit mnt -m x"},
		{exit.Usage, "more than nothing", "commit mnt --timeout 0s"},
		{exit.Usage, "is not a time", "log mnt --since yesterday-ish"},
		{exit.Usage, "cannot be negative", "log mnt -n=-1"},
		{exit.Usage, "needed", "diff mnt"},
		{exit.Usage, "FROM \"whenever\" is not a state", "diff mnt f whenever"},
		{exit.Usage, "TO \"event:\" is not a state", "diff mnt f 12 event:"},
		{exit.Usage, "is about FROM", "diff mnt f --before"},
		{exit.Usage, "is not a state", "restore mnt f"},
		{exit.Usage, "is not a state", "restore mnt f --to whenever"},
		{exit.Usage, "is not a state", "restore mnt f --to turn:"},
		{exit.Usage, "has no command \"lst\"", "conflicts lst mnt"},
		{exit.Usage, "is none", "conflicts show mnt f --side mine"},
		{exit.Usage, "0 given", "conflicts resolve mnt f"},
		{exit.Usage, "2 given", "conflicts resolve mnt f --ours --theirs"},
		{exit.Usage, "no such file", "conflicts resolve mnt f --file nowhere"},
		{exit.Usage, "is not a file", "conflicts resolve mnt f --file plain"},
		{exit.Usage, "no verb \"uplod\"", "recover uplod @a/b"},
		{exit.Usage, "argument given", "recover export @a/b"},
		{exit.Unresolvable, "there is no working copy of @a/b", "recover export @a/b out"},
		{exit.Unresolvable, "no directory of a working copy", "recover list ./plain"},
		{exit.Usage, "is for --scan", "recover --force"},
		{exit.Usage, "is not a size", "mount @a/b mnt --cache-size many"},
		{exit.Usage, "is not a size", "mount @a/b mnt --keep-free much"},
		{exit.Usage, "a second or more", "mount @a/b mnt --patience 5ms"},
		{exit.Usage, "is not an octal mask", "mount @a/b mnt --umask 999"},
		{exit.Usage, "is not a name", "mount @a/b mnt --working-copy ../x"},
		{exit.Usage, "no number of a user", "mount @a/b mnt --uid 4294967295"},
	} {
		w.refused(tt.code, tt.says, strings.Fields(tt.args)...)
	}
}

// Closes that return before the store has the bytes are the host's to grant.
func TestWriteBackIsGranted(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: canonical", "")
	w.refused(exit.Denied, "does not grant write-back", "mount", addr, "mnt", "--write-back")
	w.config("allow_write_back: [ \"@acme/*\" ]\n")
	w.mount(addr, "mnt", "--write-back")
	w.listRoot()
	r.cut(t)
	w.write("mnt/a", "1") // returns although nobody answers
	p := w.status().Parts[0]
	assert.True(t, p.Copy.WriteBack && p.Unsaved.Files == 1, "status", p.Copy, p.Unsaved)
	r.connect(t)
	eventually(t, "the change to arrive", func() bool { return r.pushed(t, "a") })
}

// What was stored into a mapping is in the store when msync returns, where that has all
// that programs were told is safe.
func TestMsyncReachesTheStore(t *testing.T) {
	w, r := mountFiles(t, "mode: canonical")
	w.write("mnt/a", "first")
	f := assert.Of(os.OpenFile(w.path("mnt/a"), os.O_RDWR, 0)).OK(t)
	m := assert.Of(syscall.Mmap(int(f.Fd()), 0, len("first"), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)).OK(t)
	copy(m, "fifth")
	assert.Is(t, unix.Msync(m, unix.MS_SYNC), nil, "msync") // the file is still open
	assert.Contains(t, r.dump(t), fmt.Sprintf("%x", sha256.Sum256(m))[:16], "the store")
	assert.OK(t, syscall.Munmap(m))
	assert.OK(t, f.Close())
}

// Where the working copy is enough, this machine's disk has what was stored into a mapping
// when msync returns, and keeps it through a loss of power. Nothing else brings it there: the
// store is away, or is sent nothing before somebody asks.
func TestMsyncReachesTheDisk(t *testing.T) {
	tier.RequireFUSE(t)
	for what, mount := range map[string]func() (*world, *remote){
		"write-back": func() (*world, *remote) {
			w, r := newWorld(t), serve(t, false)
			addr := w.remoteWorkspace("ops", r, "mode: canonical", "")
			w.config("allow_write_back: [ \"@acme/*\" ]\n")
			w.mount(addr, "mnt", "--write-back")
			w.listRoot()
			r.cut(t)
			return w, r
		},
		"commits": func() (*world, *remote) { return mountRepository(t, byHand) },
	} {
		t.Run(what, func(t *testing.T) {
			w, r := mount()
			const size = 64 << 10
			f := assert.Of(os.Create(w.path("mnt/a"))).OK(t)
			defer f.Close()
			assert.OK(t, f.Truncate(size))
			var st syscall.Stat_t
			assert.OK(t, syscall.Fstat(int(f.Fd()), &st))
			content := func() string {
				found := assert.Of(filepath.Glob(filepath.Join(w.path("state"), "*/*/*/copy/data/*", fmt.Sprint(st.Ino&(1<<48-1))))).OK(t)
				assert.Equal(t, len(found), 1, "content files")
				return found[0]
			}
			tier.Dirty(t, func() string { // by plain writes, which nothing takes to the disk
				assert.OK(t, assert.ErrOf(f.WriteAt(bytes.Repeat([]byte("a"), size), 0)))
				return content()
			})
			m := assert.Of(syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)).OK(t)
			defer func() { assert.OK(t, syscall.Munmap(m)) }()
			copy(m[size/2:], "stored")
			assert.Is(t, unix.Msync(m, unix.MS_SYNC), nil, "msync") // the file is still open
			assert.Equal(t, string(assert.Of(os.ReadFile(content())).OK(t)[size/2:][:6]), "stored", "the content file")
			assert.Equal(t, tier.DirtyPages(t, content()), 0, "pages that a loss of power would take")
			r.connect(t)
		})
	}
}

// listRoot asks for what the root holds, which is asked for once.
func (w *world) listRoot() {
	w.t.Helper()
	assert.OK(w.t, assert.ErrOf(os.ReadDir(w.path("mnt"))))
}

// A store that does not answer keeps an unmount from being safe; what was not
// sent is found, exported, and sent later.
func TestUnsentIsNotLost(t *testing.T) {
	w, r := mountFiles(t, perTurn, "--patience", hangs.String()) // so that the daemon does not end by itself
	w.write("mnt/d/f", "precious")
	w.refused(exit.Failed, "@acme/ops is mounted already at ", "recover", "discard", ops, "--yes")
	r.cut(t)
	got := w.run("umount", "mnt", "--timeout", "500ms")
	assert.Must(t, got.code == exit.Unsafe, "umount", got)
	assert.Equal(t, w.status().State, control.Draining, "state")
	forced := w.run("umount", "mnt", "--force")
	assert.Must(t, forced.code == exit.Unsafe && strings.Contains(forced.errOut, "copied to "), "umount --force: got", forced)
	_, into, _ := strings.Cut(strings.Split(forced.errOut, "\n")[0], "copied to ")
	if got, err := os.ReadFile(filepath.Join(into, "d/f")); err != nil || string(got) != "precious" {
		t.Errorf("the export in %q: %q, %v", into, got, err)
	}
	out := w.shown("--all")
	assert.True(t, strings.Contains(out, "d/f") && strings.Contains(out, ops), "status --all: got", out)
	assert.Contains(t, w.ok("recover"), "  d/f", "recover")
	w.refused(exit.Unsafe, "another working copy", "mount", ops, "mnt", "--working-copy", "second")
	w.ok("recover", "export", ops, "saved")
	assert.Equal(t, w.read("saved/d/f"), "precious", "recover export")
	again := w.run("recover", "export", ops, "saved")
	assert.True(t, again.code == exit.Failed && strings.Contains(again.out, "skipped d/f: "), "an export to where it is already:", again)
	w.refused(exit.Unsafe, "@acme/ops holds what `wsmount umount --force` copied: "+into, "recover", "discard", ops, "--yes")
	const inTime = "not all was sent in time: "
	var o outcome
	for limit := time.Second; limit < hangs && !strings.Contains(o.errOut, inTime); limit *= 2 { // which begins before the sending does
		o = w.run("recover", "upload", ops, "--timeout", limit.String())
	}
	if o.code != exit.Unreachable || !strings.Contains(o.errOut, inTime) || !strings.Contains(o.errOut, "or the same command, tries again") {
		t.Errorf("recover upload without the store: got %+v", o)
	}
	r.connect(t)
	assert.Equal(t, w.event(exit.Done, "recover", "upload", ops).Committed, 2, "recover upload")
	assert.Contains(t, r.dump(t), `"d/f"`, "the store has")
	assert.Contains(t, w.ok("recover"), "nothing is unsaved", "recover")

	w.ok("mount", ops, "mnt", "--working-copy", "second") // which the address means, too
	w.listRoot()
	assert.OK(t, r.Cut(t.Context(), false))
	w.write("mnt/second", "x")
	w.killed()
	w.run("umount", "mnt")
	r.connect(t)
	assert.Equal(t, w.event(exit.Done, "recover", "upload", ops).Committed, 1, "recover upload of a named one")
}

// What a halt keeps from the store is not waited for where another mount namespace
// keeps the mount, and what umount says to do then is what helps.
func TestUmountOfWhatIsHaltedAndHeldElsewhere(t *testing.T) {
	w, r := mountFiles(t, perTurn)
	for i := range 30 {
		w.write(fmt.Sprint("mnt/f", i), "x")
	}
	w.event(exit.Done, "event", "mnt", "turn-end")
	for i := range 25 {
		assert.OK(t, os.Remove(w.path(fmt.Sprint("mnt/f", i))))
	}
	w.event(exit.Unsafe, "event", "mnt", "turn-end")
	for file, want := range map[string]string{"README": "STOPPED NOW", "errors.log": cache.ErrMassDelete.Error(), "unsent": "f0"} {
		assert.Contains(t, w.read("mnt/.wsmount/"+file), want, file)
	}
	assert.Contains(t, w.shown(), " halted", "status")
	old := w.status().PID
	pid, end := w.otherNamespace()
	w.refused(exit.Unsafe, fmt.Sprintf("end cat (pid %d), mount the workspace again", pid), "umount", "mnt", "--timeout", hangs.String())

	end()
	eventually(t, "the daemon to end", func() bool { return !alive(old) })
	w.mount(ops, "mnt")
	w.event(exit.Done, "commit", "--confirm", "mnt")
	assert.Equal(t, strings.Count(r.dump(t), "\"f"), 5, "files of the store", r.dump(t))
}

// A conflict waits under the policy manual, can be looked at from both sides,
// and ends as a person says.
func TestConflictsByHand(t *testing.T) {
	for keep, want := range map[string]string{"--ours": "ours", "--theirs": "theirs", "--file": "merged"} {
		t.Run(keep, func(t *testing.T) {
			w, r := mountFiles(t, perTurn+", conflict: {policy: manual}")
			w.write("mnt/f", "base")
			w.event(exit.Done, "event", "mnt", "turn-end")
			r.theirs(t, "f", "theirs")
			r.theirs(t, "new", "theirs")
			w.write("mnt/f", "ours")
			w.write("mnt/new", "ours")
			got := w.event(exit.Conflict, "event", "mnt", "turn-end")
			assert.True(t, got.Conflicts == 2 && slices.Equal(got.ConflictPaths, []string{"@acme/ops/f", "@acme/ops/new"}), "turn-end: got", got)
			assert.Contains(t, w.ok("conflicts", "list", "mnt"), "f", "list")
			assert.OK(t, os.Symlink(w.path("mnt"), w.path("link")))
			for _, side := range []string{"ours", "theirs"} {
				paths := []string{"f"}
				if keep == "--ours" { // once is enough
					paths = []string{"f", "./f", "mnt/f", "./mnt/f", "link/f", w.path("mnt/f"), w.path("link/f")}
				}
				for _, path := range paths {
					assert.Equal(t, w.ok("conflicts", "show", "mnt", path, "--side", side), side, "side", "of", path)
				}
			}
			w.refused(exit.Unresolvable, "new has no content on the side \"base\"", "conflicts", "show", "mnt", "new", "--side", "base")
			w.ok("conflicts", "resolve", "mnt", "new", "--ours")
			w.refused(exit.Usage, "does not lie in", "conflicts", "show", "mnt", w.path("f"))
			w.refused(exit.Unresolvable, "or one that leads into it", "conflicts", "show", "mnt", "g")
			args := []string{"conflicts", "resolve", "mnt", "mnt/f", keep}
			if keep == "--file" {
				w.write("merged", "merged")
				args = append(args, "merged")
			}
			w.ok(args...)
			w.event(exit.Done, "event", "mnt", "turn-end")
			assert.Equal(t, w.read("mnt/f"), want, "resolved")
		})
	}
}

// A name that is in the mount comes before the same name outside of it.
func TestPathsBelowTheFirstArgument(t *testing.T) {
	w, _ := mountFiles(t, perTurn)
	w.write("mnt/d/f", "x")
	w.event(exit.Done, "event", "mnt", "turn-end")
	paths := func(args ...string) (paths string) {
		t.Helper()
		var log control.LogResult
		w.asJSON(&log, append([]string{"log"}, args...)...)
		for _, v := range log.Versions {
			paths += v.Path + " "
		}
		return paths
	}
	for _, args := range [][]string{{"mnt", "d/f"}, {"mnt", "mnt/d/f"}, {"mnt/d", "f"}, {"mnt/d", "mnt/d/f"}} {
		assert.Equal(t, paths(args...), "d/f ", "log", args, "is of")
	}
	w.write("mnt/mnt/d/f", "x")
	w.event(exit.Done, "event", "mnt", "turn-end")
	assert.Equal(t, paths("mnt", "mnt/d/f"), "mnt/d/f ", "log mnt mnt/d/f, where both are there")
}

// What was resolved by itself is told once, and not as an error that a program
// would have got.
func TestResolvedConflictIsToldOnce(t *testing.T) {
	w, r := mountFiles(t, perTurn+", conflict: {policy: split-conflicts}")
	w.write("mnt/f", "base")
	w.event(exit.Done, "event", "mnt", "turn-end")
	r.theirs(t, "f", "theirs")
	w.write("mnt/f", "ours")
	w.run("event", "mnt", "turn-end")
	eventually(t, "the conflict", func() bool { return len(w.status().Parts[0].Recent) > 0 })
	p := w.status().Parts[0]
	if p.Errors != 1 || len(p.Recent) != 1 || p.Recent[0].Errno != "" || p.Recent[0].Path != "f" || !strings.Contains(p.Recent[0].Error, "modified locally and on the remote") {
		t.Errorf("status: %d errors, %+v", p.Errors, p.Recent)
	}
	log := w.read("mnt/.wsmount/errors.log")
	assert.Contains(t, log, `"f": "modified locally and on the remote`)
	assert.Equal(t, strings.Count(log, "\n"), 1, "lines")
}

// A mount that is taken away by another sends what is unsaved before it ends, and
// leaves no record of itself.
func TestUnmountByAnotherDrains(t *testing.T) {
	w, r := mountFiles(t, perTurn)
	w.write("mnt/a", "1")
	pid := w.status().PID
	assert.OK(t, mountpoint.Unmount(w.path("mnt"), false))
	eventually(t, "the daemon to end", func() bool { return !alive(pid) })
	assert.True(t, r.pushed(t, "a"), "the store has it")
	assert.Slice(t, assert.Of(filepath.Glob(w.path("state/*/*/*/mount.json"))).OK(t), nil, "records")
}
