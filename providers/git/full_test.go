package git_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// On a full disk a commit, of a file in LFS too, and a new branch get the room that the
// owner of the disk gives up. When there is none the error says so, all is as before, and
// the next commit has the room that there is by then.
func TestFullDisk(t *testing.T) {
	root := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.Mkdir(root, 0o700), unix.Mount("none", root, "tmpfs", 0, "size=4m,mode=700")); err != nil {
		tier.RequireRoot(t) // to mount a disk
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	put := func(name string, size int) {
		t.Helper()
		err := os.WriteFile(filepath.Join(root, name), make([]byte, size), 0o600)
		assert.Must(t, err == nil || errors.Is(err, unix.ENOSPC), err)
	}
	clean := filepath.Join(root, "clean")
	fill := func(cleanToo bool) {
		t.Helper()
		if cleanToo {
			put("clean", 512<<10)
		}
		put("others", 8<<20)
	}
	s := newLargeStage(t, in(filepath.Join(root, "git")), func(o *git.Options) {
		o.MakeRoom = func(n int64) bool { return n > 0 && os.Remove(clean) == nil }
	})
	t.Cleanup(func() { s.p.Close() })
	free := func() { assert.OK(t, os.Remove(filepath.Join(root, "others"))) }
	random := make([]byte, 48<<10)
	rand.Read(random) // never fails
	content := hex.EncodeToString(random)
	for _, name := range []string{"text", "a.bin"} {
		fill(true)
		write(t, s.p, name, content+name)
		assert.True(t, assert.ErrOf(os.Stat(clean)) != nil, name, "found room on the full disk")
		reads(t, s.p, name, content+name)
		free()
	}
	fill(false)
	for _, name := range []string{"text", "a.bin"} {
		_, err := s.p.Write(t.Context(), at(name), providers.String("x"+content), always)
		assert.True(t, errors.Is(err, providers.ErrQuota) && strings.Contains(err.Error(), "free some of it"), name, err)
	}
	free()
	for _, name := range []string{"text", "a.bin"} {
		reads(t, s.p, name, content+name)
		write(t, s.p, name, "x"+content)
		reads(t, s.p, name, "x"+content)
	}
}
