package cache

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
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
// where it was written, between what was here and zeros. Gone is where the first of
// those is.
func (w *scene) torn(name string) (gone int) {
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
	return bytes.IndexByte(got, 0)
}

// tornPairs are those of the cases of TestTorn that have each two of its choices
// together: all of them are in make soak.
var tornPairs = []int{2, 9, 12, 14, 17, 22, 29, 32, 34, 40, 43, 48}

// What was written into a file whose rest others took away before it came here is
// kept under a name of its own, whatever the policy, and nothing waits for ever.
func TestTorn(t *testing.T) {
	t.Parallel()
	type kind struct {
		policy Conflict
		sets   bool
	}
	n := 0
	for _, k := range []kind{{SplitConflicts, false}, {SplitConflicts, true}, {LastWriterWins, false}, {Abort, true}} {
		for _, verb := range []string{"replace", "delete"} {
			for _, name := range []string{"f", "new", "old"} { // where the file is by then
				for _, seen := range []bool{false, true} { // by a pull, before it is sent
					if n++; !tier.Soak && !slices.Contains(tornPairs, n) {
						continue
					}
					t.Run(fmt.Sprint(k, verb, name, seen), func(t *testing.T) {
						t.Parallel()
						w := newScene(t, holding("f", tornBase, "g", "x", "old", "another"), held(k.policy), func(_ *world, o *Options) { o.Policy.Atomic = k.sets })
						o := w.open("f", syscall.O_RDWR)
						w.write(o, tornOurs, tornAt)
						assert.Equal(t, w.inode(w.walk("f")).State, table.Partial, "what was opened to write in the middle")
						if name != "f" {
							w.ok(w.rename("f", name))
						}
						w.takes("f", verb)
						w.ok(w.shut(o))
						if seen {
							w.pull()
						}
						for range 2 { // the copy may go with the second
							w.upload()
						}
						w.torn(name)
						s := w.v.Status()
						assert.True(t, s.Queued == 0 && s.Retrying == 0 && len(s.Problems) != 0, "status", s)
						want := map[string]string{"g": "x", "old": "another"}
						if verb == "replace" {
							want["f"] = "theirs"
						}
						for _, path := range []string{"f", "g", "new", "old"} {
							content, there := want[path]
							assert.Equal(t, slices.Contains(w.names(""), path), there, path, "is there")
							assert.True(t, !there || w.get(path) == content, path, "has other content")
						}
						listed := listBackend(w.p)
						w.pull()
						assert.True(t, slices.Equal(listBackend(w.p), listed), "the backend has something else after a pull")
						assert.Equal(t, len(listed), len(w.names("")), "names at the backend")
					})
				}
			}
		}
	}
}

// Who has the partial file open never reads a zero for what is gone.
func TestTornReader(t *testing.T) {
	w := newScene(t, holding("f", tornBase), held(SplitConflicts))
	o := w.open("f", syscall.O_RDWR)
	w.write(o, tornOurs, tornAt)
	reader := w.open("f", syscall.O_RDONLY)
	defer reader.File.Release()
	w.takes("f", "replace")
	w.ok(w.shut(o))
	w.commit()
	gone := w.torn("f")
	var buf [4]byte
	d, err := reader.File.Read(me, buf[:], int64(gone))
	assert.True(t, err != nil, "read of what is gone", d.Bytes)
	d = assert.Of(reader.File.Read(me, buf[:], tornAt)).OK(w)
	assert.Equal(t, string(d.Bytes), tornOurs, "of what was written")
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

// Where others make a directory of the name, one copy is made, and it is the last.
func TestTornUnderADirectory(t *testing.T) {
	for _, written := range []bool{false, true} { // still, when the pull comes
		w := newScene(t, holding("f", tornBase, "g", "x"), held(SplitConflicts))
		o := w.open("f", syscall.O_RDWR)
		w.write(o, tornOurs, tornAt)
		if !written {
			w.ok(w.shut(o))
		}
		w.takes("f", "delete")
		w.tamper("f/x", "theirs")
		w.pull()
		copies := w.copies()
		if written {
			w.ok(w.shut(o))
		}
		w.commit()
		w.commit()
		w.torn("f")
		now := w.names("")
		assert.True(t, written || len(copies) == 1 && slices.Contains(now, copies[0]), "the pull made", copies, "of which there are", now)
		assert.Equal(t, w.get("f/x"), "theirs", "f/x")
		s := w.v.Status()
		assert.True(t, s.Queued == 0 && s.Retrying == 0, "status", s)
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
