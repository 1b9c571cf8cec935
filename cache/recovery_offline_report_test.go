package cache

import (
	iofs "io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What a mount says is unsent, a look into what is left of it says, too, and a part of a file
// that no close has told of.
func TestInspect(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("changed", "theirs", "renamed", "theirs", "open", "theirs", "d/e/deep", "theirs"))
	w.do("put changed ours", "rm d/e/deep", "rmdir d/e", "mv renamed d/renamed", "mkdir new", "put new/file 12345")
	w.write(w.open("open", syscall.O_RDWR), "x", 0)
	list, total := w.v.Unsent(10)
	left := assert.Of(Inspect(copyState(t, w.v), 0)).OK(w)
	assert.True(t, left.Ended == "killed" && left.Total == total+1 && left.Bytes == 4+6+5+6, left)
	for i, u := range append(list, Unsaved{Change: "changed", Kind: "file", Path: "open"}) {
		got := left.Unsaved[i]
		assert.Equal(t, got.Change+got.Kind+got.Path, u.Change+u.Kind+u.Path, i)
	}
}

// Suspect content is sent once a person has accepted it, not before.
func TestAccept(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("f", "theirs"))
	w.do("put f ours", "put g ours")
	dir := copyState(t, w.v)
	w.stop()
	w.o.StateDir, w.o.boot = dir, "another"
	w.start()
	_ = w.sendAll()
	w.backend("f: theirs")
	assert.Equal(t, w.says(w.walk("f"), "state"), "suspect", "what programs read of it")
	assert.Contains(t, w.says(w.walk("f"), "reason"), "wsmount recover")
	w.stop()
	assert.Equal(t, assert.Of(Inspect(dir, 0)).OK(w).Suspect, 2)
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
	dir := copyState(t, w.v)
	w.ok(assert.ErrOf(Accept(dir)))
	left := assert.Of(Inspect(dir, 0)).OK(w)
	assert.True(t, left.Ended == "clean" && left.Total == 1 && left.Bytes == 12, left)
	assert.Is(t, assert.ErrOf(Accept(t.TempDir())), iofs.ErrNotExist, "nothing there")
}
