package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
)

// An author words the commits of a working copy as its manifest asks for.
type author struct {
	workspace string
	template  *mountspec.Template
	primary   mountspec.IdentityEntry
	others    []providers.Identity
	host      func(ref string) (mountspec.IdentityEntry, bool) // identities of the host configuration
	actor     *actor
	clock     func() time.Time

	mu      sync.Mutex // guards summary
	summary string     // of the commit under way
}

func newAuthor(r *host.Resolved, a *actor, o syncerOptions) (*author, error) {
	template, err := mountspec.ParseTemplate(cmp.Or(r.Storage.Sync.Commit.Template, mountspec.DefaultTemplate))
	if err != nil {
		return nil, err
	}
	primary, more, _ := mountspec.Authors(r.Identity)
	out := &author{workspace: r.Address.String(), template: template, primary: primary, host: o.identity, actor: a, clock: o.now}
	for _, p := range more {
		if p.Email != "" {
			out.others = append(out.others, identity(p))
		}
	}
	return out, nil
}

// summarize gives the commits from now on a summary; "": none.
func (a *author) summarize(summary string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary = summary
}

// compose words a commit of files, of which those given are the first.
func (a *author) compose(files []string, count int) composed {
	a.mu.Lock()
	summary := a.summary
	a.mu.Unlock()
	who := a.actor.now()
	v := mountspec.Vars{Operator: who.operator, Summary: summary, Workspace: a.workspace, Turn: who.turn, Conversation: who.conversation,
		Files: files, Count: count, Date: a.clock()}
	primary := a.primary
	if chosen, ok := a.host(v.Operator); ok {
		primary, v.Operator = chosen, chosen.Name
	}
	v.Operator = cmp.Or(v.Operator, primary.Name)
	c := composed{message: a.template.Expand(v), others: slices.Clone(a.others)}
	if primary.Email != "" {
		c.author = identity(primary)
	}
	for _, t := range []providers.Trailer{{Name: "Wsmount-Turn", Value: v.Turn}, {Name: "Wsmount-Conversation", Value: v.Conversation}} {
		if t.Value != "" {
			c.trailers = append(c.trailers, t)
		}
	}
	return c
}

// A message tool gives every commit the message and the authors that the manifest
// asks for, those too that the working copy makes by itself: only here the
// files of a commit are known. A Commit with a message from a person keeps it.
// It tells of each commit and push that has happened.
type messageTool struct {
	providers.Everything

	mu        sync.Mutex // guards what follows
	name      func(files []string, count int) composed
	committed func(providers.Revision)
	pushed    func(providers.PushResult)
}

// composed is what the manifest asks for.
type composed struct {
	message  string
	author   providers.Identity
	others   []providers.Identity
	trailers []providers.Trailer
}

// spoken marks a message that a person or an event has given.
const spoken = "\x00"

func newMessageTool(p providers.Provider, counts *callCounts) *messageTool {
	return &messageTool{Everything: providers.Wrap(p, providers.WrapOptions{Around: counts.around})}
}

// shownFiles bounds the names that a message can tell.
const shownFiles = 16

func (n *messageTool) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	n.mu.Lock()
	name, told := n.name, n.committed
	n.mu.Unlock()
	message, given := strings.CutPrefix(set.Message, spoken)
	if name != nil {
		files := pathsOf(set)
		c := name(files[:min(len(files), shownFiles)], len(files))
		if !given {
			message = c.message
		}
		if set.Author == (providers.Identity{}) {
			set.Author, set.CoAuthors = c.author, append(c.others, set.CoAuthors...)
		}
		set.Trailers = append(c.trailers, set.Trailers...)
	}
	set.Message = message
	result, err := n.Everything.Commit(ctx, set)
	if err == nil && result.Committed && told != nil {
		told(result.Revision)
	}
	return result, err
}

func (n *messageTool) Push(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
	result, err := n.Everything.Push(ctx, o)
	n.mu.Lock()
	told := n.pushed
	n.mu.Unlock()
	if err == nil && result.Pushed && told != nil {
		told(result)
	}
	return result, err
}

func (n *messageTool) bind(name func([]string, int) composed, committed func(providers.Revision), pushed func(providers.PushResult)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name, n.committed, n.pushed = name, committed, pushed
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

// identity is an author for a provider.
func identity(e mountspec.IdentityEntry) providers.Identity {
	return providers.Identity{Name: e.Name, Email: e.Email}
}
