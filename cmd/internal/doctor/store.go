package doctor

import (
	"context"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/providers"
)

// Stores asks the services that the parts of a tree lie at.
func Stores(ctx context.Context, t *daemon.Tree) []Check {
	var out []Check
	for _, s := range t.Sources {
		if !s.IsRemote() {
			continue
		}
		name := "store /" + s.At
		findings, err := t.Examine(ctx, s)
		if err != nil {
			out = append(out, everything(name, err)...)
		}
		for _, f := range findings {
			out = append(out, found(name, f))
		}
	}
	return out
}

func found(name string, f providers.Finding) Check {
	c := Check{Name: name, Level: OK, Says: f.Name + ": " + f.Says, Do: f.Do}
	switch f.Grade {
	case providers.Less:
		c.Level = Note
	case providers.Bad:
		c.Level, c.Code = Problem, exit.Unreachable
	}
	return c
}
