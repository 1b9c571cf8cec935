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
	sidecars    = Own + "/hints/"
	sidecarMax  = 64 << 20 // bytes; others are not read
	sidecarMany = 32       // sidecars that are worth making one of
	sidecarHeap = 256      // as many as that are too many, however large the largest
	atOnce      = 32       // requests
)

// start takes what Open's LIST found, and reads it while others go on. The
// first listing waits for that.
func (h *hints) start(found []Item, writing bool) {
	h.mu.Lock()
	h.looked, h.writing = h.objects.now(), writing
	h.mu.Unlock()
	go func() {
		defer close(h.loaded)
		h.io.Lock()
		defer h.io.Unlock()
		if h.read(h.ctx, found) {
			h.look(h.ctx)
		}
	}()
}

// wait waits for the first reading, and not for ever.
func (h *hints) wait(ctx context.Context) {
	select {
	case <-h.loaded: // most often
		return
	default:
	}
	t := time.NewTimer(hintsWait)
	defer t.Stop()
	select {
	case <-h.loaded:
	case <-ctx.Done():
	case <-h.ctx.Done():
	case <-t.C:
	}
}

// refresh looks whether others have written sidecars, if nobody has for long.
func (h *hints) refresh(ctx context.Context) bool {
	h.mu.Lock()
	due := h.objects.now().Sub(h.looked) >= hintsFresh
	h.mu.Unlock()
	if !due || !h.io.TryLock() { // who holds it may take long
		return false
	}
	defer h.io.Unlock()
	ctx, cancel := context.WithTimeout(ctx, hintsWait)
	defer cancel()
	h.look(ctx)
	return true
}

// look lists the sidecars and reads those that are new. io is held.
func (h *hints) look(ctx context.Context) bool {
	for range 3 { // somebody may make one of many meanwhile
		h.mu.Lock()
		h.looked = h.objects.now()
		h.mu.Unlock()
		answer, err := h.objects.list(ctx, Query{Prefix: h.objects.prefix + sidecars})
		if err != nil {
			h.log.DebugContext(ctx, "sidecars cannot be listed", "error", err)
			return false
		}
		there := map[string]bool{}
		for _, it := range answer.Items {
			there[it.Key] = true
		}
		maps.DeleteFunc(h.segments, func(key string, _ int64) bool { return !answer.More && !there[key] })
		if !h.read(ctx, answer.Items) {
			return true
		}
	}
	return true
}

// read reads those of the items that are sidecars and were not read. missed
// says that one is gone again. io is held.
func (h *hints) read(ctx context.Context, items []Item) (missed bool) {
	var fresh []Item
	for _, it := range items {
		_, done := h.segments[it.Key]
		_, bad := h.bad[it.Key]
		if strings.HasPrefix(it.Key, h.objects.prefix+sidecars) && !it.IsDir && !done && !bad {
			fresh = append(fresh, it)
		}
	}
	slices.SortFunc(fresh, byKey)
	var mu sync.Mutex // guards what the requests lead to
	found := make([][]keyed, len(fresh))
	each(len(fresh), 8, func(i int) {
		key := fresh[i].Key
		all, err := h.fetch(ctx, key)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			found[i] = all
			h.segments[key] = fresh[i].Size
		case errors.Is(err, providers.ErrNotExist):
			missed = true
		case ctx.Err() != nil, errors.Is(err, providers.ErrUnavailable):
			h.log.DebugContext(ctx, "a sidecar cannot be read now", "key", key, "error", err)
		default:
			h.bad[key] = struct{}{}
			h.log.WarnContext(ctx, "hints of attributes are ignored", "key", key, "error", err)
		}
	})
	for _, all := range found { // in the order in which they were written
		h.merge(all)
	}
	return missed
}

// fetch reads one sidecar.
func (h *hints) fetch(ctx context.Context, key string) ([]keyed, error) {
	o, body, err := h.objects.store.Get(ctx, key, Range{})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if o.Size < 0 || o.Size > sidecarMax {
		return nil, fmt.Errorf("%d bytes: %w", o.Size, providers.ErrTooLarge)
	}
	b := make([]byte, o.Size)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnavailable, err)
	}
	return decodeHints(b, h.most)
}

// plan has changes written soon. mu is held.
func (h *hints) plan() {
	switch {
	case h.closed:
	case h.timer == nil:
		h.timer = time.AfterFunc(h.delay, h.run)
	case len(h.dirty)+len(h.gone) == hintsBatch && h.delay == hintsDelay:
		h.timer.Reset(0)
	}
}

