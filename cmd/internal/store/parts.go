package store

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// parts are a workspace and those that it mounts below itself, as one backend. A part is
// opened at the first call for a path in it.
type parts struct {
	all   []*part // the root first
	close func() error
}

type part struct {
	at     seam.Locator
	open   func() (seam.Backend, error)
	absent bool               // it is optional, and unavailable
	has    *seam.Capabilities // its promises, if known before it is open

	mu    sync.Mutex   // guards store
	store seam.Backend // set once it is open
}

// opened opens the part if it is not open.
func (p *part) opened() (_ seam.Backend, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		p.store, err = p.open()
	}
	return p.store, apart(err)
}

// Close implements seam.Backend.
func (p *parts) Close() error {
	var errs []error
	for _, one := range p.all {
		if one.store != nil {
			errs = append(errs, one.store.Close())
		}
	}
	return errors.Join(append(errs, p.close())...)
}

// locate opens the part that l lies in. rel is l in that part.
func (p *parts) locate(l seam.Locator) (b seam.Backend, rel seam.Locator, err error) {
	var one *part
	for _, candidate := range p.all {
		if l.Within(candidate.at) && (one == nil || len(candidate.at.Parts()) > len(one.at.Parts())) {
			one = candidate
		}
	}
	if b, err = one.opened(); err == nil {
		rel, err = rel.Child(l.Parts()[len(one.at.Parts()):]...)
	}
	return b, rel, err
}

// leads reports whether a part lies below l.
func (p *parts) leads(l seam.Locator) bool {
	return slices.ContainsFunc(p.all, func(one *part) bool { return one.at != l && one.at.Within(l) })
}

// in calls a verb of the part that l lies in.
func in[R any](p *parts, l seam.Locator, verb func(b seam.Backend, rel seam.Locator) (R, error)) (R, error) {
	b, rel, err := p.locate(l)
	if err != nil {
		return *new(R), err
	}
	return verb(b, rel)
}

// Resolve implements seam.Backend.
func (p *parts) Resolve(names ...string) (seam.Locator, error) { return seam.Locator{}.Child(names...) }

// Capabilities implements seam.Backend: those of the workspace itself.
func (p *parts) Capabilities() seam.Capabilities {
	b, _, err := p.locate(seam.Locator{})
	if err != nil {
		return seam.Capabilities{}
	}
	return b.Capabilities()
}

// Read implements seam.Backend.
func (p *parts) Read(ctx context.Context, l seam.Locator) (string, error) {
	return in(p, l, func(b seam.Backend, rel seam.Locator) (string, error) { return b.Read(ctx, rel) })
}

// Write implements seam.Backend.
func (p *parts) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	return p.write(l, func(b seam.Backend, rel seam.Locator) (seam.Locator, error) { return b.Write(ctx, rel, content) })
}

// WriteIf implements seam.Conditional as far as the part does.
func (p *parts) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	return p.write(l, func(b seam.Backend, rel seam.Locator) (seam.Locator, error) {
		c, ok := b.(seam.Conditional)
		if !ok {
			return rel, errUnguarded(l)
		}
		return c.WriteIf(ctx, rel, old, content)
	})
}

func (p *parts) write(l seam.Locator, verb func(seam.Backend, seam.Locator) (seam.Locator, error)) (seam.Locator, error) {
	if p.leads(l) {
		return seam.Locator{}, refuse(providers.MethodWrite, l, providers.ErrIsDir, "another workspace lies in it")
	}
	if _, err := in(p, l, verb); err != nil {
		return seam.Locator{}, err
	}
	return l, nil
}

// List implements seam.Backend.
func (p *parts) List(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
	found, err := in(p, l, func(b seam.Backend, rel seam.Locator) ([]seam.Locator, error) { return b.List(ctx, rel) })
	var unnamed *seam.UnnamedError
	if err != nil && !errors.As(err, &unnamed) {
		return nil, err
	}
	var names []string
	if unnamed != nil {
		names = unnamed.Names
	}
	for _, child := range found {
		names = append(names, child.Name())
	}
	for _, one := range p.all {
		if one.at != l && one.at.Within(l) {
			names = append(names, one.at.Parts()[len(l.Parts())])
		}
	}
	return seam.Children(l, names)
}

// Exists implements seam.Backend.
func (p *parts) Exists(ctx context.Context, l seam.Locator) (bool, error) {
	if p.leads(l) {
		return true, nil
	}
	return in(p, l, func(b seam.Backend, rel seam.Locator) (bool, error) { return b.Exists(ctx, rel) })
}

// Info implements seam.Backend.
func (p *parts) Info(ctx context.Context, l seam.Locator) (seam.Info, error) {
	info, err := in(p, l, func(b seam.Backend, rel seam.Locator) (seam.Info, error) { return b.Info(ctx, rel) })
	if errors.Is(err, providers.ErrNotExist) && p.leads(l) {
		info, err = seam.Info{IsDir: true}, nil
	}
	info.Locator = l
	return info, err
}

// Mkdir implements seam.Backend.
func (p *parts) Mkdir(ctx context.Context, l seam.Locator) (seam.Locator, error) {
	_, err := in(p, l, func(b seam.Backend, rel seam.Locator) (seam.Locator, error) { return b.Mkdir(ctx, rel) })
	if err != nil && !p.leads(l) {
		return seam.Locator{}, err
	}
	return l, nil
}
