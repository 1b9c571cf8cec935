package providers_test

import (
	"testing"

	"github.com/wsmount/wsmount/providers"
)

func TestIsDotGit(t *testing.T) {
	for _, name := range []string{".git", ".GIT", ".Git ", ".git.", ".git...", "git~1", "GIT~1", ".g\u200cit", ".git:x", `a\.git`, ".git\\config"} {
		if !providers.IsDotGit(name) {
			t.Errorf("%q passes", name)
		}
	}
	for _, name := range []string{".gitignore", "git", ".gi", "a.git", "git~2", ".github", "..git", ".gitx", ` .git`} {
		if providers.IsDotGit(name) {
			t.Errorf("%q is refused", name)
		}
	}
}
