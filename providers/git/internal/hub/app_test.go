package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/hub"
)

// A token is minted for one repository, used until shortly before it ends, and
// then another; the key is asked for each time, and only then.
func TestAppMints(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	api := s.StartAPI(t)
	app := api.StartApp()
	now, revealed := time.Now(), 0
	a := &hub.App{URL: api.URL, ID: app.ID, Installation: app.Installation, Repo: "site", Now: func() time.Time { return now },
		Key: func(context.Context) (map[string]string, error) {
			revealed++
			return map[string]string{"value": app.Key}, nil
		}}
	first := mint(t, a)
	now = now.Add(54 * time.Minute)
	again := mint(t, a)
	assert.True(t, again == first && revealed == 1, "another token after 54 minutes, the key was asked for", revealed, "times")
	now = now.Add(2 * time.Minute)
	again = mint(t, a)
	assert.True(t, again != first && revealed == 2, "the same token 4 minutes before its end, the key was asked for", revealed, "times")
	now = time.Now()
	before := mint(t, a)
	a.Forget()
	again = mint(t, a)
	assert.True(t, again != before, "the same token after it was refused")
	tokens, asked := app.Minted()
	assert.True(t, len(tokens) == 3 && asked[0] == "site", "minted", len(tokens), "tokens for", asked)
}

func mint(t *testing.T, a *hub.App) string {
	t.Helper()
	return assert.Of(a.Credentials(t.Context())).OK(t)["token"]
}

// What keeps a token from being minted is told without the key.
func TestAppIsRefused(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	api := s.StartAPI(t)
	app, other := api.StartApp(), gitserver.Start(t).StartAPI(t).StartApp()
	for _, c := range []struct {
		name         string
		installation int64
		key, url     string
		kind         error
	}{
		{"another installation", 43, app.Key, api.URL, providers.ErrUnauthenticated},
		{"another key", app.Installation, other.Key, api.URL, providers.ErrUnauthenticated},
		{"no key", app.Installation, "SECRET WORD", api.URL, providers.ErrUnauthenticated},
		{"no server", app.Installation, app.Key, "http://127.0.0.1:1", providers.ErrUnavailable},
	} {
		a := &hub.App{URL: c.url, ID: app.ID, Installation: c.installation, Repo: "site", Key: with(map[string]string{"private_key": c.key})}
		_, err := a.Credentials(t.Context())
		assert.True(t, errors.Is(err, c.kind) && !strings.Contains(err.Error(), "SECRET") && !strings.Contains(err.Error(), "PRIVATE"), c.name, err, "want", c.kind)
	}
}
