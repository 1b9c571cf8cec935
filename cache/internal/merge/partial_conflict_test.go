package merge

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// largeBase has blocks enough to be written in one place without being fetched whole.
var largeBase = strings.Repeat("base.", 1<<12)

const (
	largeAt   = 8 << 10
	largeOurs = "OURS"
)

// written is a working copy with a file, f, into the middle of which a program has written.
func written(t *testing.T, policy reconcile.Conflict) (*copied, *files.OpenInode) {
	w := newCopy(t, memory.Options{}, policy, "f", largeBase, "g", "x", "old", "another")
	o := w.open("f", files.ForWriting)
	w.write(o, largeOurs, largeAt)
	assert.Equal(t, w.inode("f").State, table.Partial, "what was opened to be written in the middle")
	return w, o
}

// sent has what differs sent, and refused where the remote has something else or the content is
// not whole any more.
func (c *copied) sent() {
	c.Helper()
	for range 2 {
		var names []table.Link
		locked := c.lock()
		locked.Dirty(0, func(_ uint64, l table.Link) bool {
			if n := locked.Inode(locked.Record(l).Ino); n != nil && n.State == table.Partial {
				names = append(names, l)
			}
			return true
		})
		locked.unlock()
		for _, l := range names {
			rec, _ := c.record(l)
			assert.Is(c, c.Unsendable(c.Context(), l, &files.GoneError{Ino: rec.Ino}), upload.ErrAgain)
		}
		c.ok(c.refused())
	}
}

// remnant wants one conflict copy, of a name, with what was written where it was written, between
// what was fetched and zeros. Gone is where the first of those is.
func (c *copied) remnant(name string) (gone int) {
	c.Helper()
	copies := slices.DeleteFunc(c.lines(), func(line string) bool { return !strings.Contains(line[:min(len(line), 40)], ".conflict-") })
	assert.Must(c, len(copies) == 1 && strings.HasPrefix(copies[0], name+".conflict-"), "conflict copies of", name, len(copies))
	_, got, _ := strings.Cut(copies[0], ": ")
	want := []byte(largeBase)
	copy(want[largeAt:], largeOurs)
	assert.Must(c, len(got) == len(want), "bytes", len(got))
	zeros := 0
	for i := range want {
		if got[i] == 0 {
			zeros, want[i] = zeros+1, 0
		}
	}
	assert.True(c, bytes.Equal([]byte(got), want), "the copy has", got[largeAt:][:len(largeOurs)], "where it was written")
	assert.True(c, zeros > 0 && zeros <= len(want)-len(largeOurs), "zeros", zeros)
	return bytes.IndexByte([]byte(got), 0)
}

// What was written into a file whose rest another writer took away before it was fetched is kept
// under a name of its own, whatever the policy and wherever the file is by then. The name has what
// the remote has.
func TestPartialConflict(t *testing.T) {
	policies, n := []reconcile.Conflict{reconcile.Split, reconcile.LastWriterWins, reconcile.Abort, reconcile.Combine}, 0
	for _, c := range []struct{ there, want string }{{"put f theirs", "f: theirs, "}, {"rm f", ""}, {"rm f, put f/x theirs", "f/, f/x: theirs, "}} {
		for _, pulled := range []bool{false, true} { // before it is sent
			for _, name := range []string{"f", "new", "old"} {
				policy := policies[n%len(policies)]
				n++
				t.Run(fmt.Sprint(policy, c.there, name, pulled), func(t *testing.T) {
					w, o := written(t, policy)
					if name != "f" {
						w.ours("mv f " + name)
					}
					w.theirs(strings.Split(c.there, ", ")...)
					w.ok(w.opener.Close(o, true))
					if pulled {
						w.pull()
					}
					w.sent()
					w.pull()
					w.remnant(name)
					beside := slices.DeleteFunc(w.lines(), func(line string) bool { return len(line) > len(largeBase) })
					assert.Equal(t, strings.Join(beside, ", "), c.want+"g: x, old: another", "beside the copy there is")
					assert.Equal(t, len(w.Held().Conflicts()), 0, "held back")
					w.sendable()
				})
			}
		}
	}
}

// A reader of the partial file never reads a zero for what is gone.
func TestReaderOfAPartialFile(t *testing.T) {
	w, o := written(t, reconcile.Split)
	reader := w.open("f", files.ForReading)
	w.theirs("put f theirs")
	w.ok(w.opener.Close(o, true))
	w.pull()
	gone, buf := w.remnant("f"), make([]byte, len(largeOurs))
	_, err := reader.Content().ReadAt(t.Context(), buf, int64(gone))
	assert.True(t, err != nil, "read of what is gone", buf)
	w.ok(assert.ErrOf(reader.Content().ReadAt(t.Context(), buf, largeAt)))
	assert.Equal(t, string(buf), largeOurs, "of what was written")
	w.ok(w.opener.Close(reader, false))
}

// While a program writes the file nothing is given up: it may write the rest, under the name of a
// conflict copy too.
func TestWriterOfAPartialFile(t *testing.T) {
	all := strings.Repeat("o", len(largeBase))
	for there, c := range map[string]struct {
		flushed bool
		want    []string
	}{
		"rm f":                 {false, []string{"f: " + all}},
		"rm f, put f/x theirs": {true, []string{"f/", "f/x: theirs", "f.conflict-" + reconcile.EmptyHash[:8] + ": " + all}},
	} {
		w, o := written(t, reconcile.Split)
		if c.flushed {
			w.ok(w.opener.Flush(o, true))
		}
		w.theirs(strings.Split(there, ", ")...)
		w.pull()
		w.writeLast(o, all, 0)
		w.ok(w.refused())
		w.sees(append(c.want, "g: x", "old: another")...)
		w.sendable()
	}
}
