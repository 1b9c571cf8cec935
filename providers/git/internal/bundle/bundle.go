// Package bundle writes the header of a bundle (gitformat-bundle), before its pack: from a bundle
// git fetches commits into a clone that has their parents.
package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Branch is a branch with the commits of it that the bundle has, the last first.
type Branch struct {
	Ref     string
	Commits []plumbing.Hash
}

// Head is the head of a bundle of some branches, with its commits, each after those before it. The
// error is that of parents.
func Head(branches []Branch, parents func(plumbing.Hash) ([]plumbing.Hash, error)) (head string, commits []plumbing.Hash, err error) {
	in := map[plumbing.Hash]bool{}
	for _, b := range branches {
		for _, c := range slices.Backward(b.Commits) {
			if !in[c] {
				in[c], commits = true, append(commits, c)
			}
		}
	}
	var text strings.Builder
	text.WriteString("# v2 git bundle\n")
	for _, c := range commits {
		before, err := parents(c)
		if err != nil {
			return "", nil, err
		}
		for _, parent := range before {
			if !in[parent] { // the clone must have it
				in[parent] = true
				fmt.Fprintf(&text, "-%s\n", parent)
			}
		}
	}
	for _, b := range branches {
		fmt.Fprintf(&text, "%s %s\n", b.Commits[0], b.Ref)
	}
	text.WriteString("\n")
	return text.String(), commits, nil
}
