// Package commits has every commit of a store checked, worded and reported, whatever makes
// it: the working copy makes some by itself, and only a provider call has the files of a commit.
//
//	tool := commits.New(p, providers.WrapOptions{})
//	tool.Bind(commits.Bound{Words: author.compose, Begin: policy.begin, Committed: report.commitTaken})
//	v, err := cache.Open(ctx, tool, options)
//
// No commit is made that Begin refuses. One that Begin let through counts until it is known
// that it was not made.
package commits

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// A Tool is a store whose commits pass through it.
type Tool struct {
	providers.Everything

	mu    sync.Mutex // guards the fields below
	bound Bound
	begun map[string]func() error // by operation: takes a commit out of the count
}

// Bound has the callbacks of a Tool. The zero value has none.
type Bound struct {
	Words     func(files []string, count int) Words // of a commit of files, of which those given are the first
	Begin     func() (undo func() error, err error) // refuses a commit, or counts it
	Committed func(providers.Revision)              // called with each commit that was made
	Pushed    func(providers.PushResult)            // called with each push
	Log       *slog.Logger                          // for errors of undo; nil: silent
}

// Words describe a commit.
type Words struct {
	Message   string
	Author    providers.Identity
	CoAuthors []providers.Identity
	Trailers  []providers.Trailer
}

// Spoken marks a message that a person or an event has given: a commit keeps it.
const Spoken = "\x00"

// New is a store of which o sees the calls.
func New(p providers.Provider, o providers.WrapOptions) *Tool {
	return &Tool{Everything: providers.Wrap(p, o), begun: map[string]func() error{}}
}

// Bind sets the callbacks from now on.
func (n *Tool) Bind(to Bound) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bound = to
}

func (n *Tool) to() Bound {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bound
}

// shownFiles bounds the names that a message can show.
const shownFiles = 16

// Commit implements providers.Committer.
func (n *Tool) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	to := n.to()
	if err := n.begin(to, set); err != nil {
		return providers.CommitResult{}, err
	}
	message, given := strings.CutPrefix(set.Message, Spoken)
	if to.Words != nil {
		files := pathsOf(set)
		c := to.Words(files[:min(len(files), shownFiles)], len(files))
		if !given {
			message = c.Message
		}
		if set.Author == (providers.Identity{}) {
			set.Author, set.CoAuthors = c.Author, append(c.CoAuthors, set.CoAuthors...)
		}
		set.Trailers = append(c.Trailers, set.Trailers...)
	}
	set.Message = message
	result, err := n.Everything.Commit(ctx, set)
	made := err == nil && result.Committed
	if made || !providers.MayHaveHappened(err) {
		n.end(to, set.Op, made)
	}
	if made && to.Committed != nil {
		to.Committed(result.Revision)
	}
	return result, err
}

// begin asks whether a commit may be made. A set without changes only asks for the outcome of
// an operation, which was asked for when it began.
func (n *Tool) begin(to Bound, set providers.ChangeSet) error {
	if to.Begin == nil || len(set.Changes) == 0 {
		return nil
	}
	undo, err := to.Begin()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun[set.Op] = undo
	return nil
}

// end has an operation count no more if it has made no commit.
func (n *Tool) end(to Bound, op string, made bool) {
	n.mu.Lock()
	undo := n.begun[op]
	delete(n.begun, op)
	n.mu.Unlock()
	if made || undo == nil {
		return
	}
	if err := undo(); err != nil && to.Log != nil {
		to.Log.Error("a commit that was not made still counts", "err", err)
	}
}

// Push implements providers.Pusher.
func (n *Tool) Push(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
	result, err := n.Everything.Push(ctx, o)
	if to := n.to(); err == nil && result.Pushed && to.Pushed != nil {
		to.Pushed(result)
	}
	return result, err
}

// pathsOf are the paths that a set is about, each once.
func pathsOf(set providers.ChangeSet) []string {
	var out []string
	for _, c := range set.Changes {
		if !c.Dir {
			out = append(out, c.Locator.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
