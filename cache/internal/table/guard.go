package table

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
)

// The guard is a file beside the database. It says up to which number this table was known
// to record them as given. A database that knows less has lost records, though
// the rest of it may be sound: the directory was removed or put back from a copy, or the
// reference to its newest part was damaged and taken for the torn end of a log. The guard
// is never ahead of the database on the disk, so that no crash makes a sound one look
// damaged. Where it is missing, it says nothing.

func guardPath(dir string) string { return dir + ".guard" }

const guardText = "wsmount numbers %d %d\n"

// checkGuard compares the numbers in the table with the guard.
func (t *Table) checkGuard(dir string) {
	text, err := readFile(t.disk, guardPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.fail(err)
		return
	}
	var ino, seq uint64
	if _, err := fmt.Sscanf(text, guardText, &ino, &seq); err != nil {
		t.log.Warn("the guard of the table cannot be read, and is made anew", "text", text)
		return
	}
	if n := &t.numbers; n.ino.next < ino || n.seq.next < seq {
		t.damaged("it has lost what it knew: it has given numbers up to %d and %d, and now says %d and %d",
			ino, seq, n.ino.next, n.seq.next)
	}
}

// setGuard writes the guard, and reports whether it did. When it could not, as on a full
// disk, the guard keeps its numbers: lower than they could be, or higher than the table may
// say after a caller gave numbers back.
func (t *Table) setGuard(ino, seq uint64) bool {
	err := writeFile(t.disk, t.disk.PathDir(t.dir), guardPath(t.dir), fmt.Sprintf(guardText, ino, seq))
	if err != nil {
		t.log.Warn("the guard of the table was not written", slog.Any("err", err))
	}
	return err == nil
}
