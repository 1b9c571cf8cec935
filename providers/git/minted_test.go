package git

import (
	"context"
	"errors"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Who keeps secrets out of commits is told of each token before it is used, and
// of none that there is not.
func TestMintedTokensAreTold(t *testing.T) {
	var told []string
	var failure error
	mint := telling(func(context.Context) (map[string]string, error) {
		return map[string]string{"username": "x-access-token", "token": "minted"}, failure
	}, func(token string) { told = append(told, token) })
	fields := assert.Of(mint(t.Context())).OK(t)
	assert.True(t, fields["token"] == "minted" && len(told) == 1 && told[0] == "minted", fields, "told", told)
	failure = errors.New("no token")
	_, err := mint(t.Context())
	assert.True(t, errors.Is(err, failure) && len(told) == 1, "told", told, err)
}
