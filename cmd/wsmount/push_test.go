package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// theirs changes a file as another clone would.
func (r *remote) theirs(t *testing.T, name, content string) {
	t.Helper()
	assert.OK(t, r.Tamper(t.Context(), providers.MustLocator(name), []byte(content)))
}

// That others have pushed a change of the same file shows when ours is pushed. Who
// waits for that is told at once, and each time that something is sent while the
// conflict is held; what is in no conflict goes.
func TestConflictFoundByAPush(t *testing.T) {
	for _, policy := range []string{"abort", "manual"} {
		t.Run(policy, func(t *testing.T) {
			w, r := mountRepository(t, pushEach+", conflict: {policy: "+policy+"}")
			w.write("mnt/f", "base")
			w.event(exit.Done, "event", "mnt", "turn-end")
			w.write("mnt/f", "ours")
			w.write("mnt/g", "2")
			r.theirs(t, "f", "theirs")
			r.theirs(t, "h", "theirs")
			paths := []string{"@acme/ops/f"}
			got := w.event(exit.Conflict, "event", "mnt", "turn-end")
			if got.Pulled != 1 || got.Committed != 1 || got.Pushed != 1 || got.Conflicts != 1 || got.HeldBack != 1 || !slices.Equal(got.ConflictPaths, paths) {
				t.Errorf("the event that finds it: got %+v", got)
			}
			assert.True(t, r.pushed(t, "g"), "what is in no conflict was not pushed")
			for _, verb := range []string{"push", "commit"} {
				got := w.event(exit.Conflict, verb, "mnt")
				if got.Conflicts != 1 || got.HeldBack != 1 || got.Committed+got.Pushed > 0 || !slices.Equal(got.ConflictPaths, paths) {
					t.Errorf("%s while it is held: got %+v", verb, got)
				}
			}
			w.ok("conflicts", "resolve", "mnt", "f", "--ours")
			got = w.event(exit.Done, "event", "mnt", "turn-end")
			assert.True(t, got.Pushed == 1 && got.Conflicts+got.HeldBack <= 0, "once it is resolved: got", got)
		})
	}
}

// Where nothing but the conflict was to go, nothing counts as committed: the commit
// was taken back.
func TestOnlyAConflictIsPushed(t *testing.T) {
	w, r := mountRepository(t, byHand+", conflict: {policy: manual}")
	w.write("mnt/f", "base")
	w.event(exit.Done, "commit", "mnt")
	w.event(exit.Done, "push", "mnt")
	w.write("mnt/f", "ours")
	made := w.event(exit.Done, "commit", "mnt").Revision
	r.theirs(t, "f", "theirs")
	got := w.event(exit.Conflict, "push", "mnt")
	assert.True(t, got.Committed+got.Pushed <= 0 && got.Conflicts == 1 && got.HeldBack == 1 && got.Revision != "" && got.Revision != made, "push: got", got)
	w.ok("conflicts", "resolve", "mnt", "f", "--theirs")
}

// The last push of a mount may find it, too: the unmount says so.
func TestConflictFoundByTheLastPush(t *testing.T) {
	w, r := mountRepository(t, pushEach+", conflict: {policy: manual}")
	w.write("mnt/f", "base")
	w.event(exit.Done, "event", "mnt", "turn-end")
	w.write("mnt/f", "ours")
	r.theirs(t, "f", "theirs")
	o := w.run("umount", "mnt")
	assert.True(t, o.code == exit.Unsafe && strings.Count(o.errOut, "modified locally and on the remote") == 1, "umount: got", o)
}

// A mount that another mount namespace keeps alive is not said to have sent all while a
// commit is not pushed.
func TestUnpushedInAnotherNamespace(t *testing.T) {
	w, _ := mountRepository(t, byHand)
	w.write("mnt/f", "committed")
	w.event(exit.Done, "commit", "mnt")
	pid, end := w.otherNamespace()
	o := w.run("umount", "--timeout", "100ms", "mnt")
	assert.True(t, o.code == exit.Unsafe && strings.Contains(o.errOut, "not all is sent") && strings.Contains(o.errOut, fmt.Sprint("pid ", pid)), "umount: got", o)
	end()
}

// What another writes between the open of a file and the first line appended to
// it is a conflict, and no error of write(2).
func TestAppendToWhatOthersWrite(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: canonical", "")
	r.theirs(t, "f", "1")
	w.mount(addr, "mnt")
	f := assert.Of(os.OpenFile(w.path("mnt/f"), os.O_WRONLY|os.O_APPEND, 0)).OK(t)
	r.theirs(t, "f", "22")
	for range 2 {
		assert.Is(t, assert.ErrOf(f.WriteString("a")), nil)
	}
	assert.Is(t, f.Close(), nil)
	eventually(t, "both versions to be there", func() bool {
		all := r.dump(t)
		return strings.Contains(all, `"f" file 2 `) && strings.Contains(all, `"f.conflict-`) && strings.Contains(all, " file 3 ")
	})
}
