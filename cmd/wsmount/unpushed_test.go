package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/integration/assert"
)

const pushEach = "mode: pull-push, commit: {on: turn-end}, push: {on: per-commit}"

// cut takes the remote away, so that nothing is answered.
func (r *remote) cut(t *testing.T) {
	t.Helper()
	assert.OK(t, r.Cut(t.Context(), true))
}

func (r *remote) connect(t *testing.T) {
	t.Helper()
	assert.OK(t, r.Connect(t.Context()))
}

// pushed reports whether others see a file.
func (r *remote) pushed(t *testing.T, name string) bool {
	t.Helper()
	return strings.Contains(r.dump(t), `"`+name+`"`)
}

// killed ends the daemon of the mount as a kill would, and returns when all of it has ended.
func (w *world) killed() (pid int) {
	w.t.Helper()
	pid = w.status().PID
	assert.OK(w.t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(w.t, "the daemon's end", func() bool { return !alive(pid) })
	return pid
}

// impatient runs a program that gives up what takes it half a second, until it gave up
// the push to a remote that does not answer, and nothing before that. It returns what
// those attempts have done that were answered.
func (w *world) impatient(args ...string) (sum control.EventResult) {
	w.t.Helper()
	eventually(w.t, "the push to be given up", func() bool {
		o := w.run(append(args, "--timeout", "500ms", "--json")...)
		assert.Must(w.t, o.code != exit.Done, "wsmount", args, "without a remote:", o.out)
		var got control.EventResult
		if err := json.Unmarshal([]byte(o.out), &got); err != nil { // it gave up before there was an answer
			return false
		}
		sum.Committed, sum.Pushed, sum.Failed = sum.Committed+got.Committed, sum.Pushed+got.Pushed, got.Failed
		return o.code == exit.Unreachable && len(got.Failed) == 1 && strings.Contains(got.Failed[0], "push: the remote has not answered")
	})
	return sum
}

// A push that policy ties to an event is waited for; that it fails is told at once
// and for as long as it does, and it is made again by itself.
func TestFailedPushIsTold(t *testing.T) {
	w, r := mountRepository(t, pushEach)
	w.write("mnt/a", "1")
	got := w.event(exit.Done, "event", "mnt", "turn-end")
	assert.True(t, got.Committed == 1 && got.Pushed == 1 && r.pushed(t, "a"), "turn-end with a remote: got", got)
	w.write("mnt/c", "3")
	got = w.event(exit.Done, "commit", "mnt")
	assert.True(t, got.Committed == 1 && got.Pushed == 1 && r.pushed(t, "c"), "commit with a remote: got", got)
	r.cut(t)
	w.write("mnt/b", "2")
	got = w.impatient("event", "mnt", "turn-end")
	assert.True(t, got.Pushed == 0, "turn-end without a remote: got", got)
	c := w.status().Parts[0].Copy // whichever attempt has committed
	if c.PushFails == nil || c.PushFails.Since.IsZero() || !strings.Contains(c.PushFails.Error, "has not answered") || c.UnpushedCommits != 1 {
		t.Errorf("status: got %+v, %+v", c, c.PushFails)
	}
	out := w.shown("mnt")
	assert.True(t, strings.Contains(out, "push        fails for ") && strings.Contains(out, "unpushed    1 commit, "), "status: got", out)
	assert.Contains(t, w.read("mnt/.wsmount/errors.log"), ` push "/"`)
	r.connect(t)
	// By itself it may be made before.
	got = w.event(exit.Done, "event", "mnt", "turn-end")
	assert.True(t, got.Committed == 0 && r.pushed(t, "b"), "turn-end with the remote again: got", got)
	c = w.status().Parts[0].Copy
	assert.True(t, c.PushFails == nil && !c.Unpushed, "status: got", c, c.PushFails)
}

// A push that was owed when the daemon was killed is told of without one, and made
// by the next mount.
func TestOwedPushOutlivesAKill(t *testing.T) {
	w, r := mountRepository(t, strings.Replace(pushEach, "per-commit", "turn-end", 1))
	r.cut(t)
	w.write("mnt/a", "1")
	w.impatient("event", "mnt", "turn-end")
	w.killed()
	for _, out := range []string{w.run("status", "mnt").out, w.ok("recover")} {
		flat := strings.Join(strings.Fields(out), " ")
		assert.True(t, strings.Contains(flat, "unpushed 1 commit, ") && strings.Contains(flat, "has not answered"), "without a daemon: got", out)
	}
	o := w.run("umount", "mnt")
	assert.True(t, o.code == exit.Unsafe && strings.Contains(o.out, "1 commit stays in the working copy, not pushed"), "umount: got", o)
	got := w.impatient("recover", "upload", ops)
	assert.True(t, got.Committed+got.Pushed == 0, "recover upload", got)
	r.connect(t)
	w.mount(ops, "mnt")
	eventually(t, "the push", func() bool { return r.pushed(t, "a") && !w.status().Parts[0].Copy.Unpushed })
	w.ok("umount", "mnt")
	assert.Contains(t, w.ok("recover"), "nothing is unsaved", "recover")
}

// Commits that nobody has pushed are not forgotten when a mount ends by force.
func TestForceTellsOfUnpushedCommits(t *testing.T) {
	w, r := mountRepository(t, "mode: pull-push, commit: {on: turn-end}, push: {on: manual}")
	for _, name := range []string{"a", "b"} {
		w.write("mnt/"+name, name)
		w.event(exit.Done, "event", "mnt", "turn-end")
	}
	w.refused(exit.Unsafe, "not pushed: 2 commits, the oldest ", "umount", "mnt", "--force")
	var list struct{ Copies []leftover.Copy }
	w.asJSON(&list, "recover")
	assert.True(t, len(list.Copies) == 1 && list.Copies[0].Unpushed != nil && list.Copies[0].Unpushed.Commits == 2 && !list.Copies[0].Unpushed.Since.IsZero(), "recover: got", list)
	o := w.run("recover", "export", ops, "out") // this provider keeps nothing locally
	assert.True(t, o.code == exit.Failed && strings.Contains(o.out, "skipped (commits): they are at the store alone"), "export", o)
	got := w.event(exit.Done, "recover", "upload", ops)
	assert.True(t, got.Pushed == 1 && r.pushed(t, "b"), "recover upload", got)
	assert.Contains(t, w.ok("recover"), "nothing is unsaved", "recover")
}

// Of a mount whose daemon is gone, what is unsaved now is told, not what the daemon
// knew.
func TestDeadMountTellsWhatIsUnsaved(t *testing.T) {
	w, _ := mountRepository(t, pushEach)
	w.write("mnt/a", "four")
	w.killed()
	s := w.status()
	u := s.Parts[0].Unsaved
	assert.True(t, u.Files == 1 && u.Names == 1 && u.Bytes == 4 && s.UnsavedBytes == 4, "status", u)
	o := w.run("umount", "mnt")
	assert.True(t, o.code == exit.Unsafe && strings.Contains(o.out, "1 change stays in the working copy, unsent: "), "umount: got", o)
}
