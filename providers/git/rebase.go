package git

import (
	"context"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/rebase"
)

// Rebase implements providers.Rebaser.
func (p *Provider) Rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	return do(ctx, p, providers.MethodRebase, providers.Locator{}, func() (providers.Revision, error) {
		var c [3]id
		for i, r := range []providers.Revision{base, from, onto} {
			var err error
			if c[i], err = p.repo.commitOf(r); err != nil {
				return "", err
			}
		}
		in := rebase.Repository{Objects: p.repo.objects, Commit: p.repo.commit, Fetch: p.repo.partial.Need}
		made, err := rebase.Rebase(ctx, in, c[0], c[1], c[2], combine)
		return revision(made), err
	})
}
