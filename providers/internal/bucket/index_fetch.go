package bucket

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

const (
	askAll    = 8 // objects of a page that are all asked for
	askSample = 3 // else so many of them
)

// describe adds attributes to the entries of a page: from records, and by HEADs where those are
// worth their cost. All errors end here, as a listing promises no attributes.
func (x *index) describe(ctx context.Context, told []providers.Info, items []Item) {
	x.wait(ctx)
	which := make([]int, len(told))
	for i := range which {
		which[i] = i
	}
	which = x.fill(told, items, which)
	if len(which) > 0 && x.refresh(ctx) {
		which = x.fill(told, items, which)
	}
	if len(which) == 0 {
		return
	}
	unknown := make([]Item, 0, len(which))
	for _, i := range which {
		unknown = append(unknown, items[i])
	}
	x.ask(ctx, unknown)
	x.fill(told, items, which)
}

// ask fetches attributes of objects of a page that have no record. Few are all asked for. Of many
// it is a sample: if one has a mode, or is a link, a mount program wrote the bucket, and the
// attributes of the rest are worth a request each, once. If none has, a HEAD for each object of a
// bucket without attributes would be wasted. Links are small, and so are the samples.
func (x *index) ask(ctx context.Context, items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int {
		markers := cmp.Compare(btoi(isMarker(a.Key, a.Size)), btoi(isMarker(b.Key, b.Size)))
		return cmp.Or(markers, cmp.Compare(a.Size, b.Size))
	})
	sample := items
	if len(items) > askAll {
		sample = items[:askSample]
	}
	modes, ok := x.headAll(ctx, sample)
	rest := items[len(sample):]
	switch {
	case !ok:
	case modes:
		x.headAll(ctx, rest)
	default:
		x.assume(rest)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// headAll asks for objects, whose records are kept. modes reports that one has a mode or is a
// link; ok, that the service answered all. An object that it refuses to show, or of which it
// tells another time than the listing, is not asked for again.
func (x *index) headAll(ctx context.Context, items []Item) (modes, ok bool) {
	var mu sync.Mutex // guards the results
	ok = true
	var odd []Item
	each(len(items), atOnce, func(i int) {
		mu.Lock()
		stop := !ok
		mu.Unlock()
		if stop {
			return
		}
		it := items[i]
		o, err := x.objects.headAlone(ctx, it.Key)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			modes = modes || o.meta.attr.Valid&(providers.AttrMode|providers.AttrXattrs) != 0 || o.meta.kind == providers.KindSymlink
			r := recordOf(o)
			if r.check == recordCheck(it.ETag, it.Size) && !r.matches(it.ETag, it.Size, it.Modified) {
				odd = append(odd, it)
			}
		case errors.Is(err, providers.ErrNotExist):
		case ctx.Err() != nil, errors.Is(err, providers.ErrUnavailable), errors.Is(err, providers.ErrUnauthenticated):
			ok = false
			x.objects.log.DebugContext(ctx, "what a listing leaves out stays unknown", "error", err)
		default:
			odd = append(odd, it)
		}
	})
	x.assume(odd)
	return modes, ok
}
