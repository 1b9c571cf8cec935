package memory_test

import (
	"context"
	"io"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.RunWrapped(t, func(providertest.T) providers.Provider {
		return memory.New(memory.Options{})
	})
}

func TestContractServed(t *testing.T) {
	providertest.Run(t, func(t providertest.T) providers.Provider {
		return dial(t, serve(t, memory.New(memory.Options{})))
	})
}

// Directories that only files make.
func TestContractImplied(t *testing.T) {
	providertest.RunVariant(t, func(providertest.T) providers.Provider {
		return memory.New(memory.Options{ImpliedDirs: true})
	})
}

// A poorer store keeps what it promises, and what it does not promise it does not do.
func TestContractWithout(t *testing.T) {
	full := memory.New(memory.Options{}).Capabilities()
	for name, less := range map[string]providers.Capabilities{
		"empty-dirs": {EmptyDirs: true}, "symlinks": {Symlinks: true}, "metadata": {Metadata: true},
		"listings":   {ListComplete: true, RecursiveList: true},
		"after":      {ListAfter: true},
		"ids":        {OperationIDs: true, UniqueVersions: true},
		"attributes": {Attributes: full.Attributes}, "mtime": {Attributes: providers.AttrModTime},
		"abilities": {Abilities: full.Abilities},
		"all": {
			EmptyDirs: true, Symlinks: true, Metadata: true, ListComplete: true, RecursiveList: true,
			OperationIDs: true, UniqueVersions: true, Attributes: full.Attributes, Abilities: full.Abilities,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := memory.New(memory.Options{Without: less}).Capabilities()
			assert.True(t, len(got.Missing(full)) != 0, "nothing is missing")
			providertest.RunVariant(t, func(providertest.T) providers.Provider {
				return memory.New(memory.Options{Without: less, NoDigest: true})
			})
		})
	}
}

// What is taken away does not work.
func TestWithout(t *testing.T) {
	full := memory.New(memory.Options{}).Capabilities()
	p := memory.New(memory.Options{NoDigest: true, Without: providers.Capabilities{
		EmptyDirs: true, Metadata: true, ListComplete: true, OperationIDs: true, UniqueVersions: true, Attributes: full.Attributes,
	}})
	ctx, dir := t.Context(), providers.MustLocator("dir/file")
	opts := providers.WriteOptions{
		If: providers.IfAbsent(), Op: "op", Metadata: map[string]string{"k": "v"},
		Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600},
	}
	first := assert.Of(p.Write(ctx, dir, providers.String("x"), opts)).OK(t)
	assert.True(t, first.Metadata == nil && first.Attr.Valid == 0 && first.Digest == "", "write", first)
	assert.Is(t, assert.ErrOf(p.Write(ctx, dir, providers.String("x"), opts)), providers.ErrExist, "repeated write")
	opts.If = providers.Unconditional()
	for _, content := range []string{"y", "x"} {
		assert.OK(t, assert.ErrOf(p.Write(ctx, dir, providers.String(content), opts)))
	}
	assert.Equal(t, assert.Of(p.Stat(ctx, dir)).OK(t).Version, first.Version, "the same content has version", "had", first.Version)
	link := providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink}
	assert.OK(t, assert.ErrOf(p.Write(ctx, providers.MustLocator("dir/link"), providers.String("x"), link)))
	for info, err := range providers.All(ctx, p, dir.Parent(), providers.ListOptions{}) {
		assert.True(t, err == nil && info.Kind == providers.KindFile, "listed", info, err)
	}
	for _, l := range []string{"dir/file", "dir/link"} {
		assert.OK(t, p.Delete(ctx, providers.MustLocator(l), providers.DeleteOptions{If: providers.Unconditional()}))
	}
	assert.Is(t, assert.ErrOf(p.Stat(ctx, dir.Parent())), providers.ErrNotExist, "a directory without entries")
	set := providers.SetAttrOptions{If: providers.Unconditional(), Metadata: map[string]string{}}
	write(t, p, "x")
	assert.Is(t, assert.ErrOf(p.SetAttr(ctx, a, set)), providers.ErrUnsupported, "setattr of metadata")
}

