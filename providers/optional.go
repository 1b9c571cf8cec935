package providers

import (
	"context"
	"time"
)

// Meter counts the requests of a provider to its service. It is no ability, since it changes
// nothing and promises nothing: the opener of the provider gets it by type assertion, before
// the provider is wrapped.
type Meter interface {
	// Requests counts the requests since the provider was opened, by the service's own name of
	// the request ("PutObject").
	Requests() map[string]Count
}

// Cloner is a provider with a local clone of its service's data. Like Meter it is no ability,
// and is asserted before the provider is wrapped.
type Cloner interface {
	// Clone tells how much is local. It is cheap, and never waits for the service.
	Clone() CloneState
}

// Replicated is a provider whose tree another program replicates. Like Meter it is no ability,
// and is asserted before the provider is wrapped.
type Replicated interface {
	// ConflictCopies are the second versions that the replication has left of files that were
	// changed in two places (see IsConflictCopy), in their order.
	ConflictCopies(ctx context.Context) ([]Locator, error)
}

// Glancer is a provider that reads content to tell a version. Like Meter it is no ability, and
// is asserted before the provider is wrapped.
type Glancer interface {
	// Glance is Stat, and GlanceList is List, without fields that need the content: Version and
	// Digest are zero.
	Glance(ctx context.Context, l Locator) (Info, error)
	GlanceList(ctx context.Context, l Locator, opts ListOptions) (Page, error)
}

// Glancing is p for callers that need no versions: those that p must read content for are zero.
func Glancing(p Provider) Provider {
	if g, ok := p.(Glancer); ok {
		return glancing{p, g}
	}
	return p
}

type glancing struct {
	Provider
	g Glancer
}

func (g glancing) Stat(ctx context.Context, l Locator) (Info, error) { return g.g.Glance(ctx, l) }

func (g glancing) List(ctx context.Context, l Locator, opts ListOptions) (Page, error) {
	return g.g.GlanceList(ctx, l, opts)
}

// The kinds of a clone.
const (
	CloneFull     = "full"     // all content is local
	CloneBlobless = "blobless" // names are local; content is fetched when it is needed, or before
)

// CloneState is how much a clone has.
type CloneState struct {
	Kind     string
	Missing  int       // contents of the head that are not local yet; -1: not counted yet
	Fetching int       // contents being fetched
	Paused   string    // why nothing is fetched before it is needed; "": it is
	Error    string    // of the last request, if it failed
	Failing  time.Time // since when requests fail; zero: the last succeeded
}

// Count is the number of requests of one kind, and the bytes moved.
type Count struct {
	Requests       int64
	Sent, Received int64 // bytes of bodies
}
