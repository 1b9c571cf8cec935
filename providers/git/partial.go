package git

import (
	"context"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/partial"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// How a clone is made: Options.Clone.
const (
	CloneAuto     = ""         // without blobs, if the server can; then all come, unless that is very much
	CloneBlobless = "blobless" // without blobs, if the server can; they come when they are needed
	CloneFull     = "full"     // with all blobs; in a clone without, they come as fast as they can
)

func newPartial(r *repository) *partial.Blobs {
	return partial.New(partial.Repository{Dir: r.dir, Objects: r.objects, Commit: r.commit, State: r.partialState, SetState: r.setPartial,
		Heads: func() ([]id, error) { return r.tips("refs/heads/", "refs/remotes/origin/", "refs/wsmount/left/") }})
}

// blobsOf is the server of a clone, as the source of missing blobs.
func (o Options) blobsOf(asked *remote.Remote, r *repository) partial.Server {
	return partial.Server{Ask: asked.Blobs, OnDemand: o.Clone == CloneBlobless, Bounded: o.Clone == CloneAuto, Refused: o.Refused, Now: o.Now,
		Turn: func(ctx context.Context) func(bool) { return r.turn(ctx, o.Shared) }}
}

// Clone implements providers.Cloner.
func (p *Provider) Clone() providers.CloneState { return p.repo.partial.Clone() }
