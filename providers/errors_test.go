package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Names and errors are unique, each row finds itself, and every row says what it means.
func TestErrorKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range providers.ErrorKinds {
		assert.True(t, !names[k.Name] && k.Name != "" && k.Meaning != "", "row", k)
		names[k.Name] = true
		wrapped := fmt.Errorf("somewhere: %w", &providers.Error{Op: "stat", Kind: k.Err, Err: io.EOF})
		assert.Equal(t, providers.KindOf(wrapped).Name, k.Name, "is found as")
		assert.Equal(t, providers.MayHaveHappened(wrapped), strings.Contains(k.Meaning, "may have happened"), k.Name)
		got, ok := providers.KindNamed(k.Name)
		assert.True(t, ok && got.Err == k.Err, k.Name, "by name", got, ok)
	}
	k := providers.KindOf(io.EOF)
	assert.True(t, k.Name == "unknown" && k.Err == nil, "a foreign error is", k)
	_, ok := providers.KindNamed("unknown")
	assert.False(t, ok, "an unknown name is found")
}

// TestRetryAdvice pins what decides about data: a refused change is not
// repeated blindly, and only what may pass by itself is waited for.
func TestRetryAdvice(t *testing.T) {
	for err, want := range map[error]providers.Retry{
		providers.ErrUnavailable: providers.RetryLater, providers.ErrQuota: providers.RetryLater,
		providers.ErrConflict: providers.RetryRefresh, providers.ErrExist: providers.RetryRefresh,
		providers.ErrUnauthenticated: providers.RetryLogin, providers.ErrReadOnly: providers.RetryNever,
		providers.ErrPermission: providers.RetryNever, providers.ErrBody: providers.RetryNever,
		context.Canceled: providers.RetryNever,
	} {
		assert.Equal(t, providers.KindOf(err).Retry, want, err)
	}
}

func TestErrorText(t *testing.T) {
	l := providers.MustLocator("a/b c")
	refused := fmt.Errorf("request send failed, %w", &url.Error{Op: "Put", URL: "http://me:hush@store.example/b", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: syscall.ECONNREFUSED}})
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", &providers.Error{Op: "stat", Locator: l, Kind: providers.ErrNotExist}, `"a/b c": file does not exist`},
		{"whole", &providers.Error{Provider: "s3", Op: "write", Locator: l, Kind: providers.ErrConflict, Code: "412", Err: io.EOF},
			`"a/b c": changed by someone else (412): EOF`},
		{"cause is the kind", &providers.Error{Op: "list", Kind: io.EOF, Err: io.EOF}, "EOF"},
		{"cause says the kind", &providers.Error{Kind: providers.ErrNotExist, Err: fmt.Errorf("no branch b: %w", fs.ErrNotExist)}, "no branch b: file does not exist"},
		{"the store is not there", &providers.Error{Kind: providers.ErrNotExist, Code: "404", Err: providers.Kinded(errors.New("no repository"), fs.ErrNotExist)}, "no repository (404)"},
		{"no cause is said", &providers.Error{Kind: providers.ErrNotExist, Code: "404", Err: errors.New(" ")}, "file does not exist (404)"},
		{"cause without words", &providers.Error{Kind: providers.ErrUnauthenticated, Err: errors.New("authentication required: ")},
			"credentials are missing, wrong or expired: authentication required"},
		{"store", &providers.Error{Op: "write", Locator: l, Kind: providers.ErrUnavailable, Err: refused}, "storage is not available: store.example: dial tcp 192.0.2.1:80: connection refused"},
		{"request", &providers.Error{Op: "write", Locator: l, Kind: providers.ErrUnavailable, Err: &url.Error{Op: "Put", URL: "http://x.test/b?c", Err: io.EOF}},
			"storage is not available: x.test: EOF"},
		{"beside the name", providers.Nameless(&providers.Error{Locator: l, Kind: providers.ErrPermission}, "a/b c"), "permission denied"},
		{"beside another", providers.Nameless(&providers.Error{Locator: l, Kind: providers.ErrPermission}, "b"), `"a/b c": permission denied`},
		{"beside a name as it is", providers.Nameless(errors.New("b: no"), "b"), "no"},
		{"beside none", providers.Nameless(errors.New(": no"), ""), ": no"},
	} {
		assert.Equal(t, c.err.Error(), c.want, c.name)
	}
}

func TestFail(t *testing.T) {
	l := providers.MustLocator("a")
	done := &providers.Error{Op: "read", Kind: providers.ErrQuota}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"a kind", providers.ErrNotDir, providers.ErrNotDir},
		{"below a kind", fmt.Errorf("x: %w", providers.ErrTooLarge), providers.ErrTooLarge},
		{"canceled", context.Canceled, context.Canceled},
		{"from the file system", &fs.PathError{Op: "open", Err: os.ErrNotExist}, providers.ErrNotExist},
		{"foreign", io.ErrUnexpectedEOF, providers.ErrUnavailable},
	} {
		err := providers.Fail("p", providers.MethodStat, l, c.err, providers.ErrUnavailable)
		var e *providers.Error
		if !errors.As(err, &e) || e.Kind != c.want || e.Op != providers.MethodStat || e.Locator != l || !errors.Is(err, c.err) {
			t.Errorf("%s: got %#v, want kind %v", c.name, err, c.want)
		}
	}
	assert.Equal(t, providers.Fail("p", "stat", l, done, providers.ErrUnavailable), error(done), "done already")
	got := providers.Fail("p", "stat", l, nil, providers.ErrUnavailable)
	assert.True(t, got == nil, "no error", got)
}
