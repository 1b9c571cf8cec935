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

// commentPhrases are of comments. The subject of a sentence is the thing: a request, a caller, a
// handle, a reader.
var commentPhrases = regexp.MustCompile(`(?i)changed (t?here)\b|deleted (t?here)\b|\bhere and there\b|\bit is so already\b|\b(nobody|somebody|whoever)\b`)

// formerWords are those of formerNames that mean nothing else in the comments of a working copy.
var formerWords = regexp.MustCompile(`\b(shadows?|reborn|vague|sift(s|ed)?|absorb(s|ed)?|displaced|underway|harvest(s|ed)?|parcels?|uncommits?)\b`)

// plain are the packages whose comments are held to commentPhrases, and those below.
var plain = []string{"cache", "cmd", "fs", "mountspec", "providers"}

// TestWords keeps file names, messages and comments in the words that people who know git and
// file systems use.
func TestWords(t *testing.T) {
	for dir, files := range sources(t) {
		for _, f := range files {
			if under(dir, "cache") {
				words := strings.Split(strings.TrimSuffix(filepath.Base(f.name), ".go"), "_")
				if dir != "cache" { // where the first is that of a package
					words = words[:1]
				}
				for _, word := range words {
					better, banned := formerNames[word]
					assert.False(t, banned, f.name, "name it by", better)
				}
			}
			for _, c := range f.file.Comments {
				text := c.Text()
				assert.False(t, underAny(dir, plain) && commentPhrases.MatchString(text), f.name, "a comment says", commentPhrases.FindString(text), "in:", text)
				assert.False(t, under(dir, "cache") && formerWords.MatchString(text), f.name, "a word that the glossary of cache/doc.go has another for:", text)
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
