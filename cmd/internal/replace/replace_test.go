package replace

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// waited is a working copy whose changes arrive when somebody waits for that.
type waited struct {
	*cache.Volume
	arrive func()
}

func (w waited) Commit(ctx context.Context, o cache.CommitOptions) (cache.CommitReport, error) {
	w.arrive()
	return w.Volume.Commit(ctx, o)
}

// TestThrough: a condition holds for what the store has, however old what the working copy
// shows is, and what the store then has is what that shows.
func TestThrough(t *testing.T) {
	arrives := make(chan struct{})
	p := memory.New(memory.Options{Sleep: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-arrives:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	v, err := cache.Open(t.Context(), p, cache.Options{StateDir: t.TempDir(), Provider: "memory", Policy: cache.Policy{TTL: time.Hour, Conflict: cache.LastWriterWins}})
	assert.OK(t, err)
	defer v.Close()
	exclude, err := mountspec.CompileExclude([]string{"*.local"})
	assert.OK(t, err)
	store := seam.New(p)
	part := Part{Store: store, Copy: waited{v, sync.OnceFunc(func() { close(arrives) })}, Exclude: exclude}
	put := func(key string, old seam.ETag, content string) error {
		l, err := seam.ParseLocator(key)
		return errors.Join(err, Through(t.Context(), part, l, old, content))
	}
	theirs := func(content string) {
		t.Helper()
		assert.OK(t, p.Tamper(providers.MustLocator("d/f"), []byte(content)))
	}
	shows := func(want string) {
		t.Helper()
		d, err := v.Lookup(&fs.Op{}, fs.RootIno, "d")
		assert.OK(t, err)
		e, err := v.Lookup(&fs.Op{}, d.Ino, "f")
		assert.OK(t, err)
		o, err := v.Open(&fs.Op{}, e.Ino, syscall.O_RDONLY)
		assert.OK(t, err)
		defer o.File.Release()
		buf := make([]byte, 64)
		got, err := o.File.Read(&fs.Op{}, buf, 0)
		assert.OK(t, err)
		if got.Bytes == nil {
			n, err := syscall.Pread(got.FD, buf[:got.N], got.Off)
			assert.OK(t, err)
			got.Bytes = buf[:n]
		}
		assert.Equal(t, string(got.Bytes), want)
	}
	theirs("one")
	shows("one")
	theirs("two")
	assert.Is(t, put("d/f", seam.ETagOf("one"), "mine"), providers.ErrConflict)
	shows("two")
	assert.OK(t, put("d/f", seam.ETagOf("two"), "three"))
	shows("three")
	assert.Is(t, put("d/f", seam.None, "mine"), providers.ErrConflict)
	assert.OK(t, put("d/new/f", seam.None, "new"))
	assert.Is(t, put("d/f.local/x", seam.None, "x"), nil)
	assert.Is(t, put("f.local", seam.None, "x"), providers.ErrPermission)

	p.Switches().Delay(1)
	assert.OK(t, assert.ErrOf(v.Mkdir(&fs.Op{}, fs.RootIno, "made", 0o755)))
	assert.OK(t, put("made/f", seam.None, "new"), "in what is on its way")

	d, err := v.Lookup(&fs.Op{}, fs.RootIno, "d")
	assert.OK(t, err)
	_, o, err := v.Create(&fs.Op{}, d.Ino, "open", syscall.O_WRONLY|syscall.O_CREAT, syscall.S_IFREG|0o644)
	assert.OK(t, err)
	assert.Is(t, put("d/open", seam.None, "mine"), providers.ErrConflict, "what the store lacks")
	o.File.Release()
	part.Later = true
	assert.Is(t, put("d/f", seam.ETagOf("three"), "mine"), providers.ErrUnsupported)
}
