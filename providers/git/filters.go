package git

import (
	"context"

	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// filters are those of a directory with that content, below others.
func (r *repository) filters(ctx context.Context, above *attributes.Filters, depth int, tree []byte) (*attributes.Filters, error) {
	file, ok, err := attributes.In(tree)
	if err != nil || !ok {
		return above, err
	}
	if err := r.partial.Need(ctx, file); err != nil {
		return above, err
	}
	return r.parsed.With(above, depth, file, func() ([]byte, error) { return r.attributes(file) })
}

// attributes is the content of a file of attributes.
func (r *repository) attributes(file id) ([]byte, error) {
	size, err := r.objects.Size(file)
	if err != nil || size > attributes.MaxSize {
		return nil, err
	}
	return r.objects.Get(file, odb.Blob)
}
