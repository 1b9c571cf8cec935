package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

func openHere(t *testing.T) (*Provider, string) {
	t.Helper()
	root := t.TempDir()
	p, err := Open(t.Context(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, root
}

// TestAppearsBetween: what a foreign program creates between our look and our
// act is not overwritten by a Write that found nothing.
func TestAppearsBetween(t *testing.T) {
	for name, c := range map[string]struct {
		cond providers.Condition
		want error
	}{
		"if absent":     {providers.IfAbsent(), providers.ErrExist},
		"unconditional": {providers.Unconditional(), providers.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			p, root := openHere(t)
			theirs := filepath.Join(root, "a")
			p.between = func() {
				if err := os.WriteFile(theirs, []byte("theirs"), 0o644); err != nil {
					t.Error(err)
				}
			}
			_, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("ours"), providers.WriteOptions{If: c.cond})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got, _ := os.ReadFile(theirs); string(got) != "theirs" {
				t.Errorf("content: got %q", got)
			}
		})
	}
}

// TestOtherProcessWaits: while another holds the directory's lock, a change
// waits; the kernel's own list of locks says so.
func TestOtherProcessWaits(t *testing.T) {
	p, root := openHere(t)
	other, err := os.Open(root) // a description of its own, as in another process
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
		done <- err
	}()
	for !waits(t, root) {
		select {
		case err := <-done:
			t.Fatalf("the write did not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// waits reports whether somebody waits for the lock of a directory.
func waits(t *testing.T, root string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, "-> FLOCK") && strings.Contains(line, fmt.Sprintf(":%d ", st.Ino)) {
			return true
		}
	}
	return false
}

// TestChmodFollowsNothing: a link that took a file's place does not lead out.
func TestChmodFollowsNothing(t *testing.T) {
	p, root := openHere(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	err := chmod(p.root, "link", 0o777)
	if st, _ := os.Stat(outside); err == nil || st.Mode() != 0o600 {
		t.Errorf("chmod of a link: %v, outside has mode %v", err, st.Mode())
	}
}
