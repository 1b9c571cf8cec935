// Package memory is a provider whose bytes live in this process.
//
// It knows nothing but trees of nodes, and promises the most that the contract of package
// providers allows for a conditional store: atomic conditions on every verb, operation ids,
// attributes, complete and recursive listings, copies, moves and atomic change sets. It keeps
// everything in memory and loses it with the process; package integration/memoryserver lets it
// outlive the programs that use it, which reach it by the Driver.
//
//	p := memory.New(memory.Options{})
//	info, err := p.Write(ctx, l, providers.String("hello"), providers.WriteOptions{If: providers.IfAbsent()})
//
// It is made for tests: the same calls with the same clock give the same versions.
// Options.Without makes it a poorer store, such as a bucket, and [Switches] make it slow,
// unreachable or forgetful while it is used, from this process or from another. Like a bucket
// it keeps the ETag when only metadata change.
package memory

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

const (
	name            = "memory"
	defaultPageSize = 1000
)

// Options of a store; the zero value works.
type Options struct {
	Now      func() time.Time // nil: time.Now; versions move on even if it stands still
	PageSize int              // entries in a page of List at most; 0: 1000
	// Hook is called at the beginning of every verb, before it looks at the
	// tree and without any lock, so that a test can change the tree just then;
	// nil: nothing. An error ends the verb.
	Hook func(ctx context.Context, m providers.Method, l providers.Locator) error
	// Without are the capabilities that the store does not promise, and then does not have:
	// EmptyDirs, Symlinks, Metadata, ListComplete, RecursiveList, ListAfter, OperationIDs,
	// UniqueVersions, members of Attributes and of Abilities. Its other members are ignored.
	Without  providers.Capabilities
	NoDigest bool // Info.Digest is empty
	// ImpliedDirs: a directory that only a Write has made is removed with its last entry. Such
	// a store takes no sets.
	ImpliedDirs bool
	DearCopy    bool // is promised, though a copy costs nothing
	// ExecOnly: of all attributes only whether a file may be executed is kept, as git does, and
	// belongs to the version.
	ExecOnly bool
	// AttrsMoveETag: attributes that change give content another ETag, as they do to an
	// object of S3 that came in parts.
	AttrsMoveETag bool
	// MaxXattrs bounds the extended attributes that Write and SetAttr take, in
	// bytes of names and values; 0: no bound.
	MaxXattrs int
	// Delay is the initial delay of the Switches, and Sleep how they wait for it: until the
	// time has passed, or with the error of ctx; nil: a timer.
	Delay time.Duration
	Sleep func(ctx context.Context, d time.Duration) error
}

// Provider is the store. Make it with New.
type Provider struct {
	opts     Options
	switches *Switches

	mu      sync.Mutex // guards all below
	tree    tree
	mint    mint
	sets    Outcomes
	uploads []*parted
	closed  bool
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Multiparter
	providers.Committer
} = (*Provider)(nil)

