package memoryrepo_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

var (
	unconditional = providers.WriteOptions{If: providers.Unconditional()}
	a             = providers.MustLocator("a")
)

func write(t *testing.T, p providers.Provider, content string) providers.Info {
	t.Helper()
	return assert.Of(p.Write(t.Context(), a, providers.String(content), unconditional)).OK(t)
}

func TestContractRepository(t *testing.T) {
	new := func(providertest.T) providers.Provider {
		return memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{})
	}
	providertest.RunVariant(t, new)
}

func TestContractClones(t *testing.T) {
	providertest.RunWrappedClones(t, func(providertest.T) providertest.Clones {
		r := memoryrepo.NewRemote(nil)
		a := memoryrepo.NewRepository(r, "", memory.Options{})
		return providertest.Clones{
			A: a, B: memoryrepo.NewRepository(r, "", memory.Options{}),
			Mute: func(mute bool) {
				if a.Switches().Clear(); mute {
					a.Switches().Fail(providers.MethodPropose, 1, providers.ErrUnavailable)
				}
			},
			Drop: func(branch string) error { return r.Reset(branch, "") },
		}
	})
}

// serveRemote gives clones of a new remote to others.
func serveRemote(t providertest.T, r *memoryrepo.Remote) (address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "s")
	l := assert.Of(net.Listen("unix", address)).OK(t, "listen")
	os.Chmod(address, 0o600)
	s := memoryserver.ServeRemote(l, r, memory.Options{})
	t.Cleanup(func() { s.Close() })
	return address
}

func dialClone(t providertest.T, address, name, branch string) *memory.Client {
	t.Helper()
	return assert.Of(memoryserver.DialClone(t.Context(), address, name, branch)).OK(t, "dial")
}

func TestContractClonesServed(t *testing.T) {
	providertest.RunClones(t, func(t providertest.T) providertest.Clones {
		address := serveRemote(t, memoryrepo.NewRemote(nil))
		control := assert.Of(memoryserver.DialCloneControl(t.Context(), "unix", address, "a", "main")).OK(t, "control")
		return providertest.Clones{
			A: dialClone(t, address, "a", "main"), B: dialClone(t, address, "b", "main"),
			Drop: func(string) error { return control.Reset(t.Context(), "") }, // which are asked for the tracked one alone
		}
	})
}

// A clone is there for the next who names it, with what was committed and not pushed; and it goes
// on tracking one branch.
func TestClonesOutliveClients(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	address := serveRemote(t, remote)
	first := dialClone(t, address, "a", "topic")
	write(t, first, "kept")
	first.Close()
	second := dialClone(t, address, "a", "topic")
	got, _, err := providers.Fetch(t.Context(), second, a, providers.ReadOptions{})
	assert.True(t, string(got) == "kept" && err == nil, "got", got, err)
	assert.Is(t, assert.ErrOf(dialClone(t, address, "b", "topic").Stat(t.Context(), a)), providers.ErrNotExist, "another clone")
	assert.Is(t, assert.ErrOf(memoryserver.DialClone(t.Context(), address, "a", "main")), providers.ErrInvalid, "the clone with another branch")
	assert.OK(t, assert.ErrOf(second.Push(t.Context(), providers.PushOptions{})))
	if got := remote.Branches(); len(got) != 1 || got["topic"] == "" {
		t.Errorf("branches: %v", got)
	}
}

