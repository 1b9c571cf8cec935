package providers

import (
	"context"
	"time"
)

// Meter tells what a provider asked of its service. It is no ability, since it
// changes nothing and promises nothing: whoever opened the provider asks it by
// type assertion, before anything is put around it.
type Meter interface {
	// Requests are what was sent since the provider was opened, by the
	// service's own name of the request ("PutObject").
	Requests() map[string]Count
}

// Cloner is a provider that clones what its service has. As Meter it is no ability,
// and is asked for before anything is put around it.
type Cloner interface {
	// Clone tells how much is here. It is cheap, and never waits for the service.
	Clone() CloneState
}

// Replicated is a provider whose tree something outside replicates. As Meter it is no
// ability, and is asked for before anything is put around it.
type Replicated interface {
	// ConflictCopies are what the replication has left of files that were changed in two
	// places (see IsConflictCopy), in their order.
	ConflictCopies(ctx context.Context) ([]Locator, error)
}

// Glancer is a provider that reads content to tell a version. As Meter it is no ability, and
// is asked for before anything is put around it.
type Glancer interface {
	// Glance is Stat, and GlanceList is List, without what only the content tells: Version
	// and Digest are zero.
	Glance(ctx context.Context, l Locator) (Info, error)
	GlanceList(ctx context.Context, l Locator, opts ListOptions) (Page, error)
}

// Glancing is p for who needs no versions: where p has to read for them, they are not told.
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
	CloneFull     = "full"     // all content is here
	CloneBlobless = "blobless" // names are; content comes when it is needed, or before
)

// CloneState is how much a clone has.
type CloneState struct {
	Kind     string
	Missing  int       // contents of the head that are not here yet; -1: they were not counted yet
	Fetching int       // contents that are on their way
	Paused   string    // why nothing comes before it is needed; "": it does
	Error    string    // of the last request, if that failed
	Failing  time.Time // since when requests fail; zero: the last did not
}

// Count is how often something was asked, and the bytes that this moved.
type Count struct {
	Requests       int64
	Sent, Received int64 // bytes of bodies
}
