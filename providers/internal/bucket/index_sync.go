package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

const (
	segmentsAt  = Own + "/hints/"
	segmentMax  = 64 << 20 // bytes; larger ones are not read
	segmentMany = 32       // segments that are worth merging
	segmentHeap = 256      // as many are merged however large the largest is
	atOnce      = 32       // requests
)

// segmentIndex is an index whose segments the caller may read and write: it holds io.
type segmentIndex struct{ *index }

// start reads the segments that Open's LIST found, in the background. The
// first listing waits for that.
func (x *index) start(found []Item, writing bool) {
	x.mu.Lock()
	x.looked, x.writing = x.objects.now(), writing
	x.mu.Unlock()
	go func() {
		defer close(x.loaded)
		x.io.Lock()
		defer x.io.Unlock()
		if s := (segmentIndex{x}); s.read(x.ctx, found) {
			s.look(x.ctx)
		}
	}()
}

// wait waits for the first reading, with a limit.
func (x *index) wait(ctx context.Context) {
	select {
	case <-x.loaded: // most often
		return
	default:
	}
	t := time.NewTimer(indexWait)
	defer t.Stop()
	select {
	case <-x.loaded:
	case <-ctx.Done():
	case <-x.ctx.Done():
	case <-t.C:
	}
}

// refresh looks for segments of other mounts, if the last look is long ago.
func (x *index) refresh(ctx context.Context) bool {
	x.mu.Lock()
	due := x.objects.now().Sub(x.looked) >= indexFresh
	x.mu.Unlock()
	if !due || !x.io.TryLock() { // the holder may take long
		return false
	}
	defer x.io.Unlock()
	ctx, cancel := context.WithTimeout(ctx, indexWait)
	defer cancel()
	segmentIndex{x}.look(ctx)
	return true
}

// look lists the segments and reads those that are new.
func (x segmentIndex) look(ctx context.Context) bool {
	for range 3 { // another mount may merge segments meanwhile
		x.mu.Lock()
		x.looked = x.objects.now()
		x.mu.Unlock()
		answer, err := x.objects.list(ctx, Query{Prefix: x.objects.prefix + segmentsAt})
		if err != nil {
			x.log.DebugContext(ctx, "segments cannot be listed", "error", err)
			return false
		}
		there := map[string]bool{}
		for _, it := range answer.Items {
			there[it.Key] = true
		}
		maps.DeleteFunc(x.segments, func(key string, _ int64) bool { return !answer.More && !there[key] })
		if !x.read(ctx, answer.Items) {
			return true
		}
	}
	return true
}

// read reads those of the items that are segments and were not read. missed
// says that one is gone again.
func (x segmentIndex) read(ctx context.Context, items []Item) (missed bool) {
	var fresh []Item
	for _, it := range items {
		_, done := x.segments[it.Key]
		_, bad := x.bad[it.Key]
		if strings.HasPrefix(it.Key, x.objects.prefix+segmentsAt) && !it.IsDir && !done && !bad {
			fresh = append(fresh, it)
		}
	}
	slices.SortFunc(fresh, byKey)
	var mu sync.Mutex // guards the results of the requests
	found := make([][]keyedRecord, len(fresh))
	each(len(fresh), 8, func(i int) {
		key := fresh[i].Key
		all, err := x.fetch(ctx, key)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			found[i] = all
			x.segments[key] = fresh[i].Size
		case errors.Is(err, providers.ErrNotExist):
			missed = true
		case ctx.Err() != nil, errors.Is(err, providers.ErrUnavailable):
			x.log.DebugContext(ctx, "a segment cannot be read now", "key", key, "error", err)
		default:
			x.bad[key] = struct{}{}
			x.log.WarnContext(ctx, "a segment of the attribute index is ignored", "key", key, "error", err)
		}
	})
	for _, all := range found { // in the order in which they were written
		x.merge(all)
	}
	return missed
}

// fetch reads one segment.
func (x *index) fetch(ctx context.Context, key string) ([]keyedRecord, error) {
	o, body, err := x.objects.store.Get(ctx, key, Range{})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if o.Size < 0 || o.Size > segmentMax {
		return nil, fmt.Errorf("%d bytes: %w", o.Size, providers.ErrTooLarge)
	}
	b := make([]byte, o.Size)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnavailable, err)
	}
	return decodeSegment(b, x.most)
}

// plan has changes written soon.
func (x lockedIndex) plan() {
	switch {
	case x.closed:
	case x.timer == nil:
		x.timer = time.AfterFunc(x.delay, x.run)
	case len(x.dirty)+len(x.gone) == indexBatch && x.delay == indexDelay:
		x.timer.Reset(0)
	}
}

