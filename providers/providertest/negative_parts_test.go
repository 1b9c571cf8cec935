package providertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// brokenUpload is an upload of the memory provider, with mistakes.
type brokenUpload struct {
	providers.Upload
	part func(ctx context.Context, n int, body providers.Body) error
	copy func(ctx context.Context, n int, from providers.Locator, o providers.ReadOptions) error
}

func (u *brokenUpload) Part(ctx context.Context, n int, body providers.Body) error {
	if u.part != nil {
		return u.part(ctx, n, body)
	}
	return u.Upload.Part(ctx, n, body)
}

func (u *brokenUpload) CopyPart(ctx context.Context, n int, from providers.Locator, o providers.ReadOptions) error {
	if u.copy != nil {
		return u.copy(ctx, n, from, o)
	}
	return u.Upload.CopyPart(ctx, n, from, o)
}

// uploads gives every upload of a provider a mistake.
func uploads(b *broken, p *memory.Provider, change func(u *brokenUpload, l providers.Locator, o *providers.WriteOptions)) {
	b.start = func(ctx context.Context, l providers.Locator, o providers.WriteOptions) (providers.Upload, error) {
		u := &brokenUpload{}
		if o.If.Kind != providers.ConditionMissing {
			change(u, l, &o)
		}
		inner, err := p.StartParts(ctx, l, o)
		u.Upload = inner
		return u, err
	}
}

func partNumbersAreIgnored(b *broken, p *memory.Provider) {
	uploads(b, p, func(u *brokenUpload, _ providers.Locator, _ *providers.WriteOptions) {
		var count atomic.Int64
		u.part = func(ctx context.Context, _ int, body providers.Body) error {
			return u.Upload.Part(ctx, int(count.Add(1)), body)
		}
	})
}

func partsCanBeSeen(b *broken, p *memory.Provider) {
	uploads(b, p, func(u *brokenUpload, l providers.Locator, _ *providers.WriteOptions) {
		u.part = func(ctx context.Context, n int, body providers.Body) error {
			p.Tamper(l, []byte("half of it"))
			return u.Upload.Part(ctx, n, body)
		}
	})
}

func partsOfAnyVersion(b *broken, p *memory.Provider) {
	uploads(b, p, func(u *brokenUpload, _ providers.Locator, _ *providers.WriteOptions) {
		u.copy = func(ctx context.Context, n int, from providers.Locator, o providers.ReadOptions) error {
			info, err := p.Stat(ctx, from)
			o.Version = info.Version
			if err != nil {
				return err
			}
			return u.Upload.CopyPart(ctx, n, from, o)
		}
	})
}

func partsWithoutCondition(b *broken, p *memory.Provider) {
	uploads(b, p, func(_ *brokenUpload, _ providers.Locator, o *providers.WriteOptions) {
		o.If = providers.Unconditional()
	})
}

func leftPartsStay(b *broken, _ *memory.Provider) {
	b.abort = func(context.Context, time.Time) (int, error) { return 0, nil }
}

func completeOnce(b *broken, p *memory.Provider) {
	uploads(b, p, func(u *brokenUpload, _ providers.Locator, o *providers.WriteOptions) { o.Op = "" })
}
