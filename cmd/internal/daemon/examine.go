package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// examineTime is how long the store of one source may take to be looked at.
const examineTime = time.Minute

// IsRemote reports whether a source lies at a service of a network.
func (s Source) IsRemote() bool { return s.resolved != nil && len(s.resolved.Grants.Endpoints) > 0 }

// Examine opens the store of a source as a mount does, and asks it about itself.
// The error is the one that the mount would refuse with.
func (t *Tree) Examine(ctx context.Context, s Source) ([]providers.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	opening, done := context.WithTimeout(ctx, answerTime)
	p, _, err := openProvider(opening, s.resolved, Env{Host: t.host, Log: slog.New(slog.DiscardHandler), Now: time.Now, ReadOnly: s.ReadOnly != ""})
	done()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	e, ok := p.(providers.Examiner)
	if !ok {
		return nil, nil
	}
	return e.Examine(ctx), nil
}
