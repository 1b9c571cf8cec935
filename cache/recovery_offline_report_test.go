package cache

import (
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// abandon leaves the working copy as a killed process would, and gives the
// state directory.
func (w *world) abandonState() string {
	w.Helper()
	return copyState(w.T, w.v)
}

func (w *world) inspect(dir string) (OfflineReport, string) {
	w.Helper()
	left := assert.Of(Inspect(dir, 0)).OK(w)
	var lines []string
	for _, u := range left.Unsaved {
		line := u.Change + " " + u.Kind + " " + u.Path
		if u.Suspect {
			line += " suspect"
		}
		lines = append(lines, line)
	}
	return left, strings.Join(lines, "\n")
}

func TestInspect(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("changed", "theirs", "deleted", "theirs", "renamed", "theirs", "open", "theirs", "d/deep", "theirs"))
	w.do("put changed ours", "rm deleted", "mv renamed d/renamed", "mkdir new",
		"put new/file 12345")
	o := w.open("open", syscall.O_RDWR)
	w.write(o, "x", 0)
	if left, _ := w.inspect(w.o.StateDir); !left.InUse || left.Empty() {
		t.Errorf("in use: %+v", left)
	}
	dir := w.abandonState()
	want := strings.Join([]string{
		"changed file changed",
		"deleted file deleted",
		"deleted file renamed",
		"renamed file d/renamed",
		"created dir new",
		"created file new/file",
		"changed file open",
	}, "\n")
	for range 2 { // looking changes nothing
		left, got := w.inspect(dir)
		assert.Equal(t, got, want)
		assert.True(t, left.Ended == "killed" && left.Total == 7 && left.Bytes == 4+6+5+6 && left.Suspect == 0, left)
	}
	left := assert.Of(Inspect(dir, 2)).OK(w)
	assert.True(t, len(left.Unsaved) == 2 && left.Total == 7, "limited:", len(left.Unsaved), "of", left.Total)
	w.is(assert.ErrOf(Inspect(t.TempDir(), 0)), iofs.ErrNotExist)
}

func TestInspectAfterACleanEnd(t *testing.T) {
	w := newWorld(t, onlyAsked)
	w.ok(w.put("f", "f"))
	w.sendAll()
	w.stop()
	left, _ := w.inspect(w.o.StateDir)
	assert.True(t, left.Ended == "clean" && left.Empty(), left)
}

func TestExport(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("theirs", "theirs", "half", strings.Repeat("x", 3*firstFetch)))
	w.do("mkdir d", "put d/f content", "put taken ours", "sym d/f link")
	o := w.create("open")
	w.write(o, "never closed", 0)
	w.writeLast(w.open("half", syscall.O_WRONLY), "ours", 0)
	dir, into := w.abandonState(), t.TempDir()
	w.ok(os.WriteFile(filepath.Join(into, "taken"), []byte("there before"), 0o600))
	w.ok(os.Mkdir(filepath.Join(dir, "recovered"), 0o700))
	w.ok(os.WriteFile(filepath.Join(dir, "recovered/nameless"), []byte("nameless"), 0o600))
	out, err := Export(t.Context(), dir, into, nil)
	w.ok(err)
	slices.Sort(out.Files)
	assert.Equal(t, strings.Join(out.Files, " "), "d/f half.partial link open recovered/nameless", "wrote")
	assert.True(t, len(out.Skipped) == 1 && out.Skipped[0].Path == "taken", "skipped", out.Skipped)
	for name, want := range map[string]string{"d/f": "content", "open": "never closed", "link": "content", "taken": "there before", "recovered/nameless": "nameless"} {
		got, err := os.ReadFile(filepath.Join(into, name))
		assert.True(t, string(got) == want, name, got, err)
	}
	left, _ := w.inspect(dir)
	assert.True(t, left.Ended == "killed" && left.Total == 6, "exporting changed it:", left)
}

// Suspect content is sent once a person has accepted it, not before.
func TestAccept(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("f", "theirs"))
	w.do("put f ours", "put g ours")
	dir := w.abandonState()
	w.stop()
	w.o.StateDir, w.o.boot = dir, "another"
	w.start()
	_ = w.sendAll()
	w.backend("f: theirs")
	assert.Equal(t, w.says(w.walk("f"), "state"), "suspect", "what programs read of it")
	assert.Contains(t, w.says(w.walk("f"), "reason"), "wsmount recover")
	w.stop()
	left, got := w.inspect(dir)
	assert.Equal(t, left.Suspect, 2, got)
	accepted := assert.Of(Accept(dir, "f")).OK(w)
	assert.Equal(t, strings.Join(accepted, " "), "f", "accepted", accepted)
	w.start()
	_ = w.sendAll()
	w.backend("f: ours")
	accepted = assert.Of(w.v.Accept()).OK(w)
	assert.Equal(t, strings.Join(accepted, " "), "g", "accepted", accepted)
	w.ok(w.sendAll())
	w.backend("f: ours", "g: ours")
}

// Accepting in a state directory that was not recovered yet recovers it.
func TestAcceptAfterAnUncleanEnd(t *testing.T) {
	w := newWorld(t, onlyAsked)
	o := w.create("f")
	w.write(o, "never closed", 0)
	dir := w.abandonState()
	w.ok(assert.ErrOf(Accept(dir)))
	left, got := w.inspect(dir)
	assert.True(t, left.Ended == "clean" && got == "created file f" && left.Bytes == 12, got, left)
	assert.Is(t, assert.ErrOf(Accept(t.TempDir())), iofs.ErrNotExist, "nothing there")
}

// What is below a directory that was removed is listed by its path.
func TestInspectBelowTheRemoved(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("d/e/f", "theirs"))
	w.do("rm d/e/f", "rmdir d/e", "rmdir d")
	list, _ := w.v.Unsent(10)
	assert.True(t, len(list) == 3 && list[0].Path == "d/e/f", "unsent is", list)
	_, got := w.inspect(w.abandonState())
	assert.True(t, got == "deleted file d/e/f\ndeleted file d/e\ndeleted file d", "got", got)
}