// serve gives p to others at the socket that it returns.
func serve(t providertest.T, p providers.Provider) (address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "s")
	l := assert.Of(net.Listen("unix", address)).OK(t, "listen")
	assert.OK(t, os.Chmod(address, 0o600))
	s := memoryserver.Serve(l, p)
	t.Cleanup(func() { s.Close() })
	return address
}

func dial(t providertest.T, address string) *memory.Client {
	t.Helper()
	return assert.Of(memoryserver.Dial(t.Context(), address)).OK(t, "dial")
}

var (
	unconditional = providers.WriteOptions{If: providers.Unconditional()}
	a             = providers.MustLocator("a")
)

func write(t *testing.T, p providers.Provider, content string) providers.Info {
	t.Helper()
	return assert.Of(p.Write(t.Context(), a, providers.String(content), unconditional)).OK(t)
}

// The same calls give the same versions, and a clock that stands still, or goes back, gives new
// ones all the same.
func TestDeterministic(t *testing.T) {
	run := func() []providers.Version {
		times := []int64{100, 100, 50, 200}
		p := memory.New(memory.Options{Now: func() time.Time {
			now := times[0]
			times = times[1:]
			return time.Unix(0, now)
		}})
		var got []providers.Version
		for len(times) > 0 {
			got = append(got, write(t, p, "x").Version)
		}
		return got
	}
	want := []int64{100, 101, 102, 200}
	first, second := run(), run()
	for i := range want {
		if first[i] != second[i] || first[i].Modified != want[i] {
			t.Errorf("write %d: versions %+v and %+v, want both at %d", i, first[i], second[i], want[i])
		}
	}
}

// TestHook changes the store between a caller's look and its act.
func TestHook(t *testing.T) {
	var p *memory.Provider
	var seen []providers.Method
	p = memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, l providers.Locator) error {
		seen = append(seen, m)
		if len(seen) == 2 {
			return p.Tamper(l, []byte("a stranger's"))
		}
		return nil
	}})
	info := write(t, p, "mine")
	_, err := p.Write(t.Context(), a, providers.String("mine again"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
	assert.Is(t, err, providers.ErrConflict, "write over a stranger's")
	got, _, err := providers.Fetch(t.Context(), p, a, providers.ReadOptions{})
	assert.True(t, string(got) == "a stranger's" && err == nil, "content", got, err)
	before, _ := p.Head(t.Context())
	assert.OK(t, p.Tamper(a, nil))
	after, _ := p.Head(t.Context())
	assert.True(t, after != before, "a removal by a stranger left the head", after)
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), a)), providers.ErrNotExist, "stat after removal")
}

// A set that fails leaves no trace in revisions.
func TestRefusedSetCostsNothing(t *testing.T) {
	p := memory.New(memory.Options{})
	write(t, p, "x")
	before, _ := p.Head(t.Context())
	// The name changes three times before the set fails.
	_, err := p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
		{Locator: a, Delete: true, If: providers.Unconditional()},
		{Locator: providers.MustLocator("a/c"), If: providers.IfAbsent()},
		{Locator: providers.MustLocator("a/c/d"), If: providers.IfAbsent()},
	}})
	assert.Is(t, err, providers.ErrNotDir, "commit below a file")
	after, _ := p.Head(t.Context())
	got, _, err := providers.Fetch(t.Context(), p, a, providers.ReadOptions{})
	assert.True(t, before == after && string(got) == "x" && err == nil, "head", after, "was", before, "content", got, err)
}

// Another process holds the store, and what it tells is seen by a client that comes later.
func TestOutlivesItsUser(t *testing.T) {
	address := os.Getenv("MEMORY_TEST_SERVE")
	if address != "" {
		l := assert.Of(net.Listen("unix", address)).OK(t)
		assert.OK(t, os.Chmod(address, 0o600))
		memoryserver.Serve(l, memory.New(memory.Options{}))
		os.Stdout.WriteString("ready\n")
		io.ReadAll(os.Stdin) // until the parent lets go
		return
	}
	address = filepath.Join(t.TempDir(), "s")
	child := exec.Command(os.Args[0], "-test.run=^TestOutlivesItsUser$")
	child.Env = append(os.Environ(), "MEMORY_TEST_SERVE="+address)
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	assert.OK(t, child.Start())
	t.Cleanup(func() {
		in.Close()
		child.Wait()
	})
	assert.OK(t, assert.ErrOf(io.ReadFull(out, make([]byte, len("ready\n")))))
	first := dial(t, address)
	want := write(t, first, "kept")
	first.Close()
	got, info, err := providers.Fetch(t.Context(), dial(t, address), a, providers.ReadOptions{})
	assert.True(t, string(got) == "kept" && info.Version.Matches(want.Version) && err == nil, "a second client: got", got, info.Version, err)
}