// The remote changes by other hands, told from another process.
func TestStranger(t *testing.T) {
	ctx := t.Context()
	address := serveRemote(t, memoryrepo.NewRemote(nil))
	p := dialClone(t, address, "a", "")
	c := assert.Of(memoryserver.DialCloneControl(ctx, "unix", address, "a", "")).OK(t)
	write(t, p, "ours")
	assert.OK(t, assert.ErrOf(p.Push(ctx, providers.PushOptions{})))
	pushed, _ := p.Head(ctx)
	assert.OK(t, c.Tamper(ctx, providers.MustLocator("b"), []byte("theirs")))
	theirs, err := p.Fetch(ctx)
	base, baseErr := p.Base(ctx, pushed, theirs)
	assert.True(t, err == nil && baseErr == nil && base == pushed && theirs != pushed, "fetch:", theirs, err, "base", base, baseErr)
	got := assert.Of(c.Dump(ctx)).OK(t)
	assert.True(t, len(got) == 2 && strings.HasPrefix(got[0], `"a" file 4 `) && strings.HasPrefix(got[1], `"b" file 6 `), "dump", got)
	past := assert.Of(p.At(ctx, theirs)).OK(t)
	for range 3 {
		assert.Is(t, assert.ErrOf(past.Stat(ctx, a)), nil)
	}
	calls := assert.Of(c.Calls(ctx)).OK(t)
	assert.True(t, calls[providers.MethodAt] == 1 && calls[providers.MethodStat] == 3, "calls", calls)
	log, err := c.Log(ctx)
	assert.True(t, err == nil && len(log) == 2 && log[0].Message == "change b" && log[0].Parents[0] == pushed && log[1].Message == "write a", "log:", log, err)
	assert.OK(t, c.Reset(ctx, pushed))
	assert.Of(p.Fetch(ctx)).Equal(t, pushed, "after a forced push")
	assert.Is(t, c.Reset(ctx, "no such"), providers.ErrNotExist, "forced push of nothing")
	assert.OK(t, c.Reset(ctx, ""))
	assert.Equal(t, len(assert.Of(c.Branches(ctx)).OK(t)), 0, "branches")
	assert.Is(t, c.TamperMkdir(ctx, a), providers.ErrUnsupported, "mkdir")
}

// Without the remote, a clone works on; only what leaves the machine fails.
func TestOffline(t *testing.T) {
	pauses := 0
	sleep := func(context.Context, time.Duration) error { pauses++; return nil }
	r := memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{Delay: time.Hour, Sleep: sleep})
	r.Switches().Cut(false)
	write(t, r, "x")
	assert.Equal(t, pauses, 0, "pauses of a write")
	_, _, err := providers.Fetch(t.Context(), r, a, providers.ReadOptions{})
	assert.True(t, err == nil, "read", err)
	assert.Is(t, assert.ErrOf(r.Push(t.Context(), providers.PushOptions{})), providers.ErrUnavailable, "push")
	assert.Is(t, assert.ErrOf(r.Fetch(t.Context())), providers.ErrUnavailable, "fetch")
	assert.Equal(t, pauses, 2, "pauses of two calls of the remote")
	r.Switches().Clear()
	r.Switches().Lose(providers.MethodPush, 1)
	assert.Is(t, assert.ErrOf(r.Push(t.Context(), providers.PushOptions{})), providers.ErrUnavailable, "push whose answer gets lost")
	got := assert.Of(r.Push(t.Context(), providers.PushOptions{})).OK(t)
	assert.True(t, !got.Pushed, "repeated push", got)
	r.Switches().Fail(providers.MethodCommit, 1, providers.ErrQuota)
	assert.Is(t, assert.ErrOf(r.Commit(t.Context(), providers.ChangeSet{})), providers.ErrQuota, "commit")
}

// What changes nothing makes no revision, whatever it was called.
func TestSameIsNoCommit(t *testing.T) {
	r := memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{})
	first := write(t, r, "x")
	before, _ := r.Head(t.Context())
	assert.Equal(t, write(t, r, "x").Version, first.Version, "the version of the same content")
	after, _ := r.Head(t.Context())
	assert.True(t, after == before, "the head went from", before, "to", after)
	opts := unconditional
	opts.Attr = providers.Attr{Valid: providers.AttrMode, Mode: 0o755}
	info, err := r.Write(t.Context(), a, providers.String("x"), opts)
	after, _ = r.Head(t.Context())
	assert.True(t, err == nil && after != before && info.Version != first.Version && info.Attr.Mode == 0o755, "executable:", info, err, "head", after)
}
