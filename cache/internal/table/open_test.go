package table

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// made is a table with the state after n steps, closed: a copy of its own.
func made(t *testing.T, n int) string {
	t.Helper()
	from := filepath.Join(scratchDir, fmt.Sprint("made-", n))
	if os.Mkdir(from, 0o700) == nil { // or it was made before
		tab := open(t, filepath.Join(from, "table"), Options{memTable: 64 << 10})
		assert.OK(t, assert.ErrOf(steps(tab, 1, n)))
		assert.OK(t, tab.Close())
	}
	dir := t.TempDir()
	assert.OK(t, os.CopyFS(dir, os.DirFS(from))) // with the guard, which is beside the table
	return filepath.Join(dir, "table")
}

func TestFormat(t *testing.T) {
	tests := []struct {
		name, text string
		want       error
		says       string
	}{
		{"newer", "wsmount table 3\n", ErrNewer, "format 3, and this one knows up to 2"},
		{"much newer", "wsmount table 4294967295\n", ErrNewer, "4294967295"},
		{"zero", "wsmount table 0\n", ErrDamaged, "format version"},
		{"empty", "", ErrDamaged, "format version"},
		{"other", "sqlite", ErrDamaged, "sqlite"},
		{"number", "wsmount table x", ErrDamaged, "format version"},
		{"too large", "wsmount table 99999999999", ErrDamaged, "format version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := made(t, 3)
			assert.OK(t, os.WriteFile(filepath.Join(dir, "format"), []byte(tt.text), 0o600))
			before := listing(t, dir)
			_, err := Open(dir, Options{})
			assert.Is(t, err, tt.want)
			assert.Contains(t, fmt.Sprint(err), tt.says)
			assert.Contains(t, fmt.Sprint(err), dir)
			assert.Slice(t, before, listing(t, dir), "it was touched")
		})
	}
}

// TestFormatBefore: a table of an earlier format is read, and is one of this format then.
func TestFormatBefore(t *testing.T) {
	dir := made(t, 3)
	at := filepath.Join(dir, "format")
	assert.OK(t, os.WriteFile(at, []byte("wsmount table 1\n"), 0o600))
	tab := open(t, dir, Options{})
	wantSteps(t, tab, 3)
	assert.OK(t, tab.Close())
	text := assert.Of(os.ReadFile(at)).OK(t)
	assert.Equal(t, string(text), "wsmount table 2\n", "the format")
}

// listing is all below dir, with times.
func listing(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, i os.FileInfo, err error) error {
		if err == nil {
			list = append(list, fmt.Sprint(path, i.Size(), i.ModTime()))
		}
		return err
	})
	assert.OK(t, err)
	return list
}

// remove takes away what matches a pattern below dir.
func remove(t *testing.T, dir, pattern string) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	assert.Must(t, len(paths) != 0, "nothing matches", pattern)
	for _, path := range paths {
		assert.OK(t, os.RemoveAll(path))
	}
}

// rewrite changes the content of what matches a pattern below dir.
func rewrite(t *testing.T, dir, pattern string, change func([]byte) []byte) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(content), 0o600)
		}
		assert.OK(t, err)
	}
	assert.Must(t, len(paths) != 0, "nothing matches", pattern)
}

// TestHole: a log or a manifest that was damaged in the middle is not taken for
// one that ends there, unless the power was cut: then that may be what was lost. Of the
// logs that is the newest: the one before was synced when it was closed, and may be there
// still if the end came before what it holds was in other files.
func TestHole(t *testing.T) {
	log := func(dir string) (pattern string, number uint32) {
		n, _ := logNumber(filepath.Base(newestLog(dir)))
		return newestLog(dir), uint32(n)
	}
	manifest := func(string) (pattern string, number uint32) { return "db/MANIFEST-*", 0 }
	for _, find := range []func(dir string) (string, uint32){log, manifest} {
		for _, part := range []int{20, 50, 90, 99} {
			for _, inHead := range []bool{false, true} {
				dir := made(t, 600)
				pattern, number := find(dir)
				where := fmt.Sprintf("%s, one bit at %d %%, in the head of a record: %v", pattern, part, inHead)
				rewrite(t, dir, pattern, func(b []byte) []byte {
					b[recordAt(t, b, number, part, inHead)] ^= 1
					return b
				})
				if tab, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: %v", where, err)
					if err == nil {
						tab.Close()
					}
				}
				tab, err := Open(dir, Options{BootID: "another"})
				if err != nil {
					if number != 0 || !errors.Is(err, ErrDamaged) {
						t.Errorf("%s, after a power cut: %v", where, err)
					}
					continue
				}
				assert.Is(t, tab.Close(), nil)
			}
		}
	}
}

