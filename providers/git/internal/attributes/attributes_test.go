package attributes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
)

// What attributes say of merging is what git reads in them.
func TestMergeDriverAsGit(t *testing.T) {
	tier.RequireTools(t, "git")
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
		return string(assert.Of(cmd.Output()).OK(t))
	}
	git("init", "-q")
	paths := []string{"a.log", "d/a.log", "d/e/a.log", "d/log", "x y.log", "CHANGES", "d/CHANGES", "log/a", "*.log"}
	for _, text := range []string{
		"*.log merge=union", "/*.log merge=union", "d/*.log merge=union", "d/** merge=union", "**/a.log merge=union", "d/**/a.log merge=union",
		"*.log merge=union\na.log -merge", "*.log merge=union\n/a.log !merge", "*.log text merge=union eol=lf # no", "# *.log merge=union",
		"\"x y.log\" merge=union", "log merge=union", "log/ merge=union", "/ merge=union", "CHANGES merge=ours\nd/CHANGES merge=union",
		"  *.log   merge=union  \r\n", "*.log binary", "*.log merge", "*.log", "", "d merge=union", "[ab].log merge=union", "a.lo? merge=union",
		"[attr]lines merge=union\n*.log lines", "*.log lines\n[attr]lines merge=union", "[attr]lines merge=union\n*.log lines -merge",
		"[attr]lines merge=union\n*.log -lines", "[attr]a b\n[attr]b merge=union\n*.log a", "[attr]binary merge=union\n*.log binary",
		"[attr]a a\n*.log a", "*.log merge=union !merge", "*.log merge=union\n*.log !merge",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(dir, attributes.Name), []byte(text), 0o600))
		out := git(append([]string{"check-attr", "-z", "merge", "--"}, paths...)...)
		says := strings.Split(out, "\x00") // path, attribute and value of each
		assert.Must(t, len(says) == 3*len(paths)+1, out)
		for i, path := range paths {
			want := says[3*i+2] == "union"
			lines, _ := attributes.Parse(text, nil, true)
			driver, _ := attributes.Value(lines, strings.Split(path, "/"), "merge")
			assert.Equal(t, driver == "union", want, text, "of", path, "as git does")
		}
	}
}
