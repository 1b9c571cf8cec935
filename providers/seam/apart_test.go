package seam_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// A directory is kept apart from a space by whatever name it leads there, and also by what is
// mounted on it.
func TestCheckApart(t *testing.T) {
	home := t.TempDir()
	in := func(name string) string { return filepath.Join(home, name) }
	for _, dir := range []string{"Vault/Agent/projects", "Vault/Diary", "memory", "a", "b", "ws"} {
		assert.OK(t, os.MkdirAll(in(dir), 0o700))
	}
	assert.OK(t, os.Symlink("Vault/Diary", in("link")))
	behind := map[string][]string{in("a"): {in("ws"), in("b")}, in("b"): {in("a"), in("Vault/Diary")}, in("ws"): {in("Vault/Agent/projects")}}
	away := errors.New("it is away")
	s := seam.Settings{
		Personal: func() ([]seam.Space, error) { return []seam.Space{{Dir: in("Vault"), Memory: in("Vault/Agent")}}, nil },
		Behind: func(dir string) ([]string, error) {
			if dir == in("memory/away") {
				return nil, away
			}
			return behind[dir], nil
		},
	}
	for dir, says := range map[string]string{
		"memory": "", "memory/new": "", "ws": "", "Vault/Agent": "", "Vault/Agent/new/er": "",
		".": "has the operator's own space in it", "Vault/Diary": "alone is for memory", "link": "alone is for memory", "link/new": "alone is for memory", "Vault/new/er": "alone is for memory",
		"b": in("b") + " (which shows " + in("Vault/Diary") + ") lies in", "a": in("a") + " (which shows " + in("Vault/Diary") + ") lies in", "memory/away": "which is not known: it is away",
	} {
		err := s.CheckApart(in(dir))
		if says == "" {
			assert.OK(t, err, dir)
			continue
		}
		assert.Is(t, err, providers.ErrPermission, dir)
		assert.Contains(t, err.Error(), says, dir)
	}
	assert.Is(t, s.CheckApart(in("memory/away")), away)
	s.Personal = func() ([]seam.Space, error) { return nil, nil }
	assert.OK(t, s.CheckApart(in("memory/away")), "there is no space")
}
