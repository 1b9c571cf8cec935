package memory

import (
	"context"
	"slices"
	"strconv"

	"github.com/wsmount/wsmount/providers"
)

// Head implements providers.Committer.
func (p *Provider) Head(ctx context.Context) (providers.Revision, error) {
	return do(ctx, p, providers.MethodHead, providers.Locator{}, func() (providers.Revision, error) {
		return p.head(), p.able(providers.AbilityCommit)
	})
}

func (p *Provider) head() providers.Revision {
	return providers.Revision("r" + strconv.FormatInt(p.mint.changes, 10))
}

// Commit implements providers.Committer.
func (p *Provider) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	bodies, err := readBodies(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	return do(ctx, p, providers.MethodCommit, providers.Locator{}, func() (providers.CommitResult, error) {
		if err := p.able(providers.AbilityCommit); err != nil {
			return providers.CommitResult{}, err
		}
		before := p.head()
		if result, known, err := p.sets.Decide(set, before); known {
			return result, err
		}
		result, err := p.commit(set, bodies)
		result.Revision, result.Committed = p.head(), p.head() != before
		return result, err
	})
}

func (p *Provider) commit(set providers.ChangeSet, bodies [][]byte) (providers.CommitResult, error) {
	run := newRun(p.tree, &p.mint, set, bodies)
	entries, err := run.do()
	if err != nil {
		return providers.CommitResult{}, err
	}
	p.tree = run.after
	result := providers.CommitResult{Revision: p.head(), Committed: true, Entries: entries}
	p.sets.Made(set, result)
	return result, nil
}

// Outcomes are the results of the sets with an operation id. A zero result means that the set
// was refused for its base. They have no lock.
type Outcomes map[string]providers.CommitResult

// Decide answers a set without running it, if it was answered before or is for another head.
func (o Outcomes) Decide(set providers.ChangeSet, head providers.Revision) (result providers.CommitResult, known bool, err error) {
	result, known = o[set.Op]
	switch {
	case known && result.Committed:
		return copyResult(result), true, nil
	case known, set.Base != "" && set.Base != head:
		if set.Op != "" {
			o[set.Op] = providers.CommitResult{}
		}
		return providers.CommitResult{}, true, providers.ErrConflict
	}
	return providers.CommitResult{}, false, nil
}

// Made records the result of a set.
func (o Outcomes) Made(set providers.ChangeSet, result providers.CommitResult) {
	if set.Op != "" {
		o[set.Op] = copyResult(result)
	}
}

// copyResult separates the recorded result from the caller's, which may change it.
func copyResult(r providers.CommitResult) providers.CommitResult {
	r.Entries = slices.Clone(r.Entries)
	return r
}

// readBodies reads all content before the lock is taken.
func readBodies(ctx context.Context, changes []providers.Change) ([][]byte, error) {
	bodies := make([][]byte, len(changes))
	for i, change := range changes {
		if change.Delete {
			continue
		}
		var err error
		if bodies[i], err = whole(ctx, change.Body); err != nil {
			return nil, err
		}
	}
	return bodies, nil
}
