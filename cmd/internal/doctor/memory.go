package doctor

import (
	"context"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Memory says where memory with the required capabilities will lie, or, in the words of the
// refusal, why nowhere.
func Memory(ctx context.Context, r *seam.Registry, s seam.Settings, required seam.Capabilities) Check {
	p := r.Preview(ctx, s, required)
	c := Check{Name: "memory", Level: OK, Says: p.Text, Do: p.Do}
	switch p.Grade {
	case providers.Less:
		c.Level = Note
	case providers.Bad:
		c.Level, c.Code = Problem, store.CodeOf(p.Refusal.Reason)
	}
	return c
}

// Promises says of each part of a tree whether it has the required capabilities.
func Promises(ctx context.Context, t *daemon.Tree, required seam.Capabilities) (out []Check) {
	for _, s := range t.Sources {
		if s.Unavailable != "" || required == (seam.Capabilities{}) {
			continue
		}
		name := "promises /" + s.At
		has, err := store.Promises(ctx, t, s)
		switch missing := has.Missing(required); {
		case err != nil:
			out = append(out, refused(name, store.Refusal(err)))
		case len(missing) > 0:
			out = append(out, problem(name, "require less, or keep it where that is promised", "%s does not promise %s", s.Name, strings.Join(missing, ", ")))
		default:
			out = append(out, ok(name, "%s promises %s", s.Name, required))
		}
	}
	return out
}
