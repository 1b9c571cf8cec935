package providertest

import (
	"context"
	"errors"
	"io"

	"github.com/wsmount/wsmount/providers"
)

var endChecks = []Check{
	{Name: "cancel/before", Run: cancelBefore},
	{Name: "cancel/upload", Run: cancelUpload},
	{Name: "cancel/download", Heavy: true, Run: cancelDownload},
	{Name: "close/ends-everything", Run: closeEnds},
}

// verbs are all required calls, each with arguments that let it succeed.
func verbs(p providers.Provider) map[providers.Method]func(ctx context.Context) error {
	m := map[providers.Method]func(context.Context) error{
		providers.MethodStat: func(ctx context.Context) error {
			_, err := p.Stat(ctx, loc("a"))
			return err
		},
		providers.MethodList: func(ctx context.Context) error {
			_, err := p.List(ctx, loc(""), providers.ListOptions{})
			return err
		},
		providers.MethodRead: func(ctx context.Context) error {
			_, _, err := providers.Fetch(ctx, p, loc("a"), providers.ReadOptions{})
			return err
		},
		providers.MethodWrite: func(ctx context.Context) error {
			_, err := p.Write(ctx, loc("new"), providers.String("new"), unconditional)
			return err
		},
		providers.MethodDelete: func(ctx context.Context) error {
			return p.Delete(ctx, loc("gone"), providers.DeleteOptions{If: providers.Unconditional()})
		},
	}
	if p.Capabilities().EmptyDirs {
		m[providers.MethodMkdir] = func(ctx context.Context) error {
			_, err := p.Mkdir(ctx, loc("newdir"), providers.MkdirOptions{})
			return err
		}
	}
	return m
}

// untouched checks that none of verbs happened after setUp.
func untouched(t T, p providers.Provider) {
	t.Helper()
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a", "gone")
	wantContent(t, p, loc("a"), "content")
}

func setUp(t T, p providers.Provider) {
	t.Helper()
	put(t, p, loc("a"), "content")
	put(t, p, loc("gone"), "x")
}

func cancelBefore(t T, p providers.Provider) {
	setUp(t, p)
	for name, verb := range verbs(p) {
		if err := verb(canceled(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", name, err)
		}
	}
	untouched(t, p)
}

// calling runs f before each Read.
type calling struct {
	r io.Reader
	f func()
}

func (c calling) Read(b []byte) (int, error) {
	c.f()
	return c.r.Read(b[:min(len(b), 1000)])
}

func cancelUpload(t T, p providers.Provider) {
	setUp(t, p)
	for _, name := range []string{"a", "new"} {
		ctx, cancel := context.WithCancel(t.Context())
		reads := 0
		body := calling{providers.String(pattern(100_000)).Reader, func() {
			if reads++; reads == 20 {
				cancel()
			}
		}}
		_, err := p.Write(ctx, loc(name), providers.Body{Reader: body, Size: 100_000}, unconditional)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("write whose context ended half way: %v", err)
		}
		cancel()
	}
	untouched(t, p)
}

func cancelDownload(t T, p providers.Provider) {
	put(t, p, loc("a"), pattern(8<<20)) // more than buffers and sockets hold
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := p.Read(ctx, loc("a"), providers.ReadOptions{})
	wantOK(t, "read", err)
	defer c.Body.Close()
	_, err = io.ReadFull(c.Body, make([]byte, 1000))
	wantOK(t, "read of the first bytes", err)
	cancel()
	if n, err := io.Copy(io.Discard, c.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("read whose context ended: %d more bytes, %v", n, err)
	}
}

func closeEnds(t T, p providers.Provider) {
	setUp(t, p)
	calls := verbs(p)
	wantOK(t, "close", p.Close())
	for name, verb := range calls {
		wantErr(t, string(name)+" after close", verb(t.Context()), providers.ErrClosed)
	}
	wantOK(t, "second close", p.Close())
}
