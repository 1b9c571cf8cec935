package main

import (
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
)

// The authors of the example of AIP-34 are whom --operator names and whom git knows;
// without --operator git's user is both, and has one part in the commit. A co-author whom
// nobody knows is told of.
func TestOperatorAndUser(t *testing.T) {
	tier.RequireFUSE(t)
	w, s := newWorld(t), gitserver.Start(t)
	site, repo := w.gitWorkspaceBy(s, "[ { ref: \"operator://current\" }, { ref: \"user://current\", role: co-author } ]",
		"mode: pull-push, commit: {on: turn-end}, push: {on: per-commit}")
	w.refused(exit.Manifest, "operator://current, the author of commits, has no name", site, "mnt")
	w.ok(site, "mnt", "--operator", "Bot <bot@acme.test>")
	assert.Contains(t, w.ok("status", "--json", "mnt"), "user://current is to be a co-author of commits, and has no name")
	w.ok("umount", "mnt")
	w.write("home/.gitconfig", "[user]\nname = Ann Bo\nemail = ann@acme.test\n")
	w.refused(exit.Usage, "--operator", site, "mnt", "--operator", "Bot")
	for _, tt := range []struct{ file, operator, want string }{
		{"one", "", "Ann Bo <ann@acme.test>\n"},
		{"two", "Bot <bot@acme.test>", "Bot <bot@acme.test>\nCo-authored-by: Ann Bo <ann@acme.test>\n"},
	} {
		args := []string{site, "mnt"}
		if tt.operator != "" {
			args = append(args, "--operator", tt.operator)
		}
		w.ok(args...)
		w.write("mnt/"+tt.file, "text\n")
		w.ok("event", "mnt", "turn-end")
		w.ok("umount", "mnt")
		assert.Contains(t, repo.Git("log", "-1", "--format=%an <%ae>%n%(trailers:key=Co-authored-by)", "main")+"\n", tt.want)
	}
}
