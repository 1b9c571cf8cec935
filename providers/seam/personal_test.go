package seam_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// The operator's space is written to when somebody named asked for it, and whoever decides
// permits it; and by no other verb.
func TestPersonalWrite(t *testing.T) {
	space := seam.New(memory.New(memory.Options{}))
	var asked []string
	refused := errors.New("not granted")
	p, err := seam.NewPersonal(space, at(t, "Agent"), func(_ context.Context, a seam.Authorization, l seam.Locator) error {
		asked = append(asked, a.By+" "+l.Key())
		if a.By != "ann" {
			return refused
		}
		return nil
	})
	assert.OK(t, err)
	ann, l := seam.Authorization{By: "ann"}, at(t, "Diary/today.md")
	assert.Of(p.PersonalWrite(t.Context(), ann, l, "one")).Equal(t, l)
	assert.Is(t, assert.ErrOf(p.PersonalWriteIf(t.Context(), ann, l, seam.None, "two")), providers.ErrConflict)
	assert.OK(t, assert.ErrOf(p.PersonalWriteIf(t.Context(), ann, l, seam.ETagOf("one"), "two")))
	assert.Slice(t, asked, []string{"ann Diary/today.md", "ann Diary/today.md", "ann Diary/today.md"})

	asked = nil
	for key, want := range map[string]error{"Agent": providers.ErrInvalid, "Agent/projects/x.md": providers.ErrInvalid} {
		assert.Is(t, assert.ErrOf(p.PersonalWrite(t.Context(), ann, at(t, key), "x")), want, key)
	}
	assert.Is(t, assert.ErrOf(p.PersonalWrite(t.Context(), seam.Authorization{}, l, "x")), providers.ErrPermission, "nobody")
	assert.Equal(t, len(asked), 0, "whether it is permitted was asked")
	assert.Is(t, assert.ErrOf(p.PersonalWrite(t.Context(), seam.Authorization{By: "bob"}, l, "x")), refused)
	assert.OK(t, assert.ErrOf(p.PersonalWrite(t.Context(), ann, at(t, "Agents.md"), "beside it")))
	assert.Of(space.Read(t.Context(), l)).Equal(t, "two")

	_, is := any(p).(seam.Backend)
	assert.False(t, is, "it has the verbs of a backend")
	assert.Is(t, assert.ErrOf(seam.NewPersonal(space, seam.Locator{}, nil)), providers.ErrInvalid, "memory is the whole space")
	assert.OK(t, p.Close())
}
