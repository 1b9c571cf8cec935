package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/providers"
)

// Large content goes out in parts, several at a time, where the backend takes
// them (AbilityParts). Nothing of it is to be seen there before all has arrived,
// and the condition is asked when it becomes the content. A part that breaks off
// is sent again by itself.
//
// No part goes before the content is closed or synced: an upload has its
// attributes, the time of the last change among them, from its beginning.
const (
	partSize    = 8 << 20
	partsAtOnce = 16 // of all files: far away, one stream is far from what the line carries
)

// inPartsFrom is how large content is at least that goes out in parts: what is
// smaller takes one request.
func (v *Volume) inPartsFrom() int64 { return 2 * cmp.Or(v.o.part, partSize) }

// partsOf is how content of a size is cut, in parts of at least a size, or 0 for
// content that goes out whole.
func partsOf(size, part int64, limits providers.PartLimits) int64 {
	part = max(part, limits.Min)
	if size < 2*part {
		return 0
	}
	if limits.Count > 0 {
		part = max(part, (size+int64(limits.Count)-1)/int64(limits.Count))
	}
	if limits.Max > 0 && part > limits.Max {
		return 0 // the backend says itself that it is too much
	}
	return part
}

// send sends content to a name, in one request or in parts.
func (e *executor) send(ctx context.Context, s *operation, p *payload, opts providers.WriteOptions) (providers.Info, error) {
	parter, can := providers.As[providers.Multiparter](e.v.p)
	if most := e.v.caps.MaxSize; most > 0 && p.snap != nil && p.snap.Size() > most {
		err := fmt.Errorf("%d bytes, and it takes %d: %w", p.snap.Size(), most, providers.ErrTooLarge)
		return providers.Info{}, providers.Fail(e.v.o.Provider, providers.MethodWrite, s.At, err, nil)
	}
	if can && p.snap != nil {
		if part := partsOf(p.snap.Size(), cmp.Or(e.v.o.part, partSize), e.v.caps.Parts); part > 0 {
			return e.sendParts(ctx, s, p, parter, e.pieces(p, part), opts)
		}
	}
	return e.v.p.Write(ctx, s.At, p.body(func(n int) { e.progress(s, n) }), opts)
}

// sendParts is send for what goes out in parts.
func (e *executor) sendParts(ctx context.Context, s *operation, p *payload, parter providers.Multiparter, parts []piece, opts providers.WriteOptions) (providers.Info, error) {
	up, err := parter.StartParts(ctx, s.At, opts)
	if err != nil {
		return providers.Info{}, err
	}
	if err = e.eachPart(ctx, s, p, up, parts); err == nil {
		var info providers.Info
		if info, err = up.Complete(ctx); err == nil {
			return info, nil
		}
	}
	// What is not freed now, because nothing answers, freeParts frees later.
	abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	if aerr := up.Abort(abort); aerr != nil {
		e.v.o.Log.Debug("parts of an upload stay at the backend for now", "path", s.At, "err", aerr)
	}
	return providers.Info{}, err
}

const abortTime = 10 * time.Second

// eachPart sends all parts, and gives the first error.
func (e *executor) eachPart(ctx context.Context, s *operation, p *payload, up providers.Upload, parts []piece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	for i, one := range parts {
		if !e.slot(ctx) {
			break
		}
		work.Go(func() {
			defer func() { <-e.slots }()
			if err := e.sendPart(ctx, s, p, up, i+1, one); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// slot waits until one more part may go, and reports false when ctx ends.
func (e *executor) slot(ctx context.Context) bool {
	select {
	case e.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// sendPart sends one part, again when it breaks off.
func (e *executor) sendPart(ctx context.Context, s *operation, p *payload, up providers.Upload, n int, one piece) error {
	return e.v.retry(ctx, func(ctx context.Context) error {
		if one.copied {
			err := up.CopyPart(ctx, n, s.At, providers.ReadOptions{Version: p.base.Version, Offset: one.off, Length: one.size})
			if !cannotCopy(err) {
				return err
			}
		}
		own := &payload{} // each part fails for itself
		section := io.NewSectionReader(p.snap, one.off, one.size)
		body := &counted{r: section, p: own, sent: func(n int) { e.progress(s, n) }}
		err := up.Part(ctx, n, providers.Body{Size: one.size, Reader: body})
		if err != nil {
			body.sent(-body.read)
		}
		if own.failed != nil && errors.Is(err, providers.ErrBody) {
			return own.failed // which says whether it passes
		}
		return err
	})
}

// partsLeft is how old an upload is that nobody completes any more: its program
// was killed, or lost its network for good.
const partsLeft = 24 * time.Hour

// freeParts frees, after a while and then once a day, what uploads left that were
// never completed.
func (v *Volume) freeParts(parter providers.Multiparter, wait time.Duration) {
	if sleep(v.ctx, wait) != nil {
		return
	}
	for {
		w := v.wait(nil, v.o.Patience)
		n, err := parter.AbortParts(w, v.o.Now().Add(-partsLeft))
		w.close()
		v.Ended(chores.Parts, err)
		if n > 0 {
			v.o.Log.Info("uploads that were never completed are freed", "count", n)
		}
		if sleep(v.ctx, partsLeft) != nil {
			return
		}
	}
}
