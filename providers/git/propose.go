package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
)

// Pulls is the API of a server that knows pull requests.
type Pulls interface {
	// Ensure finds the open pull request from one branch to another or opens
	// it, and gives its URL; "" when there is nothing between the two.
	Ensure(ctx context.Context, head, base, title, text string) (url string, err error)
}

var errNoPulls = errors.New("the server's API is not known here")

// Propose implements providers.Brancher.
func (p *Provider) Propose(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
	return do(ctx, p, providers.MethodPropose, providers.Locator{}, func() (string, error) {
		switch {
		case p.o.Pulls == nil:
			return "", errNoPulls
		case branch == p.origin.branch || !refs.ValidBranch(branch):
			return "", fmt.Errorf("a pull request from branch %q to %q: %w", branch, p.origin.branch, providers.ErrInvalid)
		}
		return pusher{p.origin}.propose(ctx, branch, pr)
	})
}

func (p pusher) propose(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
	theirs, err := p.repo.refs.Get(originRef(branch))
	if err != nil || theirs.IsZero() {
		return "", err
	}
	tracked, err := p.tracked()
	if err != nil {
		return "", err
	}
	commits, err := p.repo.newCommits(theirs, []id{tracked})
	if err != nil || len(commits) == 0 {
		return "", firstError(err, p.notes.Change(branch, func(n *notes.Note) { n.Wanted = time.Time{} }))
	}
	if err := p.notes.Change(branch, func(n *notes.Note) { n.Want(p.o.Now()) }); err != nil {
		return "", err
	}
	if pr.Title == "" {
		if pr, err = p.describeBranch(branch, commits); err != nil {
			return "", err
		}
	}
	url, err := p.o.Pulls.Ensure(ctx, branch, p.branch, pr.Title, pr.Text)
	if err != nil {
		return "", err
	}
	return url, p.notes.Change(branch, func(n *notes.Note) {
		n.Wanted = time.Time{}
		n.URL = url
	})
}

const (
	titleMax = 120   // bytes
	textMax  = 60000 // bytes: GitHub takes 65536 characters
)

// describeBranch makes a pull request's title and text from the messages of its
// commits, given the last first: the title is the first line of the earliest.
func (p pusher) describeBranch(branch string, commits []id) (pr providers.PullRequest, err error) {
	var text strings.Builder
	for i, c := range slices.Backward(commits) {
		commit, err := p.repo.commit(c)
		if err != nil {
			return pr, err
		}
		message := strings.TrimSpace(strings.ToValidUTF8(commit.Message, "?"))
		first, rest, _ := strings.Cut(message, "\n")
		if pr.Title == "" {
			pr.Title = clip(strings.TrimSpace(first), titleMax)
		}
		switch rest = strings.TrimSpace(rest); {
		case len(commits) == 1:
			text.WriteString(rest)
		case rest == "":
			fmt.Fprintf(&text, "- %s\n", first)
		default:
			fmt.Fprintf(&text, "- %s\n\n  %s\n\n", first, strings.ReplaceAll(rest, "\n", "\n  "))
		}
		if i > 0 && text.Len() > textMax {
			fmt.Fprintf(&text, "\nand %d more", i)
			break
		}
	}
	if pr.Title == "" {
		pr.Title = branch
	}
	pr.Text = clip(text.String(), textMax+100)
	return pr, nil
}

// clip is the beginning of a text, in whole characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}
