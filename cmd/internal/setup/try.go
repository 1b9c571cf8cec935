package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// Try asks the store as with the future host configuration, of which open opens a host
// side. The error is one that a mount would fail with; notes are for a person.
func (plan *Plan) Try(ctx context.Context, open func(*host.Config) (daemon.Request, func(), error)) (notes []string, err error) {
	if !plan.remote {
		return nil, nil
	}
	stage, err := os.MkdirTemp("", "wsmount-init-")
	if err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("set TMPDIR to a directory that you may write")
	}
	defer os.RemoveAll(stage)
	for _, f := range plan.files {
		if err := os.WriteFile(filepath.Join(stage, filepath.Base(f.name)), f.text, 0o600); err != nil {
			return nil, exit.New(exit.Failed, "%w", err).Hint("set TMPDIR to a directory that you may write")
		}
	}
	req, closeRequest, err := open(plan.config.parsed)
	if err != nil {
		return nil, err
	}
	defer closeRequest()
	req.Workspace, req.Trust = stage, true
	tree, err := daemon.Resolve(ctx, req)
	if err != nil {
		return nil, plan.at(stage, err)
	}
	for _, s := range tree.Sources {
		found, err := tree.Examine(ctx, s)
		if err != nil {
			return nil, plan.at(stage, err)
		}
		for _, f := range found {
			switch f.Grade {
			case providers.Bad:
				return nil, exit.New(exit.Unreachable, "%s: %s: %s", s.Name, f.Name, f.Says).Hint("%s", f.Do)
			case providers.Less:
				notes = append(notes, f.Name+": "+f.Says)
			}
		}
	}
	return notes, ctx.Err()
}

// at replaces the stage in an error by the future place of the files.
func (plan *Plan) at(stage string, err error) error {
	var e *exit.Error
	if !errors.As(err, &e) {
		return err
	}
	real := host.Real(stage)
	there := strings.NewReplacer(real, filepath.Dir(plan.Manifest), stage, filepath.Dir(plan.Manifest)).Replace
	out := *e
	out.What, out.Advice, out.Details = there(e.What), there(e.Advice), nil
	switch { // the manifest is not written yet
	case e.Code == exit.Unresolvable:
		out.Advice = "create it, or give another --storage"
	case errors.Is(e, providers.ErrUnauthenticated) && len(secrets.All(e)) == 0:
		out.Advice = plan.asksBy
	}
	for _, d := range e.Details {
		out.Details = append(out.Details, there(d))
	}
	return &out
}
