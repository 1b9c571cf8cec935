package memory

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/wsmount/wsmount/providers"
)

// Head implements providers.Committer.
func (p *Provider) Head(ctx context.Context) (providers.Revision, error) {
	return do(ctx, p, providers.MethodHead, providers.Locator{}, func() (providers.Revision, error) {
		return p.head(), nil
	})
}

func (p *Provider) head() providers.Revision {
	return providers.Revision("r" + strconv.FormatInt(p.changes, 10))
}

// Commit implements providers.Committer.
func (p *Provider) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	bodies, err := readBodies(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	return do(ctx, p, providers.MethodCommit, providers.Locator{}, func() (providers.CommitResult, error) {
		before := p.head()
		made, repeated := p.commits[set.Op]
		switch {
		case set.Op != "" && repeated:
			return providers.CommitResult{Revision: made, Committed: true}, nil
		case set.Base != "" && set.Base != before:
			return providers.CommitResult{}, providers.ErrConflict
		}
		if err := p.checkSet(set); err != nil {
			return providers.CommitResult{}, err
		}
		for i, change := range set.Changes {
			if err := p.apply(change, bodies[i], set.Op); err != nil {
				return providers.CommitResult{}, providers.Fail(name, method(change), change.Locator, err, providers.ErrUnavailable)
			}
		}
		if p.head() != before && set.Op != "" {
			p.commits[set.Op] = p.head()
		}
		return providers.CommitResult{Revision: p.head(), Committed: p.head() != before}, nil
	})
}

// readBodies takes all content before the lock is taken.
func readBodies(ctx context.Context, changes []providers.Change) ([][]byte, error) {
	bodies := make([][]byte, len(changes))
	for i, change := range changes {
		var b bytes.Buffer
		if _, err := change.Body.CopyTo(ctx, &b); err != nil {
			return nil, err
		}
		bodies[i] = b.Bytes()
	}
	return bodies, nil
}

// checkSet asks each condition of the tree before the set.
func (p *Provider) checkSet(set providers.ChangeSet) error {
	seen := map[providers.Locator]bool{}
	for _, c := range set.Changes {
		if seen[c.Locator] {
			return fmt.Errorf("two changes of %q: %w", c.Locator, providers.ErrInvalid)
		}
		seen[c.Locator] = true
		if c.Dir {
			continue
		}
		n, err := p.tree.find(c.Locator)
		if err != nil {
			n = nil // a parent may become a directory in this set
		}
		if err := c.If.Allows(method(c), n.describe(c.Locator)); err != nil {
			return providers.Fail(name, method(c), c.Locator, err, providers.ErrUnavailable)
		}
	}
	return nil
}

// apply makes a change whose condition was checked.
func (p *Provider) apply(c providers.Change, content []byte, op string) error {
	var err error
	switch {
	case c.Dir && c.Delete:
		err = p.delete(c.Locator, providers.IfDir())
	case c.Dir:
		_, err = p.mkdir(c.Locator, providers.MkdirOptions{Attr: c.Attr, Metadata: c.Metadata})
	case c.Delete:
		err = p.delete(c.Locator, providers.Unconditional())
	default:
		_, err = p.write(c.Locator, content, providers.WriteOptions{
			If: providers.Unconditional(), Kind: c.Kind, Attr: c.Attr, Metadata: c.Metadata, Op: op,
		})
	}
	return err
}

// method is the verb that a change stands for.
func method(c providers.Change) providers.Method {
	switch {
	case c.Delete:
		return providers.MethodDelete
	case c.Dir:
		return providers.MethodMkdir
	}
	return providers.MethodWrite
}
