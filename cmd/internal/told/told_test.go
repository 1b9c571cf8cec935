package told

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// The thing and the cause are said, once, and not what the error came through.
func TestStore(t *testing.T) {
	dial := fmt.Errorf("operation error S3, https response error: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	root := providers.Locator{}
	for _, c := range []struct {
		err  error
		want string
	}{
		{providers.Fail("s3", providers.MethodStat, root, dial, providers.ErrUnavailable), "https://x: storage is not available: dial tcp: connection refused"},
		{&providers.Error{Provider: "s3", Kind: providers.ErrUnauthenticated, Code: "NoKey", Err: errors.New("no such key")}, "https://x: credentials are missing, wrong or expired (NoKey): no such key"},
		{&providers.Error{Provider: "s3", Kind: providers.ErrQuota}, "https://x: no room left in storage"},
		{errors.New("no provider said it"), "no provider said it"},
	} {
		assert.Equal(t, Store("https://x", c.err), c.want)
	}
}

func TestSecrets(t *testing.T) {
	a, b := &secrets.Error{Name: "A", Reason: "not set", Hint: "set A"}, &secrets.Error{Name: "B", Reason: "not granted", Hint: "grant B"}
	for _, c := range []struct {
		err  error
		want string // as it is printed
	}{
		{a, "wsmount: @me/x: storage_auth_unresolvable: secret A: not set\nhint: set A\n"},
		{errors.Join(a, fmt.Errorf("once more: %w", a)), "wsmount: @me/x: storage_auth_unresolvable: secret A: not set\nhint: set A\n"},
		{errors.Join(a, errors.Join(b)), "wsmount: @me/x: its credentials are not available\n  secret A: not set; set A\n  secret B: not granted; grant B\n" +
			"hint: `wsmount help config` says of secrets and allow_env how each is granted\n"},
	} {
		for _, format := range []string{"@me/x: %w", "@me/x: " + unavailable + ": %w"} {
			e := exit.New(exit.Denied, format, c.err)
			assert.True(t, Secrets(e, c.err))
			assert.Equal(t, e.Text(), c.want)
		}
	}
	e := exit.New(exit.Denied, "no").Hint("ask")
	assert.False(t, Secrets(e, errors.New("no")))
	assert.Equal(t, e.Text(), "wsmount: no\nhint: ask\n")
}
