package pinned

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// What is pinned is fetched, all below a directory, and stays when the rest is given up;
// once it is pinned no more, it goes too. What is only here never goes.
func TestFetch(t *testing.T) {
	p := memory.New(memory.Options{})
	for _, name := range []string{"docs/a", "docs/sub/b", "other"} {
		_, err := p.Write(t.Context(), providers.MustLocator(name), providers.String(strings.Repeat("x", 300<<10)), providers.WriteOptions{If: providers.IfAbsent()})
		assert.OK(t, err)
	}
	set := assert.Of(pins.Load(t.TempDir())).OK(t)
	v, err := cache.Open(t.Context(), p, cache.Options{StateDir: t.TempDir(), Provider: "memory", Pins: set, Policy: cache.Policy{Commit: cache.DueAsked, NoWait: true}})
	assert.OK(t, err)
	defer v.Close()
	state := func(path string) string {
		t.Helper()
		ino := fs.RootIno
		for _, name := range strings.Split(path, "/") {
			e := assert.Of(v.Lookup(&fs.Op{}, ino, name)).OK(t)
			defer v.Forget(e.Ino, 1)
			ino = e.Ino
		}
		s, _ := v.Describe(&fs.Op{}, ino, "state")
		return s
	}
	are := func(when, want string) {
		t.Helper()
		assert.Equal(t, fmt.Sprint(state("docs/a"), " ", state("docs/sub/b"), " ", state("other")), want, when)
	}
	var told Progress
	fetch := func(path string, files int) {
		t.Helper()
		f, err := Fetch(t.Context(), v, path, &told)
		assert.OK(t, err)
		assert.Equal(t, f, Fetched{files, int64(files) * 300 << 10}, path)
	}
	are("at first", "remote remote remote")
	w := walk{Volume: v, ctx: t.Context(), told: &told, counts: true}
	assert.OK(t, w.at("", fs.RootIno, syscall.S_IFDIR, 0))
	assert.Equal(t, told.All.Swap(0), 900<<10, "what is to be fetched")
	assert.OK(t, set.Add("docs"))
	fetch("docs", 2)
	are("what is pinned is fetched", "clean clean remote")
	fetch("", 3)
	are("all is fetched", "clean clean clean")
	_, o, err := v.Create(&fs.Op{}, fs.RootIno, "mine", syscall.O_RDWR, 0o644)
	assert.OK(t, err)
	assert.OK(t, assert.ErrOf(o.File.Write(&fs.Op{}, []byte("mine"), 0)))
	o.File.Release()
	v.ContentOf(true)
	are("what is not pinned went", "clean clean remote")
	was, err := set.Remove("docs")
	assert.True(t, was && err == nil, "it was pinned")
	v.ContentOf(true)
	are("all went", "remote remote remote")
	assert.Equal(t, state("mine"), "unsaved")
	_, err = Fetch(t.Context(), v, "docs/none", nil)
	assert.Is(t, err, syscall.ENOENT)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Fetch(ctx, v, "docs", nil)
	assert.True(t, err != nil, "after its caller has gone")
}

// A keeper begins with what is pinned, goes by what others change in it, and tries again what
// failed.
func TestPinsStayFetched(t *testing.T) {
	set := assert.Of(pins.Load(t.TempDir())).OK(t)
	assert.OK(t, set.Add("docs"))
	fetched, ended := make(chan string), make(chan error)
	away := errors.New("the store is away")
	answers := make(chan error)
	k := Start(Options{Pins: set, pause: time.Millisecond,
		Fetch: func(ctx context.Context, path string) error {
			select {
			case fetched <- path:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Ended: func(err error) { ended <- err }})
	round := func(path string, answer error) {
		t.Helper()
		assert.Equal(t, <-fetched, path)
		answers <- answer
		got := <-ended
		assert.True(t, errors.Is(got, answer) && (got == nil) == (answer == nil), path, "ended with", got)
	}
	round("docs", away)
	round("docs", nil)
	k.Changed("other") // which is not pinned
	k.Changed("docs/a")
	round("docs/a", nil)
	k.Changed("docs/b")
	assert.Equal(t, <-fetched, "docs/b")
	k.Stop() // which ends it, and nobody is told
	var none *Keeper
	none.Changed("docs")
	none.Stop()
}
