package memory_test

import (
	"context"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// switched is a store under the name a, its switches here and from afar.
type switched struct {
	p     providers.Provider
	store *memory.Provider

	delay   func(time.Duration)
	cut     func(hang bool)
	connect func()
	fail    func(m providers.Method, n int, kind error)
	lose    func(m providers.Method, n int)
	clear   func()
	calls   func() map[providers.Method]int
	tamper  func(l providers.Locator, content []byte) error
	mkdir   func(l providers.Locator) error
	dump    func() []string
}

// slept are the delays of a store that does not wait.
type slept struct{ got chan time.Duration }

func (s slept) sleep(ctx context.Context, d time.Duration) error {
	s.got <- d
	return ctx.Err()
}

// both gives a test the switches of this process and those of another.
func both(t *testing.T, opts memory.Options, test func(t *testing.T, s switched)) {
	t.Run("here", func(t *testing.T) {
		p := memory.New(opts)
		s := p.Switches()
		test(t, switched{
			p: p, store: p, delay: s.Delay, cut: s.Cut, connect: s.Connect, fail: s.Fail, lose: s.Lose, clear: s.Clear,
			calls: s.Calls, tamper: p.Tamper, mkdir: p.TamperMkdir, dump: p.Dump,
		})
	})
	t.Run("from afar", func(t *testing.T) {
		store := memory.New(opts)
		address := serve(t, store)
		c := assert.Of(memoryserver.DialControl(t.Context(), "unix", address)).OK(t)
		t.Cleanup(func() { c.Close() })
		ctx := t.Context()
		ok := func(err error) {
			t.Helper()
			assert.Is(t, err, nil)
		}
		test(t, switched{
			p: dial(t, address), store: store,
			delay: func(d time.Duration) { ok(c.Delay(ctx, d)) }, cut: func(hang bool) { ok(c.Cut(ctx, hang)) },
			connect: func() { ok(c.Connect(ctx)) }, fail: func(m providers.Method, n int, kind error) { ok(c.Fail(ctx, m, n, kind)) },
			lose: func(m providers.Method, n int) { ok(c.Lose(ctx, m, n)) }, clear: func() { ok(c.Clear(ctx)) },
			calls: func() map[providers.Method]int {
				m, err := c.Calls(ctx)
				ok(err)
				return m
			},
			tamper: func(l providers.Locator, content []byte) error { return c.Tamper(ctx, l, content) },
			mkdir:  func(l providers.Locator) error { return c.TamperMkdir(ctx, l) },
			dump: func() []string {
				lines, err := c.Dump(ctx)
				ok(err)
				return lines
			},
		})
	})
}

func stat(t *testing.T, p providers.Provider) error {
	return assert.ErrOf(p.Stat(t.Context(), providers.Locator{}))
}

func TestDelay(t *testing.T) {
	waited := slept{make(chan time.Duration, 10)}
	both(t, memory.Options{Delay: time.Hour, Sleep: waited.sleep}, func(t *testing.T, s switched) {
		assert.OK(t, stat(t, s.p))
		assert.Equal(t, <-waited.got, time.Hour, "slept")
		s.delay(2 * time.Hour)
		err := stat(t, s.p)
		assert.True(t, err == nil && <-waited.got == 2*time.Hour, "another delay:", err)
		s.delay(0)
		err = stat(t, s.p)
		assert.True(t, err == nil && len(waited.got) == 0, "without delay:", err, "slept", len(waited.got), "times")
	})
}

// A real delay ends with its context.
func TestDelayEnds(t *testing.T) {
	both(t, memory.Options{Delay: time.Hour}, func(t *testing.T, s switched) {
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			_, err := s.p.Write(ctx, a, providers.String("x"), unconditional)
			result <- err
		}()
		for s.calls()[providers.MethodWrite] == 0 {
			runtime.Gosched()
		}
		cancel()
		assert.Is(t, <-result, context.Canceled)
		s.delay(time.Nanosecond)
		assert.Is(t, stat(t, s.p), nil, "after a short delay")
	})
}

func TestCut(t *testing.T) {
	both(t, memory.Options{}, func(t *testing.T, s switched) {
		write(t, s.p, "before")
		s.cut(false)
		assert.Is(t, stat(t, s.p), providers.ErrUnavailable, "stat while cut off")
		assert.Is(t, assert.ErrOf(s.p.Write(t.Context(), a, providers.String("x"), unconditional)), providers.ErrUnavailable, "write while cut off")
		s.connect()
		got, _, err := providers.Fetch(t.Context(), s.p, a, providers.ReadOptions{})
		assert.True(t, string(got) == "before" && err == nil, "afterwards", got, err)
	})
}

