package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Large content goes out in parts, several at a time, where the remote takes them (AbilityParts).
// No reader of the remote sees any of it before all has arrived, and the condition is checked when
// it becomes the content. A part that breaks off is sent again by itself.
//
// No part goes before the content is closed or synced: an upload has its attributes, the time of
// the last change among them, from its beginning.
const (
	partSize    = 8 << 20
	partsAtOnce = 16 // of all files: far away, one stream is far below the line's capacity
)

// inPartsFrom is the least size of content that goes out in parts: smaller content takes one
// request.
func (x *Executor) inPartsFrom() int64 { return 2 * x.o.PartSize }

// partsOf is the size of the parts of content, at least part, or 0 for content that goes out
// whole.
func partsOf(size, part int64, limits providers.PartLimits) int64 {
	part = max(part, limits.Min)
	if size < 2*part {
		return 0
	}
	if limits.Count > 0 {
		part = max(part, (size+int64(limits.Count)-1)/int64(limits.Count))
	}
	if limits.Max > 0 && part > limits.Max {
		return 0 // the remote itself refuses it as too large
	}
	return part
}

// send sends content to a name, in one request or in parts.
func (x *Executor) send(ctx context.Context, s *Try, p *Payload, opts providers.WriteOptions) (providers.Info, error) {
	parter, can := providers.As[providers.Multiparter](x.o.Provider)
	if most := x.caps.MaxSize; most > 0 && p.snap != nil && p.snap.Size() > most {
		err := fmt.Errorf("%d bytes, and it takes %d: %w", p.snap.Size(), most, providers.ErrTooLarge)
		return providers.Info{}, providers.Fail(x.o.Name, providers.MethodWrite, s.At, err, nil)
	}
	if can && p.snap != nil {
		if part := partsOf(p.snap.Size(), x.o.PartSize, x.caps.Parts); part > 0 {
			return x.sendParts(ctx, s, p, parter, x.pieces(p, part), opts)
		}
	}
	return x.o.Provider.Write(ctx, s.At, p.Body(s.Sent), opts)
}

// sendParts is send for content that goes out in parts.
func (x *Executor) sendParts(ctx context.Context, s *Try, p *Payload, parter providers.Multiparter, parts []piece, opts providers.WriteOptions) (providers.Info, error) {
	up, err := parter.StartParts(ctx, s.At, opts)
	if err != nil {
		return providers.Info{}, err
	}
	if err = x.eachPart(ctx, s, p, up, parts); err == nil {
		var info providers.Info
		if info, err = up.Complete(ctx); err == nil {
			return info, nil
		}
	}
	// Parts that are not freed now, because the remote does not answer, are freed a day later.
	abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	if aerr := up.Abort(abort); aerr != nil {
		x.o.Log.Debug("parts of an upload stay at the store for now", "path", s.At, "err", aerr)
	}
	return providers.Info{}, err
}

const abortTime = 10 * time.Second

// eachPart sends all parts, and returns the first error, which ends those that are under way.
func (x *Executor) eachPart(ctx context.Context, s *Try, p *Payload, up providers.Upload, parts []piece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	for i, one := range parts {
		if !x.slot(ctx) {
			break
		}
		work.Go(func() {
			defer func() { <-x.slots }()
			if err := x.sendPart(ctx, s, p, up, i+1, one); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// isRemoved reports whether an operation has nothing left to send: neither a name of its inode,
// nor another inode under its name.
func (x *Executor) isRemoved(s *Try) bool {
	v := x.o.Tree.Lock()
	defer x.o.Tree.Unlock()
	n := v.Inode(s.Ino)
	return v.Record(s.Link).Ino == 0 && (n == nil || len(n.Links) == 0)
}

// slot waits until one more part may go, and reports false when ctx ends.
func (x *Executor) slot(ctx context.Context) bool {
	select {
	case x.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// sendPart sends one part, again when it breaks off. ErrAgain says that the file was removed. One
// that is replaced goes on: if it is saved more often than it can be sent, it would never arrive.
func (x *Executor) sendPart(ctx context.Context, s *Try, p *Payload, up providers.Upload, n int, one piece) error {
	return x.o.Volume.Retry(ctx, func(ctx context.Context) error {
		if x.isRemoved(s) {
			return ErrAgain
		}
		if one.copied {
			err := up.CopyPart(ctx, n, s.At, providers.ReadOptions{Version: p.base.Version, Offset: one.off, Length: one.size})
			if !cannotCopy(err) {
				return err
			}
		}
		own := &Payload{} // each part fails for itself
		section := io.NewSectionReader(p.snap, one.off, one.size)
		body := &counted{r: section, p: own, sent: s.Sent}
		err := up.Part(ctx, n, providers.Body{Size: one.size, Reader: body})
		if err != nil {
			body.sent(-body.read)
		}
		if own.Failed != nil && errors.Is(err, providers.ErrBody) {
			return own.Failed // its kind tells whether it passes
		}
		return err
	})
}
