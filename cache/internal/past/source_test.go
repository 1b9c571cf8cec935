package past

import (
	"context"
	"io"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// revisions is a remote that has the revision "one" of itself.
type revisions struct{ *memory.Provider }

func (r revisions) Capabilities() providers.Capabilities {
	c := r.Provider.Capabilities()
	c.Abilities |= providers.AbilitySnapshot
	return c
}

func (r revisions) At(_ context.Context, one providers.Revision) (providers.Provider, error) {
	if one != "one" {
		return nil, providers.ErrNotExist
	}
	return r, nil
}

func (revisions) Close() error { return nil }

func (revisions) Find(context.Context, string) (providers.Found, error) {
	return providers.Found{}, providers.ErrNotExist
}

// Of a revision only the content is given that the history remembers there.
func TestPastOfOtherContent(t *testing.T) {
	remote := revisions{memory.New(memory.Options{})}
	at := providers.MustLocator("f")
	assert.OK(t, remote.Tamper(at, []byte("1")))
	info := assert.Of(remote.Stat(t.Context(), at)).OK(t)
	h := New(Options{Remote: remote, Context: t.Context()})
	version := history.VersionText(info.Version)
	for _, c := range []struct {
		p   history.Past
		err error
	}{
		{history.Past{Revision: "one", Path: "f", Version: version}, nil},
		{history.Past{Revision: "one", Path: "f", Version: "another"}, history.ErrNotKept},
		{history.Past{Revision: "one", Path: "gone", Version: version, Size: 1}, history.ErrNotKept},
		{history.Past{Revision: "gone", Path: "f", Version: version, Size: 1}, history.ErrNotKept},
	} {
		r, _, err := h.open(pastSource(&c.p, 1))
		assert.Is(t, err, c.err, c.p)
		if err == nil {
			data, err := io.ReadAll(r)
			assert.True(t, err == nil && string(data) == "1", data, err)
			assert.OK(t, r.Close())
		}
	}
}
