package daemon

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/commits"
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
func (a *author) compose(files []string, count int) commits.Words {
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
	c := commits.Words{Message: a.template.Expand(v), CoAuthors: slices.Clone(a.others)}
	if primary.Email != "" {
		c.Author = identity(primary)
	}
	for _, t := range []providers.Trailer{{Name: "Wsmount-Turn", Value: v.Turn}, {Name: "Wsmount-Conversation", Value: v.Conversation}} {
		if t.Value != "" {
			c.Trailers = append(c.Trailers, t)
		}
	}
	return c
}

// identity is an author for a provider.
func identity(e mountspec.IdentityEntry) providers.Identity {
	return providers.Identity{Name: e.Name, Email: e.Email}
}
