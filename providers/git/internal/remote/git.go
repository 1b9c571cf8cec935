package remote

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/plain"
)

// overGit is our own, because go-git's takes no dialer, no context and no limits.
type overGit struct{ *plain.Server }

func (g overGit) upload(ctx context.Context) (transport.UploadPackSession, error) {
	up, err := g.Upload(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return up, nil
}

func (g overGit) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	down, err := g.Receive(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return down, nil
}

// large: a daemon has nothing but git, and another server's LFS is not guessed.
func (overGit) large(context.Context, string) (lfs.Endpoint, error) {
	return lfs.Endpoint{}, fmt.Errorf("%w: over git:// there is none", lfs.ErrNotOffered)
}