// New makes an empty store.
func New(opts Options) *Provider {
	caps := capabilities()
	if opts.ExecOnly {
		caps.Attributes = providers.AttrExec
	}
	caps = without(caps, opts.Without)
	caps.DearCopy = opts.DearCopy
	if caps.ImpliedDirs = opts.ImpliedDirs; caps.ImpliedDirs {
		caps.Abilities &^= providers.AbilityCommit
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.PageSize <= 0 {
		opts.PageSize = defaultPageSize
	}
	return &Provider{
		opts: opts, switches: NewSwitches(opts.Delay, opts.Sleep),
		tree: tree{root: emptyDir, flat: !caps.EmptyDirs, implied: opts.ImpliedDirs},
		mint: mint{now: opts.Now, caps: caps, noDigest: opts.NoDigest, attrsMoveETag: opts.AttrsMoveETag},
		sets: Outcomes{},
	}
}

// Fork makes a store with the content of p, which is not copied. Neither sees later changes of the
// other.
func (p *Provider) Fork(opts Options) *Provider {
	fork := New(opts)
	p.mu.Lock()
	defer p.mu.Unlock()
	fork.tree.root, fork.mint.changes, fork.mint.last = p.tree.root, p.mint.changes, p.mint.last
	return fork
}

func capabilities() providers.Capabilities {
	return providers.Capabilities{
		Writable: true, EmptyDirs: true, StrictTree: true, AnyNames: true, Symlinks: true, Metadata: true,
		ListComplete: true, RecursiveList: true, ListAfter: true, OperationIDs: true, UniqueVersions: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs,
		Conditions: providers.Conditions{
			Create: providers.GuardAtomic, Replace: providers.GuardAtomic,
			Delete: providers.GuardAtomic, Copy: providers.GuardAtomic,
			Move: providers.GuardAtomic, SetAttr: providers.GuardAtomic,
		},
		Abilities: providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityParts | providers.AbilityCommit,
	}
}

// without is c without the capabilities in less.
func without(c, less providers.Capabilities) providers.Capabilities {
	c.EmptyDirs = c.EmptyDirs && !less.EmptyDirs
	c.Symlinks = c.Symlinks && !less.Symlinks
	c.Metadata = c.Metadata && !less.Metadata
	c.ListComplete = c.ListComplete && !less.ListComplete
	c.RecursiveList = c.RecursiveList && !less.RecursiveList
	c.ListAfter = c.ListAfter && c.RecursiveList && !less.ListAfter
	c.OperationIDs = c.OperationIDs && !less.OperationIDs
	c.UniqueVersions = c.UniqueVersions && !less.UniqueVersions
	c.Attributes &^= less.Attributes
	c.Abilities &^= less.Abilities
	return c
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities { return p.mint.caps } // constant, so without the lock

// Switches make every verb of p slow, or fail, while p is used.
func (p *Provider) Switches() *Switches { return p.switches }

// enter begins a verb and, unless it fails, locks. The caller unlocks.
func (p *Provider) enter(ctx context.Context, m providers.Method, l providers.Locator) error {
	if p.opts.Hook != nil {
		if err := p.opts.Hook(ctx, m, l); err != nil {
			return err
		}
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return providers.ErrClosed
	}
	return nil
}

// do runs a verb under the lock, past the switches. A verb that fails leaves
// the tree as it was.
func do[R any](ctx context.Context, p *Provider, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	var result, none R
	err := p.switches.Around(ctx, m, true, func() error {
		if err := p.enter(ctx, m, l); err != nil {
			return err
		}
		defer p.mu.Unlock()
		root, changes := p.tree.root, p.mint.changes
		var err error
		if result, err = verb(); err != nil {
			p.tree.root, p.mint.changes = root, changes
		}
		return err
	})
	if err != nil {
		return none, providers.Fail(name, m, l, err, providers.ErrUnavailable)
	}
	return result, nil
}

// able checks the ability of a verb.
func (p *Provider) able(a providers.Ability) error {
	if !p.mint.caps.Abilities.Has(a) {
		return providers.ErrUnsupported
	}
	return nil
}

// Stat implements providers.Provider.
func (p *Provider) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func() (providers.Info, error) {
		n, err := p.tree.look(l)
		if err != nil {
			return providers.Info{}, err
		}
		return n.at(l), nil
	})
}

// Read implements providers.Provider.
func (p *Provider) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, p, providers.MethodRead, l, func() (providers.Content, error) {
		n, err := p.tree.look(l)
		switch {
		case opts.Check() != nil:
			return providers.Content{}, opts.Check()
		case err != nil:
			return providers.Content{}, err
		case n.isDir():
			return providers.Content{}, providers.ErrIsDir
		case !opts.Version.IsZero() && !opts.Version.Matches(n.version):
			return providers.Content{}, providers.ErrConflict
		}
		size := int64(len(n.content))
		from := min(opts.Offset, size)
		body := p.switches.body(ctx, bytes.NewReader(n.content[from:from+opts.Span(size)]))
		return providers.Content{Info: n.at(l), Body: io.NopCloser(providers.WithContext(ctx, body))}, nil
	})
}

// Close implements providers.Provider.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}
