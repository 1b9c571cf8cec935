package direct

import (
	"fmt"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Set-id bits that come while the kernel already writes by itself go with the
// next write, as soon as somebody looks or the writer closes; a change that is no
// write leaves them, and so does root's.
func TestSetIDWhileWriting(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name  string
		uid   uint32
		write bool
		want  uint32
	}{
		{"user writes", 1000, true, 0o755},
		{"user waits", 1000, false, 0o6755},
		{"root writes", 0, true, 0o6755},
	} {
		for _, look := range []string{"attr", "lookup", "close", "utimes"} {
			t.Run(fmt.Sprint(c.name, " ", look), func(t *testing.T) {
				v, _ := serve(t, Options{})
				e, o, err := v.Create(opAs(c.uid, c.uid), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
				ok(t, err)
				if !o.PassWrite {
					t.Fatal("not offered")
				}
				must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o6755))}))
				if c.write { // as the kernel does, by a descriptor of its own
					must[int](t)(unix.Pwrite(o.Backing, []byte("x"), 0))
				}
				closed := false
				switch look {
				case "attr":
					if got := attr(t, v, e.Ino).Mode & 0o7777; got != c.want {
						t.Errorf("attr says %o", got)
					}
				case "lookup":
					if got := lookup(t, v, wsfs.RootIno, "f").Attr; got.Mode&0o7777 != c.want && got.TTL != 0 {
						t.Errorf("lookup says %o, for %v", got.Mode, got.TTL)
					}
				case "close":
					o.File.Release()
					closed = true
				case "utimes":
					now := time.Now()
					must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mtime: &now}))
				}
				if got := attr(t, v, e.Ino).Mode & 0o7777; got != c.want {
					t.Errorf("mode is %o, want %o", got, c.want)
				}
				if !closed {
					o.File.Release()
				}
			})
		}
	}
}
