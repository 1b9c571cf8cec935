package git

import (
	"context"
	"errors"
	"testing"
)

// Who keeps secrets out of commits is told of each token before it is used, and
// of none that there is not.
func TestMintedTokensAreTold(t *testing.T) {
	var told []string
	var failure error
	mint := telling(func(context.Context) (map[string]string, error) {
		return map[string]string{"username": "x-access-token", "token": "minted"}, failure
	}, func(token string) { told = append(told, token) })
	if fields, err := mint(t.Context()); err != nil || fields["token"] != "minted" || len(told) != 1 || told[0] != "minted" {
		t.Errorf("got %v, %v; told %q", fields, err, told)
	}
	failure = errors.New("no token")
	if _, err := mint(t.Context()); !errors.Is(err, failure) || len(told) != 1 {
		t.Errorf("got %v; told %q", err, told)
	}
}
