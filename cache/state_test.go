package cache

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// One mount at a time, and nothing that an unclean end left is touched.
func TestStateDirectory(t *testing.T) {
	w := newWorld(t)
	_, err := Open(t.Context(), w.p, Options{StateDir: w.state})
	w.is(err, syscall.EWOULDBLOCK)
	w.ok(w.put("f", "x"))
	if info, err := os.Stat(w.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	w.ok(w.v.Close())
	v, err := Open(t.Context(), w.p, Options{StateDir: w.state})
	w.ok(err)
	w.ok(v.Close())
	left := filepath.Join(w.state, "data", "0a", "10")
	w.ok(os.MkdirAll(filepath.Dir(left), 0o700))
	w.ok(os.WriteFile(left, []byte("precious"), 0o600))
	_, err = Open(t.Context(), w.p, Options{StateDir: w.state})
	w.is(err, ErrLeftovers)
	if got, _ := os.ReadFile(left); string(got) != "precious" {
		t.Errorf("left over: %q", got)
	}
}

// Content that is not sent names its place.
func TestContentFileNamesItsPlace(t *testing.T) {
	w := newWorld(t, holding("d/f", "base"))
	o := w.open("d/f", syscall.O_RDWR)
	w.write(o, "ours", 0)
	w.tamper("d/f", "theirs")
	w.is(w.shut(o), fs.ErrConflict)
	buf := make([]byte, 100)
	n, err := unix.Getxattr(w.v.store.path(w.walk("d/f")), pathXattr, buf)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("no extended attributes here")
	}
	if w.ok(err); string(buf[:n]) != "d/f" {
		t.Errorf("got %q", buf[:n])
	}
}

// A backend that promises too little, or is not there, is refused at once.
func TestOpenRefuses(t *testing.T) {
	_, err := Open(t.Context(), providers.ReadOnly(memory.New(memory.Options{}), providers.ReadOnlyOptions{}), Options{StateDir: t.TempDir()})
	var missing *providers.CapabilityError
	if !errors.As(err, &missing) {
		t.Errorf("read-only: %v", err)
	}
	f := providertest.NewFaults(t)
	f.Queue(providers.MethodStat, providertest.Fault{Before: providers.ErrUnavailable})
	_, err = Open(t.Context(), f.Wrap(memory.New(memory.Options{})), Options{StateDir: t.TempDir()})
	if !errors.Is(err, providers.ErrUnavailable) {
		t.Errorf("unreachable: %v", err)
	}
}
