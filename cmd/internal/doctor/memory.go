package doctor

import (
	"context"

	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Memory says where memory will lie that asks for what is required, or, in the words of the
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
