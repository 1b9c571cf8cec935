package lfs_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

const oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize 12345\n"

var texts = []struct {
	name, text string
	ok         bool
}{
	{"as it is written", pointer, true},
	{"before it was public", strings.Replace(pointer, "git-lfs", "hawser", 1), true},
	{"the first of all", strings.Replace(pointer, "https://git-lfs.github.com/spec/v1", "http://git-media.io/v/2", 1), true},
	{"lines of another system", strings.ReplaceAll(pointer, "\n", "\r\n"), true},
	{"without a last line break", strings.TrimSpace(pointer), true},
	{"more line breaks", pointer + "\n\n", true},
	{"of nothing", strings.Replace(pointer, "12345", "0", 1), true},
	{"empty", "", false},
	{"another version", strings.Replace(pointer, "v1", "v2", 1), false},
	{"another hash", strings.Replace(pointer, "sha256", "sha512", 1), false},
	{"a short hash", strings.Replace(pointer, "2393", "", 1), false},
	{"capitals", strings.Replace(pointer, oid, strings.ToUpper(oid), 1), false},
	{"no hash", strings.Replace(pointer, oid, strings.Repeat("x", 64), 1), false},
	{"a size below nothing", strings.Replace(pointer, "12345", "-1", 1), false},
	{"a size with a sign", strings.Replace(pointer, "12345", "+1", 1), false},
	{"a size that is none", strings.Replace(pointer, "12345", "99999999999999999999", 1), false},
	{"another order", "version https://git-lfs.github.com/spec/v1\nsize 12345\noid sha256:" + oid + "\n", false},
	{"a line more", pointer + "x y\n", false},
	{"a line less", strings.TrimSuffix(pointer, "size 12345\n"), false},
	{"with an extension", strings.Replace(pointer, "oid", "ext-0-foo sha256:"+oid+"\noid", 1), false},
	{"too long", pointer + strings.Repeat("\n", 1024-len(pointer)), false},
}

func TestParse(t *testing.T) {
	for _, c := range texts {
		p, ok := lfs.Parse([]byte(c.text))
		assert.True(t, ok == c.ok && (!ok || (p.OID == oid && (p.Size == 12345 || p.Size == 0))), c.name, p, ok, "want", c.ok)
	}
	assert.Equal(t, string((lfs.Pointer{OID: oid, Size: 12345}).Encode()), pointer, "written")
}

// What we write is what git-lfs writes, and what it takes for a pointer of its own we
// take for one.
func TestPointerAsGitLFS(t *testing.T) {
	tier.RequireTools(t, "git-lfs")
	dir := t.TempDir()
	for _, content := range []string{"x", "some more content\n", strings.Repeat("long", 10_000)} {
		store := lfs.OpenStore(dir, dir, space.Disk{})
		file := dir + "/file"
		assert.OK(t, os.WriteFile(file, []byte(content), 0o600))
		out := assert.Of(exec.CommandContext(t.Context(), "git-lfs", "pointer", "--file", file).Output()).OK(t)
		p, release, err := store.Put(writes(content))
		assert.OK(t, err)
		release()
		assert.True(t, bytes.HasSuffix(out, p.Encode()), p.Encode(), "is no end of", out)
	}
	for _, c := range texts {
		cmd := exec.CommandContext(t.Context(), "git-lfs", "pointer", "--check", "--stdin")
		cmd.Stdin = strings.NewReader(c.text)
		// It takes more for pointers: ours is never more than its.
		theirs := cmd.Run() == nil
		assert.False(t, c.ok && !theirs, c.name, "git-lfs takes it for no pointer")
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range texts {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, ok := lfs.Parse(text)
		if !ok {
			return
		}
		again, ok := lfs.Parse(p.Encode())
		assert.True(t, ok && again == p && len(text) <= lfs.MaxPointer && p.Size >= 0, text, p, "and again", again, ok)
	})
}
