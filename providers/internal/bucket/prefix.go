package bucket

import (
	"context"
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// checkPrefix refuses a prefix that is an object itself, or has one above it: a file where the
// root of the tree has to be a directory. Keys below a file are in no listing of some services,
// so that files written there would be missing from every other mount. Other directories beside a
// file have names that say so; a root has no name.
//
// Where the credentials may not look, as with a right to the keys below the prefix alone, the
// prefix is taken as it is.
func (p *Provider) checkPrefix(ctx context.Context) error {
	var checks []func() error
	for i, c := range p.prefix {
		if c == '/' {
			checks = append(checks, func() error { return p.checkAbove(ctx, p.prefix[:i]) })
		}
	}
	return Together(checks...)
}

func (p *Provider) checkAbove(ctx context.Context, key string) error {
	_, err := p.headAlone(ctx, key)
	switch {
	case err == nil:
		return Invalid("prefix %q: %q in bucket %q is an object, so it cannot be a directory too; choose another prefix, or rename or delete the object",
			strings.TrimSuffix(p.prefix, "/"), key, p.name)
	case errors.Is(err, providers.ErrUnavailable), ctx.Err() != nil:
		return err
	}
	return nil
}
