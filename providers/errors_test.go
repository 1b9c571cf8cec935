package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Names and errors are unique, each row finds itself, and every row says what it means.
func TestErrorKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range providers.ErrorKinds() {
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
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", &providers.Error{Op: "stat", Locator: l, Kind: providers.ErrNotExist}, `stat "a/b c": file does not exist`},
		{"whole", &providers.Error{Provider: "s3", Op: "write", Locator: l, Kind: providers.ErrConflict, Code: "412", Err: io.EOF},
			`s3: write "a/b c": changed by someone else (412): EOF`},
		{"cause is the kind", &providers.Error{Op: "list", Kind: io.EOF, Err: io.EOF}, `list "/": EOF`},
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