// recordAt is a byte of the record about so many percent into a file of records: its first one, or
// the length in its head. The length of the last record is left out: with another one it looks
// like the torn end of a write.
func recordAt(t *testing.T, b []byte, log uint32, part int, inHead bool) int {
	t.Helper()
	head, starts := plainHead, []int{}
	if log != 0 {
		head = logHead
	}
	for at := 0; at < len(b); {
		size, ok := chunk(blockFrom(b, at), log)
		if !ok {
			if left := blockSize - at%blockSize; left < logHead {
				at += left
				continue
			}
			break
		}
		starts = append(starts, at)
		at += size
	}
	assert.Must(t, len(starts) > 2, "records in the file")
	i := len(starts) * part / 100
	if inHead {
		return starts[min(i, len(starts)-2)] + 4
	}
	return starts[i] + head
}

// TestTornEnd: what a kill leaves of the last write is no damage.
func TestTornEnd(t *testing.T) {
	for cut := 1; cut < 60; cut += tier.Pick(13, 1) {
		dir := made(t, 600)
		rewrite(t, dir, newestLog(dir), func(b []byte) []byte { return b[:len(b)-cut] })
		tab, err := Open(dir, Options{})
		if errors.Is(err, ErrDamaged) && cut > 40 { // the numbers of the session's end
			continue
		}
		assert.OK(t, err, cut, "bytes cut off")
		assert.Is(t, tab.Close(), nil)
	}
}

// TestDamaged: what is broken is called damaged, at Open or at the first read
// that meets it, and never taken for an empty table or a wrong answer.
func TestDamaged(t *testing.T) {
	flip := func(b []byte) []byte {
		for i := range b {
			if i < len(b)-200 { // what ends a file says where all else is
				b[i] ^= 0xff
			}
		}
		return b
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
	}{
		{"no database", func(t *testing.T, dir string) { remove(t, dir, "db") }},
		{"no manifest", func(t *testing.T, dir string) { remove(t, dir, "db/MANIFEST-*") }},
		{"no marker", func(t *testing.T, dir string) { remove(t, dir, "db/marker.manifest*") }},
		{"no format", func(t *testing.T, dir string) { remove(t, dir, "format") }},
		{"no tables", func(t *testing.T, dir string) { remove(t, dir, "db/*.sst") }},
		{"tables cut off", func(t *testing.T, dir string) {
			rewrite(t, dir, "db/*.sst", func(b []byte) []byte { return b[:len(b)/2] })
		}},
		{"tables changed", func(t *testing.T, dir string) { rewrite(t, dir, "db/*.sst", flip) }},
		{"manifest changed", func(t *testing.T, dir string) {
			rewrite(t, dir, "db/MANIFEST-*", func(b []byte) []byte { return bytes.Repeat([]byte{7}, len(b)) })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := made(t, 600)
			tt.damage(t, dir)
			tab, err := Open(dir, Options{})
			if err == nil {
				_, err = verify(tab)
				assert.True(t, tab.Err() != nil, "it has not failed")
				assert.Is(t, tab.Commit(), ErrDamaged, "Commit")
				assert.Is(t, tab.Sync(), ErrDamaged, "Sync")
				assert.Is(t, tab.Close(), ErrDamaged, "Close")
			}
			assert.Is(t, err, ErrDamaged)
		})
	}
}

// TestMakingInterrupted: a table whose making was interrupted is made.
func TestMakingInterrupted(t *testing.T) {
	dir := made(t, 0)
	remove(t, dir, "format")
	tab := open(t, dir, Options{})
	assert.True(t, tab.Session().First, "got", tab.Session(), "want the first session")
	assert.OK(t, tab.Close())
}

// TestOpenTwice: the second fails, and the first does not notice.
func TestOpenTwice(t *testing.T) {
	dir := made(t, 5)
	tab := open(t, dir, Options{})
	if second, err := Open(dir, Options{}); err == nil {
		second.Close()
		t.Error("a table that is open was opened")
	}
	assert.OK(t, step(tab, 6))
	wantSteps(t, tab, 6)
	assert.OK(t, tab.Close())
}

// TestReadTwice: several may read a table at once.
func TestReadTwice(t *testing.T) {
	dir := made(t, 5)
	one, other := open(t, dir, Options{ReadOnly: true}), open(t, dir, Options{ReadOnly: true})
	wantSteps(t, one, 5)
	assert.OK(t, one.Close())
	wantSteps(t, other, 5)
	assert.OK(t, other.Close())
}

func TestBootID(t *testing.T) {
	a, b := bootID(), bootID()
	assert.True(t, len(a) >= 32 && a == b, "got", a, "and", b)
}