// Calls wait until their context ends, or the outage does.
func TestHang(t *testing.T) {
	both(t, memory.Options{}, func(t *testing.T, s switched) {
		s.cut(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended, goesOn := make(chan error), make(chan error)
		go func() {
			_, err := s.p.Stat(ctx, providers.Locator{})
			ended <- err
		}()
		go func() { goesOn <- stat(t, s.p) }()
		for s.calls()[providers.MethodStat] < 2 {
			runtime.Gosched()
		}
		cancel()
		assert.Is(t, <-ended, context.Canceled, "a call whose context ended")
		select {
		case err := <-goesOn:
			t.Errorf("the other call did not hang: %v", err)
		default:
		}
		s.connect()
		assert.Is(t, <-goesOn, nil, "a call that goes on")
	})
}

// Content that is under way stops, and never ends well.
func TestCutWhileReading(t *testing.T) {
	both(t, memory.Options{}, func(t *testing.T, s switched) {
		write(t, s.p, strings.Repeat("x", 16<<20)) // more than sockets hold
		c := assert.Of(s.p.Read(t.Context(), a, providers.ReadOptions{})).OK(t)
		defer c.Body.Close()
		s.cut(false)
		n, err := io.Copy(io.Discard, c.Body)
		assert.Is(t, err, providers.ErrUnavailable, n, err)
	})
}

func TestFailAndLose(t *testing.T) {
	both(t, memory.Options{}, func(t *testing.T, s switched) {
		create := func(name string) error {
			return assert.ErrOf(s.p.Write(t.Context(), providers.MustLocator(name), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Op: name}))
		}
		s.fail(providers.MethodWrite, 2, providers.ErrQuota)
		s.lose(providers.MethodWrite, 1)
		for i, want := range []error{providers.ErrQuota, providers.ErrQuota, providers.ErrUnavailable} {
			assert.Is(t, create("a"), want, "call", i)
			assert.Equal(t, len(s.store.Dump()), i/2, "call", i, "entries left")
		}
		assert.Is(t, create("a"), nil, "repeated after a lost answer")
		s.fail(providers.MethodStat, 5, providers.ErrConflict)
		s.cut(true)
		s.delay(time.Hour)
		s.clear()
		assert.Is(t, stat(t, s.p), nil, "after clear")
		calls := s.calls()
		assert.True(t, calls[providers.MethodWrite] == 4 && calls[providers.MethodStat] == 1 && len(calls) == 2, "calls:", calls)
	})
}

func TestTamperAndDump(t *testing.T) {
	both(t, memory.Options{}, func(t *testing.T, s switched) {
		opts := unconditional
		opts.Attr = providers.Attr{Valid: providers.AttrMode | providers.AttrOwner, Mode: 0o640, UID: 1, GID: 2}
		opts.Metadata = map[string]string{"z": "1", "colour": "r\n"}
		assert.OK(t, assert.ErrOf(s.p.Write(t.Context(), providers.MustLocator("d/f"), providers.String("hello"), opts)))
		link := providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink}
		assert.OK(t, assert.ErrOf(s.p.Write(t.Context(), providers.MustLocator("l"), providers.String("d/f"), link)))
		s.cut(false) // a stranger is not cut off
		for _, err := range []error{
			s.tamper(providers.MustLocator("gone/x"), []byte("x")), s.tamper(providers.MustLocator("gone"), nil),
			s.tamper(providers.MustLocator("d/empty"), []byte{}), s.mkdir(providers.MustLocator("e")),
		} {
			assert.Is(t, err, nil)
		}
		want := []string{
			`"d" dir`, `"d/empty" file 0 sha256:e3b0c44298fc1c14`,
			`"d/f" file 5 sha256:2cf24dba5fb0a30e mode=640 owner=1:2 colour="r\n" z="1"`, `"e" dir`, `"l" symlink "d/f"`,
		}
		assert.Slice(t, s.dump(), want)
		calls := s.calls()
		if want := map[providers.Method]int{providers.MethodWrite: 2}; !maps.Equal(calls, want) {
			t.Errorf("calls: %v", calls)
		}
	})
}

// What is not of this package has no switches.
func TestControlOfStrangers(t *testing.T) {
	address := serve(t, providers.Wrap(memory.New(memory.Options{}), providers.WrapOptions{}))
	c := assert.Of(memoryserver.DialControl(t.Context(), "unix", address)).OK(t)
	assert.Is(t, c.Cut(t.Context(), false), providers.ErrUnsupported, "cut")
	assert.Is(t, assert.ErrOf(c.Dump(t.Context())), providers.ErrUnsupported, "dump")
}
