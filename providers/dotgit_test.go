package providers_test

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestIsDotGit(t *testing.T) {
	for _, name := range []string{".git", ".GIT", ".Git ", ".git.", ".git...", "git~1", "GIT~1", ".g\u200cit", ".git:x", `a\.git`, ".git\\config"} {
		assert.True(t, providers.IsDotGit(name), name, "passes")
	}
	for _, name := range []string{".gitignore", "git", ".gi", "a.git", "git~2", ".github", "..git", ".gitx", ` .git`} {
		assert.False(t, providers.IsDotGit(name), name, "is refused")
	}
}
