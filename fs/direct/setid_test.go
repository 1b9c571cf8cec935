package direct

import (
	"fmt"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// Set-id bits that come while the kernel already writes by itself go with the
// next write of a user, as soon as somebody looks or the writer closes; a change
// that is no write leaves them, and so does root.
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
		{"root waits", 0, false, 0o6755},
	} {
		for _, look := range []string{"attr", "lookup", "close", "utimes"} {
			t.Run(fmt.Sprint(c.name, " ", look), func(t *testing.T) {
				v, _ := serve(t, Options{})
				w := openToPass(t, v, c.uid)
				w.chmod(0o6755)
				if c.write {
					w.write()
				}
				switch look {
				case "attr":
					assert.Equal(t, w.mode(), c.want, "attr")
				case "lookup":
					if got := lookup(t, v, wsfs.RootIno, "f").Attr; got.Mode&0o7777 != c.want && got.TTL != 0 {
						t.Errorf("lookup says %o, for %v", got.Mode, got.TTL)
					}
				case "close":
					w.close()
				case "utimes":
					w.touch(0)
				}
				assert.Equal(t, w.mode(), c.want, "mode")
			})
		}
	}
}

// A write is seen also where the times say little: they were set to what they are
// a moment ago, or somebody else sets them afterwards.
func TestSetIDWriteIsNotHidden(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name string
		do   func(w *passing)
		want uint32
	}{
		{"within a tick", func(w *passing) {
			w.write()
			w.chmod(0o6755)
			w.write()
		}, 0o755},
		{"a stranger sets the times", func(w *passing) {
			w.chmod(0o6755)
			w.touch(2000)
		}, 0o755},
		{"the owner sets the times", func(w *passing) {
			w.chmod(0o6755)
			w.touch(1000)
		}, 0o6755},
		{"the owner sets the times of what was written to", func(w *passing) {
			w.chmod(0o6755)
			w.write()
			w.touch(1000)
		}, 0o755},
		{"after the owner set the times", func(w *passing) {
			w.chmod(0o6755)
			w.touch(1000)
			w.write()
		}, 0o755},
		{"bits that are given again", func(w *passing) {
			w.chmod(0o6755)
			w.write()
			w.chmod(0o4755)
		}, 0o4755},
		{"bits that were taken and given again", func(w *passing) {
			w.chmod(0o6755)
			w.chmod(0o755)
			w.write()
			w.chmod(0o4755)
			w.write()
		}, 0o755},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, _ := serve(t, Options{})
			w := openToPass(t, v, 1000)
			c.do(w)
			w.close()
			assert.Equal(t, w.mode(), c.want, "mode")
		})
	}
}

// A write that falls between the look before a change of mode and the change
// itself counts as one after it.
func TestSetIDWriteDuringChmod(t *testing.T) {
	needRoot(t)
	v, _ := serve(t, Options{})
	w := openToPass(t, v, 1000)
	h := must[*handle](t)(v.res.hold(w.ino))
	defer h.drop()
	mode := uint32(0o4755)
	in := &wsfs.SetAttr{Mode: &mode}
	ok(t, v.setID.guard(op(), w.ino, h, in))
	w.write()
	ok(t, apply(op(), h, in))
	assert.Equal(t, w.mode(), 0o755, "mode")
}

// The kernel may hold a mode to be true that a write made void: it is not to run
// the file by that.
func TestSetIDFileIsNotRun(t *testing.T) {
	needRoot(t)
	t.Parallel()
	v, _ := serve(t, Options{})
	run := func() error {
		o, err := v.Open(op(), lookupIno(t, v), unix.O_RDONLY|fmodeExec)
		if err == nil {
			o.File.Release()
		}
		return err
	}
	w := openToPass(t, v, 1000)
	ok(t, run())
	w.chmod(0o4755)
	wantErr(t, run(), unix.ETXTBSY)
	w.write()
	wantErr(t, run(), unix.ETXTBSY)
	w.close()
	o, err := v.Open(op(), w.ino, unix.O_RDONLY|fmodeExec)
	if wantErr(t, err, unix.ESTALE); err == nil {
		o.File.Release()
	}
	assert.Equal(t, w.mode(), 0o755, "mode")
	ok(t, run())
	w.chmod(0o4755)
	ok(t, run())
}

// Nobody starts to write to a set-id file that is about to be run, and what the
// daemon itself wrote is not run by a mode from before.
func TestSetIDFileThatIsRunIsNotWritten(t *testing.T) {
	needRoot(t)
	t.Parallel()
	v, _ := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "x")
	must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o4777))}))
	open := func(flags uint32) (wsfs.File, error) {
		o, err := v.Open(opAs(1000, 1000), e.Ino, flags)
		return o.File, err
	}
	running := must[wsfs.File](t)(open(unix.O_RDONLY | fmodeExec))
	_, err := open(unix.O_WRONLY)
	wantErr(t, err, unix.ETXTBSY)
	running.Release()
	w := must[wsfs.File](t)(open(unix.O_WRONLY))
	must[int](t)(w.Write(&wsfs.Op{UID: 1000, GID: 1000, KillPriv: true}, []byte("y"), 0))
	if got := attr(t, v, e.Ino).Mode & 0o7777; got != 0o777 {
		t.Errorf("mode is %o", got) // the kernel may not take this answer
	}
	w.Release()
	attr(t, v, e.Ino)
	_, err = open(unix.O_RDONLY | fmodeExec)
	wantErr(t, err, unix.ESTALE)
	attr(t, v, e.Ino)
	must[wsfs.File](t)(open(unix.O_RDONLY | fmodeExec)).Release()
}

func lookupIno(t *testing.T, v *Volume) wsfs.Ino { return lookup(t, v, wsfs.RootIno, "f").Ino }

// A passing is a new file that the kernel can write to by itself.
type passing struct {
	t      *testing.T
	v      *Volume
	ino    wsfs.Ino
	o      wsfs.Opened
	closed bool
}

// openToPass makes it as a user.
func openToPass(t *testing.T, v *Volume, uid uint32) *passing {
	e, o, err := v.Create(opAs(uid, uid), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	w := &passing{t: t, v: v, ino: e.Ino, o: o}
	t.Cleanup(w.close)
	assert.Must(t, o.PassWrite, "not offered")
	return w
}

func (w *passing) chmod(mode uint32) {
	must[wsfs.Attr](w.t)(w.v.SetAttr(op(), w.ino, nil, &wsfs.SetAttr{Mode: &mode}))
}

// write writes as the kernel does, by a descriptor of its own.
func (w *passing) write() {
	must[int](w.t)(unix.Pwrite(w.o.Backing, []byte("x"), 0))
}

// touch sets the times as a user.
func (w *passing) touch(uid uint32) {
	now := time.Now()
	must[wsfs.Attr](w.t)(w.v.SetAttr(opAs(uid, uid), w.ino, nil, &wsfs.SetAttr{Mtime: &now}))
}

func (w *passing) mode() uint32 { return attr(w.t, w.v, w.ino).Mode & 0o7777 }

func (w *passing) close() {
	if !w.closed {
		w.o.File.Release()
	}
	w.closed = true
}
