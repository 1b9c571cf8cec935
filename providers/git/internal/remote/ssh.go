package remote

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/wsmount/wsmount/providers/git/internal/shell"
)

// overSSH is our own, because go-git's takes no dialer and no limits, and reads
// ~/.ssh/config and the proxy of the environment.
type overSSH struct {
	*shell.Server
	told *told
}

func (s overSSH) upload(ctx context.Context) (transport.UploadPackSession, error) {
	up, err := s.Upload(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return up, nil
}

func (s overSSH) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	down, err := s.Receive(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return down, nil
}
