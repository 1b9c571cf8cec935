// Package wording words the commits of a working copy as its manifest asks for: the message
// by sync.commit.message_template, the author and the co-authors by IDENTITY.
//
//	a, err := wording.New(wording.Options{Workspace: "@acme/ops", Template: text, Who: who, Now: time.Now, ...})
//	a.Summarize("quarterly figures")
//	words := a.Compose([]string{"plan.md"}, 1)
package wording

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// Options have the sources of an Author.
type Options struct {
	Workspace string
	Template  string                                           // "": that of the specification
	Identity  []mountspec.IdentityEntry                        // of the manifest
	Host      func(ref string) (mountspec.IdentityEntry, bool) // identities of the host configuration
	Who       func() (operator, turn, conversation string)     // of the present moment
	Now       func() time.Time
}

// An Author words commits. Its methods may be called concurrently.
type Author struct {
	o        Options
	template *mountspec.Template
	primary  mountspec.IdentityEntry
	others   []providers.Identity

	mu      sync.Mutex // guards summary
	summary string     // of the commit under way
}

// New makes an Author. Its error is one of the template.
func New(o Options) (*Author, error) {
	template, err := mountspec.ParseTemplate(cmp.Or(o.Template, mountspec.DefaultTemplate))
	if err != nil {
		return nil, err
	}
	primary, more, _ := mountspec.Authors(o.Identity)
	a := &Author{o: o, template: template, primary: primary}
	for _, p := range more {
		if p.Email != "" {
			a.others = append(a.others, identity(p))
		}
	}
	return a, nil
}

// Summarize gives the commits from now on a summary; "": none.
func (a *Author) Summarize(summary string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary = summary
}

// Compose words a commit of files, of which those given are the first.
func (a *Author) Compose(files []string, count int) commits.Words {
	a.mu.Lock()
	summary := a.summary
	a.mu.Unlock()
	v := mountspec.Vars{Summary: summary, Workspace: a.o.Workspace, Files: files, Count: count, Date: a.o.Now()}
	v.Operator, v.Turn, v.Conversation = a.o.Who()
	primary := a.primary
	if chosen, ok := a.o.Host(v.Operator); ok {
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
