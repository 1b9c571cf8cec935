package direct

import (
	"os"
	"path/filepath"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A request can see that others took an open file's name before the watch
// reports it. The report then finds no inode by that name, so the request must
// tell the kernel, which believes the link count for a minute.
func TestLinkCountOfAFileThatLostItsName(t *testing.T) {
	for _, c := range []struct {
		name string
		take func(dir string) error
		see  func(v *Volume, ino wsfs.Ino)
	}{
		{"removed, seen by open", func(dir string) error { return os.Remove(filepath.Join(dir, "f")) },
			func(v *Volume, ino wsfs.Ino) { v.Open(op(), ino, unix.O_RDONLY) }},
		{"replaced, seen by lookup", func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "tmp"), nil, 0o644); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "f"))
		}, func(v *Volume, ino wsfs.Ino) { v.Lookup(op(), wsfs.RootIno, "f") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, dir := serve(t, Options{}) // no watch: only the request can tell
			r := record(v)
			writeFile(t, "text", dir, "f")
			e, err := v.Lookup(op(), wsfs.RootIno, "f")
			ok(t, err)
			o, err := v.Open(op(), e.Ino, unix.O_RDONLY)
			ok(t, err)
			defer o.File.Release()
			ok(t, c.take(dir))
			c.see(v, e.Ino)
			if r.count(note{kind: "attr", ino: e.Ino}) == 0 {
				t.Errorf("the kernel was told %v, not that the attributes of inode %d changed", r.all(), e.Ino)
			}
		})
	}
}
