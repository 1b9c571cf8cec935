package arch

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// formerNames are words that named files of a working copy and that a stranger could
// not guess, with what is said instead. See the glossary in cache/doc.go.
var formerNames = map[string]string{
	"shadow": "tombstone", "reborn": "resurrect", "torn": "partial conflict", "claim": "orphan conflict",
	"vague": "unknown attributes", "sift": "verify implied directories", "absorb": "flush metadata", "intent": "dirty intent",
	"leftover": "offline report", "missed": "unreported conflicts", "came": "own late write", "displaced": "stale dentry",
	"outlive": "hydrate before delete", "part": "deferred unlink", "underway": "in flight", "earlier": "previous heads",
	"flight": "shared listing", "siblings": "prefetch", "frozen": "snapshot", "settle": "resolve outcome", "closers": "waiters",
	"due": "commit window", "lost": "revalidate", "refused": "read breaker", "halt": "mass delete", "harvest": "listing",
	"step": "operation", "task": "job", "level": "synced revision", "uncommit": "soft reset",
}

// formerPhrases are words of messages that said "here" and "there" where "local" and
// "remote" are meant, and "nobody" where the thing is meant that does not do or have
// something.
var formerPhrases = regexp.MustCompile(`changed here|changed there|deleted here|deleted there|here and there|it takes long|it is so already|again and again|` +
	`\bnobody\b[^:]|\bto be had\b`) // the login nobody stands before a colon

// TestWords keeps file names and messages in the words that people who know git and
// file systems use.
func TestWords(t *testing.T) {
	for dir, files := range sources(t) {
		for _, f := range files {
			if dir == "cache" {
				first, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f.name), ".go"), "_")
				better, banned := formerNames[first]
				assert.False(t, banned, f.name, "name it by", better)
			}
			ast.Inspect(f.file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && formerPhrases.MatchString(text.Value) {
					t.Errorf("%s: a message says %s: say local and remote, and what does not do or have something", f.name, text.Value)
				}
				return true
			})
		}
	}
}
