package cache

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// tornBase is large enough to be written in one place without being all here.
var tornBase = strings.Repeat("base.", 1<<18)

const (
	tornAt   = 1 << 20
	tornOurs = "OURS"
)

// takes changes or deletes a file at the backend.
func (w *scene) takes(path, verb string) {
	w.Helper()
	if verb == "replace" {
		w.tamper(path, "theirs")
		return
	}
	w.ok(w.p.Delete(w.Context(), at(path), providers.DeleteOptions{If: providers.Unconditional()}))
}

// torn finds the conflict copy of a name, and wants what was written here in it,
// where it was written, between what was here and zeros.
func (w *scene) torn(name string) {
	w.Helper()
	copies := w.copies()
	assert.Must(w, len(copies) == 1 && strings.HasPrefix(copies[0], name+".conflict-"), "conflict copies, of", name, copies)
	want := []byte(tornBase)
	copy(want[tornAt:], tornOurs)
	o := w.open(copies[0], syscall.O_RDONLY)
	defer o.File.Release()
	d := assert.Of(o.File.Read(me, make([]byte, len(want)+1), 0)).OK(w)
	got, zeros := d.Bytes, 0
	for i, b := range got {
		if b == 0 {
			zeros++
			want[i] = 0
		}
	}
	assert.Must(w, len(got) == len(want), "bytes of", copies, len(got))
	assert.True(w, bytes.Equal(got, want), copies, "has", got[tornAt:][:len(tornOurs)], "where it was written")
	assert.True(w, zeros > 0 && zeros <= len(want)-len(tornOurs), copies, "has so many zeros:", zeros)
}

// What was written into a file whose rest others took away before it came here is kept under a name
// of its own, and nothing waits for ever, however changes are sent. Each case of it is proved on
// package merge.
func TestTorn(t *testing.T) {
	for _, sets := range []bool{false, true} {
		w := newScene(t, holding("f", tornBase, "g", "x"), held(SplitConflicts), func(_ *world, o *Options) { o.Policy.Atomic = sets })
		o := w.open("f", syscall.O_RDWR)
		w.write(o, tornOurs, tornAt)
		w.ok(w.rename("f", "new"))
		w.takes("f", "replace")
		w.ok(w.shut(o))
		for range 2 { // the copy may go with the second
			w.upload()
		}
		w.torn("new")
		s := w.v.Status()
		assert.True(t, s.Queued == 0 && s.Retrying == 0 && len(s.Problems) != 0, "status", s)
		w.pull()
		assert.Equal(t, w.get("f"), "theirs", "f")
		assert.True(t, len(listBackend(w.p)) == 3 && len(w.names("")) == 3, "the backend has", len(listBackend(w.p)), "names, local", w.names(""))
	}
}

// A kill in between changes nothing.
func TestTornAfterAKill(t *testing.T) {
	w := newScene(t, holding("f", tornBase, "g", "x"), held(SplitConflicts))
	o := w.open("f", syscall.O_RDWR)
	w.write(o, tornOurs, tornAt)
	w.takes("f", "delete")
	w.ok(w.shut(o))
	w.killed()
	w.commit()
	w.commit()
	w.torn("f")
}

// Of a file that was only opened to be written nothing is kept, though after a kill
// nobody knows that.
func TestTornBeforeAnythingWasWritten(t *testing.T) {
	w := newScene(t, holding("f", tornBase, "g", "x"), held(SplitConflicts))
	w.open("f", syscall.O_WRONLY)
	w.takes("f", "replace")
	w.killed()
	w.commit()
	assert.Slice(t, w.names(""), []string{"f", "g"}, "names")
	assert.Equal(t, w.get("f"), "theirs", "f")
}

// While a program has the file open nothing is given up: it may write the rest.
func TestPartialFileThatIsOpenIsKept(t *testing.T) {
	w := newScene(t, holding("f", tornBase), held(SplitConflicts))
	o := w.open("f", syscall.O_RDWR)
	w.write(o, tornOurs, tornAt)
	w.takes("f", "delete")
	w.pull()
	w.commit()
	w.writeLast(o, strings.Repeat("o", len(tornBase)), 0)
	w.commit()
	got := listBackend(w.p)
	assert.True(t, len(got) == 1 && got[0] == "f: "+strings.Repeat("o", len(tornBase)), "the backend has", len(got), "files")
}
