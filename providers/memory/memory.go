// Package memory is a provider whose bytes live in this process.
//
// It knows nothing but a tree of nodes, and promises what the contract of
// package providers can promise at most for a conditional store: atomic
// conditions on every verb, operation ids, attributes, complete and recursive
// listings, copies, moves and atomic change sets. It keeps everything in
// memory and loses it with the process; Serve lets it outlive the programs
// that use it, which reach it with Dial.
//
//	p := memory.New(memory.Options{})
//	info, err := p.Write(ctx, l, providers.String("hello"), providers.WriteOptions{If: providers.IfAbsent()})
//
// It is made for tests: the same calls with the same clock give the same
// versions. Like a bucket it keeps the ETag when only metadata change.
package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

const (
	name            = "memory"
	defaultPageSize = 1000
)

// Options: the zero value works.
type Options struct {
	Now      func() time.Time // nil: time.Now; versions move on even if it stands still
	PageSize int              // entries in a page of List at most; 0: 1000
	// Hook is called at the beginning of every verb, before it looks at the
	// tree and without any lock, so that a test can change the tree just then;
	// nil: nothing. An error ends the verb.
	Hook func(ctx context.Context, m providers.Method, l providers.Locator) error
}

// Provider is the store. Make it with New.
type Provider struct {
	opts Options

	mu      sync.Mutex // guards all below
	tree    tree
	changes int64                         // how many there were; ETags and revisions count it
	last    int64                         // the newest Version.Modified
	commits map[string]providers.Revision // what the change set of an operation id made
	closed  bool
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Committer
} = (*Provider)(nil)

// New is an empty store.
func New(opts Options) *Provider {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.PageSize <= 0 {
		opts.PageSize = defaultPageSize
	}
	return &Provider{opts: opts, tree: tree{root: newDir(providers.Attr{}, nil)}, commits: map[string]providers.Revision{}}
}

// Driver opens empty stores under the name "memory".
func Driver() providers.Driver {
	return providers.Driver{
		Name:     name,
		Text:     "the memory of this process; gone when it ends",
		Promises: capabilities(),
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			if err := s.CheckKeys(); err != nil {
				return nil, providers.Fail(name, providers.MethodOpen, providers.Locator{}, err, providers.ErrInvalid)
			}
			return New(Options{Now: s.Now}), nil
		},
	}
}

func capabilities() providers.Capabilities {
	return providers.Capabilities{
		Writable: true, EmptyDirs: true, StrictTree: true, Symlinks: true, Metadata: true,
		ListComplete: true, RecursiveList: true, OperationIDs: true, UniqueVersions: true, ConcurrentWriters: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime,
		Conditions: providers.Conditions{
			Create: providers.GuardAtomic, Replace: providers.GuardAtomic,
			Delete: providers.GuardAtomic, Copy: providers.GuardAtomic,
			Move: providers.GuardAtomic, SetAttr: providers.GuardAtomic,
		},
		Abilities: providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit,
	}
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities { return capabilities() }

// enter begins a verb and, unless it fails, locks. The caller unlocks.
func (p *Provider) enter(ctx context.Context, m providers.Method, l providers.Locator) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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

// do runs a verb under the lock. A verb that fails leaves the tree as it was.
func do[R any](ctx context.Context, p *Provider, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	result, err := func() (R, error) {
		var none R
		if err := p.enter(ctx, m, l); err != nil {
			return none, err
		}
		defer p.mu.Unlock()
		changes := p.changes
		result, err := verb()
		if err != nil {
			p.tree.rollback()
			p.changes = changes
			return none, err
		}
		p.tree.keep()
		return result, nil
	}()
	return result, providers.Fail(name, m, l, err, providers.ErrUnavailable)
}

// tick is a new time of change, later than all before.
func (p *Provider) tick() int64 {
	p.changes++
	p.last = max(p.last+1, p.opts.Now().UnixNano())
	return p.last
}

// newFile is the node of new content.
func (p *Provider) newFile(content []byte, opts providers.WriteOptions) *node {
	kind := opts.Kind
	if kind == providers.KindUnknown {
		kind = providers.KindFile
	}
	modified := p.tick()
	sum := sha256.Sum256(content)
	size := int64(len(content))
	return &node{content: content, op: opts.Op, info: providers.Info{
		Kind: kind, Size: size, Attr: opts.Attr, Metadata: maps.Clone(opts.Metadata),
		Version: providers.Version{ETag: fmt.Sprintf("m%d", p.changes), Modified: modified, Size: size},
		Digest:  "sha256:" + hex.EncodeToString(sum[:]),
	}}
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
		case !opts.Version.IsZero() && !opts.Version.Matches(n.info.Version):
			return providers.Content{}, providers.ErrConflict
		}
		span := opts.Span(n.info.Size)
		from := min(opts.Offset, n.info.Size)
		body := providers.WithContext(ctx, bytes.NewReader(n.content[from:from+span]))
		return providers.Content{Info: n.at(l), Body: io.NopCloser(body)}, nil
	})
}

// Close implements providers.Provider.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// Tamper puts content at l the way a stranger would: unconditionally, without
// operation id, attributes, hook or regard for Close. A nil content removes
// what is there, with all below it.
func (p *Provider) Tamper(l providers.Locator, content []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.tree.keep()
	if content == nil {
		p.tick()
		p.tree.remove(l)
		return nil
	}
	return p.tree.put(l, p.newFile(bytes.Clone(content), providers.WriteOptions{}))
}