// Whatever the server was doing, its end is ErrUnavailable, and content is never cut short in
// silence.
func TestServerGone(t *testing.T) {
	address := filepath.Join(t.TempDir(), "s")
	l := assert.Of(net.Listen("unix", address)).OK(t)
	assert.OK(t, os.Chmod(address, 0o600))
	s := memoryserver.Serve(l, memory.New(memory.Options{}))
	c := dial(t, address)
	write(t, c, strings.Repeat("x", 16<<20)) // more than sockets hold
	open := assert.Of(c.Read(t.Context(), a, providers.ReadOptions{})).OK(t)
	s.Close()
	n, err := io.Copy(io.Discard, open.Body)
	open.Body.Close()
	assert.Is(t, err, providers.ErrUnavailable, "read across the server's end:", n, "bytes")
	assert.Is(t, assert.ErrOf(c.Stat(t.Context(), a)), providers.ErrUnavailable, "stat without a server")
	assert.Is(t, assert.ErrOf(memoryserver.Dial(t.Context(), address)), providers.ErrUnavailable, "dial without a server")
}

// What a wrapper at the server takes away is gone for clients too.
func TestServedWrapper(t *testing.T) {
	c := dial(t, serve(t, providers.ReadOnly(memory.New(memory.Options{}), providers.ReadOnlyOptions{})))
	if _, ok := providers.As[providers.Copier](c); ok || c.Capabilities().Writable {
		t.Errorf("capabilities %+v", c.Capabilities())
	}
	assert.Is(t, assert.ErrOf(c.Write(t.Context(), a, providers.String("x"), unconditional)), providers.ErrReadOnly, "write")
	assert.Is(t, assert.ErrOf(c.Copy(t.Context(), a, a, providers.CopyOptions{})), providers.ErrUnsupported, "copy")
}

// watching has an ability that has no place in a request.
type watching struct{ *memory.Provider }

func (p watching) Capabilities() providers.Capabilities {
	c := p.Provider.Capabilities()
	c.Abilities |= providers.AbilityWatch
	return c
}

func (watching) Watch(context.Context, providers.Locator) iter.Seq2[providers.Event, error] {
	return nil
}

// A client announces only what it can ask for.
func TestServedAbilities(t *testing.T) {
	c := dial(t, serve(t, watching{memory.New(memory.Options{})}))
	want := providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit
	assert.Equal(t, c.Capabilities().Abilities, want)
}

// A call whose client gave up ends at the server.
func TestServedCancel(t *testing.T) {
	reached, ended := make(chan struct{}), make(chan struct{})
	p := providers.Wrap(memory.New(memory.Options{}), providers.WrapOptions{
		Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			if c.Method == providers.MethodStat {
				close(reached)
				<-ctx.Done()
				close(ended)
			}
			return next(ctx)
		},
	})
	c := dial(t, serve(t, p))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	assert.Is(t, assert.ErrOf(c.Stat(ctx, a)), context.Canceled, "stat")
	select {
	case <-ended:
	case <-time.After(assert.Hangs):
		t.Error("the server goes on")
	}
}

// Content that breaks off at the server breaks off here.
func TestServedHalfBody(t *testing.T) {
	faults := providertest.NewFaults(t)
	c := dial(t, serve(t, faults.Wrap(memory.New(memory.Options{}))))
	write(t, c, strings.Repeat("x", 100_000))
	faults.Queue(providers.MethodRead, providertest.Fault{Cut: io.ErrUnexpectedEOF, CutAfter: 50_000})
	got, _, err := providers.Fetch(t.Context(), c, a, providers.ReadOptions{})
	assert.Is(t, err, providers.ErrUnavailable, "got", len(got), "bytes")
}