// run writes the planned changes, and plans again.
func (x *index) run() {
	ctx, cancel := context.WithTimeout(x.ctx, indexSend)
	defer cancel()
	x.io.Lock()
	defer x.io.Unlock()
	s := segmentIndex{x}
	err := s.write(ctx)
	if err == nil && s.isMany() {
		err = s.compact(ctx)
	}
	if x.ended != nil && x.ctx.Err() == nil { // Close makes the write that it interrupts itself
		x.ended(indexWork, err)
	}
	locked := x.lock()
	defer x.mu.Unlock()
	if err == nil {
		x.delay = indexDelay
	} else {
		x.delay = min(2*x.delay, indexPause)
		x.log.DebugContext(ctx, "the attribute index waits to be written", "error", err)
	}
	x.timer = nil
	if len(x.dirty)+len(x.gone) > 0 {
		locked.plan()
	}
}

// write writes changes to a segment of their own.
func (x segmentIndex) write(ctx context.Context) error {
	x.mu.Lock()
	dirty, gone := x.dirty, x.gone
	x.dirty, x.gone = map[uint64]struct{}{}, map[uint64]uint32{}
	all := make([]keyedRecord, 0, len(dirty)+len(gone))
	for id := range dirty {
		all = append(all, keyedRecord{id, x.known[id]})
	}
	for id, at := range gone {
		all = append(all, keyedRecord{id, record{at: at, bits: recordGone}})
	}
	x.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	err := x.send(ctx, all)
	if err == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range dirty {
		if _, there := x.known[id]; there {
			x.dirty[id] = struct{}{}
		}
	}
	for id, at := range gone {
		if _, there := x.known[id]; !there {
			x.gone[id] = max(x.gone[id], at) // it may have been made and removed again meanwhile
		}
	}
	return err
}

// send puts a new segment, whose name sorts behind the older ones.
func (x segmentIndex) send(ctx context.Context, all []keyedRecord) error {
	key := fmt.Sprintf("%s%s%011x-%s", x.objects.prefix, segmentsAt, x.objects.now().UnixMilli(), rand.Text()[:10])
	b := encodeSegment(all)
	if _, err := x.objects.put(ctx, key, bytesBody(b), meta{}, providers.IfAbsent()); err != nil {
		return err
	}
	x.segments[key] = int64(len(b))
	return nil
}

// isMany reports whether segments should be merged: the largest is only written anew when there
// is something to gain.
func (x segmentIndex) isMany() bool {
	var sum, largest int64
	for _, size := range x.segments {
		sum, largest = sum+size, max(largest, size)
	}
	n := len(x.segments)
	return n >= segmentMany && sum-largest >= largest/8 || n >= segmentHeap
}

// compact makes one segment of all known records, and then removes the old ones. No other mount
// is harmed at any moment: one that does the same leaves another segment of the same records; one
// that finds a segment gone lists again. A segment that cannot be read stays.
func (x segmentIndex) compact(ctx context.Context) error {
	if !x.look(ctx) {
		return nil
	}
	old := slices.Collect(maps.Keys(x.segments))
	x.mu.Lock()
	all := make([]keyedRecord, 0, len(x.known))
	for id, known := range x.known {
		if !known.is(recordAssumed) {
			all = append(all, keyedRecord{id, known})
		}
	}
	x.mu.Unlock()
	if err := x.send(ctx, all); err != nil {
		return err
	}
	x.log.DebugContext(ctx, "attribute index", "records", len(all), "segments", len(old))
	var mu sync.Mutex
	each(len(old), atOnce, func(i int) {
		err := x.objects.remove(ctx, old[i], "")
		if err != nil && !errors.Is(err, providers.ErrNotExist) {
			x.log.DebugContext(ctx, "a segment stays", "error", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		delete(x.segments, old[i])
	})
	return nil
}

// close writes the last changes, in a short time and a shorter one if the
// writing before failed.
func (x *index) close() {
	x.cancel()
	x.mu.Lock()
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
	wait := indexClose
	if x.delay > indexDelay {
		wait /= 3
	}
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	x.io.Lock() // its holder ends with x.ctx
	defer x.io.Unlock()
	if err := (segmentIndex{x}).write(ctx); err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.log.WarnContext(ctx, "the attribute index in the bucket lacks the last changes: the next mount asks for the objects", "changes", len(x.dirty)+len(x.gone), "error", err)
	}
}