// run writes what was planned, and plans again.
func (h *hints) run() {
	ctx, cancel := context.WithTimeout(h.ctx, hintsSend)
	defer cancel()
	h.io.Lock()
	defer h.io.Unlock()
	err := h.write(ctx)
	if err == nil && h.isMany() {
		err = h.compact(ctx)
	}
	if h.ended != nil && h.ctx.Err() == nil { // what Close breaks off it does itself
		h.ended(hintsWork, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.delay = hintsDelay
	} else {
		h.delay = min(2*h.delay, hintsPause)
		h.log.DebugContext(ctx, "hints of attributes wait", "error", err)
	}
	h.timer = nil
	if len(h.dirty)+len(h.gone) > 0 {
		h.plan()
	}
}

// write writes changes to a sidecar of their own. io is held.
func (h *hints) write(ctx context.Context) error {
	h.mu.Lock()
	dirty, gone := h.dirty, h.gone
	h.dirty, h.gone = map[uint64]struct{}{}, map[uint64]uint32{}
	all := make([]keyed, 0, len(dirty)+len(gone))
	for id := range dirty {
		all = append(all, keyed{id, h.known[id]})
	}
	for id, at := range gone {
		all = append(all, keyed{id, hint{at: at, bits: hintGone}})
	}
	h.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	err := h.send(ctx, all)
	if err == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range dirty {
		if _, there := h.known[id]; there {
			h.dirty[id] = struct{}{}
		}
	}
	for id, at := range gone {
		if _, there := h.known[id]; !there {
			h.gone[id] = max(h.gone[id], at) // it may have been made and removed again meanwhile
		}
	}
	return err
}

// send puts a new sidecar, whose name sorts behind the older ones. io is held.
func (h *hints) send(ctx context.Context, all []keyed) error {
	key := fmt.Sprintf("%s%s%011x-%s", h.objects.prefix, sidecars, h.objects.now().UnixMilli(), rand.Text()[:10])
	b := encodeHints(all)
	if _, err := h.objects.put(ctx, key, bytesBody(b), meta{}, providers.IfAbsent()); err != nil {
		return err
	}
	h.segments[key] = int64(len(b))
	return nil
}

// isMany says that there are sidecars enough to make one of: the largest is
// only written anew when there is something to gain. io is held.
func (h *hints) isMany() bool {
	var sum, largest int64
	for _, size := range h.segments {
		sum, largest = sum+size, max(largest, size)
	}
	n := len(h.segments)
	return n >= sidecarMany && sum-largest >= largest/8 || n >= sidecarHeap
}

// compact makes one sidecar of all that is known, and then removes those whose
// hints are in it. No other mount is harmed at any moment: one that does the
// same leaves another sidecar of the same hints; one that finds a sidecar gone
// lists again. What cannot be read stays. io is held.
func (h *hints) compact(ctx context.Context) error {
	if !h.look(ctx) {
		return nil
	}
	old := slices.Collect(maps.Keys(h.segments))
	h.mu.Lock()
	all := make([]keyed, 0, len(h.known))
	for id, known := range h.known {
		if !known.is(hintAssumed) {
			all = append(all, keyed{id, known})
		}
	}
	h.mu.Unlock()
	if err := h.send(ctx, all); err != nil {
		return err
	}
	h.log.DebugContext(ctx, "hints of attributes", "hints", len(all), "sidecars", len(old))
	var mu sync.Mutex
	each(len(old), atOnce, func(i int) {
		err := h.objects.remove(ctx, old[i], "")
		if err != nil && !errors.Is(err, providers.ErrNotExist) {
			h.log.DebugContext(ctx, "a sidecar stays", "error", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		delete(h.segments, old[i])
	})
	return nil
}

// close writes the last changes, in a short time and a shorter one if the
// writing before failed.
func (h *hints) close() {
	h.cancel()
	h.mu.Lock()
	h.closed = true
	if h.timer != nil {
		h.timer.Stop()
	}
	wait := hintsClose
	if h.delay > hintsDelay {
		wait /= 3
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	h.io.Lock() // whoever has it ends with h.ctx
	defer h.io.Unlock()
	if err := h.write(ctx); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.log.WarnContext(ctx, "the attribute index in the bucket lacks the last changes: the next mount asks for the objects", "changes", len(h.dirty)+len(h.gone), "error", err)
	}
}
