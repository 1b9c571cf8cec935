package bucket

import (
	"context"
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// dirState is the state of a directory by one LIST.
type dirState struct {
	there   bool
	marked  bool   // it has a marker
	etag    string // of the marker
	entries bool   // it has keys beside its marker
	refused bool   // the service can have nothing there
}

// lookDir looks at the directory at a place. Two keys are enough: the marker
// comes first.
func (p *Provider) lookDir(ctx context.Context, at place) (dirState, error) {
	if at.l.IsRoot() {
		return dirState{there: true, entries: true}, nil
	}
	if at.partial {
		return p.lookPartial(ctx, at)
	}
	answer, err := p.list(ctx, Query{Prefix: at.dir, Limit: 2})
	if doubtOf(err) == NameRefused {
		return dirState{refused: true}, nil
	}
	if err != nil {
		return dirState{}, err
	}
	d := dirState{there: len(answer.Items) > 0}
	for _, it := range answer.Items {
		if it.Key == at.dir && it.Size == 0 {
			d.marked, d.etag = true, it.ETag
		} else {
			d.entries = true
		}
	}
	return d, nil
}

// lookPartial looks for a key that has a long name with this beginning. Keys
// of other names may come before it.
func (p *Provider) lookPartial(ctx context.Context, at place) (dirState, error) {
	q := Query{Prefix: at.dir}
	for {
		answer, err := p.list(ctx, q)
		if err != nil {
			return dirState{}, err
		}
		for _, it := range answer.Items {
			l := providers.Key(strings.TrimPrefix(it.Key, p.prefix)).Locator()
			if l != at.l && at.l.Contains(l) {
				return dirState{there: true, entries: true}, nil
			}
		}
		if !answer.More {
			return dirState{}, nil
		}
		q.Token = answer.Next
	}
}

// Mkdir implements providers.Provider: a HEAD for a file that may be there, a
// PUT of the marker, and a HEAD for each parent up to the first that has one.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func(at place) (providers.Info, error) {
		if l.IsRoot() {
			return providers.Info{Kind: providers.KindDir}, nil
		}
		if at.partial {
			return providers.Info{}, Invalid("%q is a part of a name", l)
		}
		if _, err := p.file(ctx, at); err == nil {
			return providers.Info{}, providers.ErrExist
		} else if !errors.Is(err, providers.ErrNotExist) {
			return providers.Info{}, err
		}
		return p.mkdir(ctx, at, opts)
	})
}

// mkdir makes the marker, then those above: a reader that sees a directory of a tree half made
// sees the one that was asked for.
func (p *Provider) mkdir(ctx context.Context, at place, opts providers.MkdirOptions) (providers.Info, error) {
	m := meta{kind: providers.KindDir, attr: opts.Attr.Keep(attributes), user: clone(opts.Metadata)}
	made, err := p.mark(ctx, at.dir, m, providers.IfAbsent())
	if errors.Is(err, providers.ErrConflict) { // it was there
		o, err := p.head(ctx, at.dir)
		if err != nil {
			return providers.Info{}, err
		}
		return dirInfo(at.l, o.meta), nil
	}
	if err != nil {
		return providers.Info{}, err
	}
	for dir := parentDir(at.dir); len(dir) > len(p.prefix); dir = parentDir(dir) {
		if _, err := p.head(ctx, dir); err == nil {
			break
		} else if !errors.Is(err, providers.ErrNotExist) {
			return providers.Info{}, err
		}
		if _, err := p.mark(ctx, dir, meta{kind: providers.KindDir}, providers.IfAbsent()); err != nil && !errors.Is(err, providers.ErrConflict) {
			return providers.Info{}, err
		}
	}
	return dirInfo(at.l, made), nil
}

// parentDir is "a/" for "a/b/".
func parentDir(dir string) string {
	return dir[:strings.LastIndexByte(strings.TrimSuffix(dir, "/"), '/')+1]
}

// mark puts a marker. Without a guard of the service for markers it looks
// first.
func (p *Provider) mark(ctx context.Context, dir string, m meta, c providers.Condition) (meta, error) {
	if !p.honours.holds(c) {
		_, err := p.head(ctx, dir)
		missing := errors.Is(err, providers.ErrNotExist)
		switch {
		case err != nil && !missing:
			return m, err
		case missing != (c.Kind == providers.ConditionAbsent):
			return m, providers.ErrConflict
		}
	}
	_, err := p.put(ctx, dir, bytesBody(nil), m, c)
	return m, err
}

func dirInfo(l providers.Locator, m meta) providers.Info {
	return providers.Info{Locator: l, Kind: providers.KindDir, Attr: m.attr, Metadata: m.user}
}
