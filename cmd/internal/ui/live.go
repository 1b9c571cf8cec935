package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
)

const (
	lookEvery     = time.Second      // between looks at the mount while a page is open
	heartbeat     = 15 * time.Second // on an idle stream
	mostListeners = 64               // pages that are open at once
)

// live tells open pages when the mount has changed. It looks at the mount once for all of
// them, and not at all if none is open.
type live struct {
	mu        sync.Mutex // guards the fields below
	seen      string     // the state at the last look
	listeners map[chan string]struct{}
}

func newLive() *live { return &live{listeners: map[chan string]struct{}{}} }

// watch looks at the given interval, until ctx ends.
func (l *live) watch(ctx context.Context, every time.Duration, look func(context.Context) string) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if l.listening() {
			l.tell(look(ctx))
		}
	}
}

func (l *live) listening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners) > 0
}

// tell sends the seen state to each listener, if it is new. A listener that has not taken
// the one before gets only the newest.
func (l *live) tell(seen string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen == l.seen {
		return
	}
	l.seen = seen
	for c := range l.listeners {
		select {
		case <-c:
		default:
		}
		c <- seen
	}
}

// listen adds a listener; nil when there are too many.
func (l *live) listen() (seen <-chan string, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.listeners) >= mostListeners {
		return nil, func() {}
	}
	c := make(chan string, 1)
	l.listeners[c] = struct{}{}
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, c)
	}
}

// stream tells a page, as server-sent events (HTML Living Standard), when the mount
// differs from the state that the page has seen.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	changed, stop := s.live.listen()
	defer stop()
	if changed == nil {
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush, last := http.NewResponseController(w), r.URL.Query().Get("seen")
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	send := func(now string) {
		if now != last {
			last = now
			fmt.Fprintf(w, "event: change\ndata: %s\n\n", now)
		}
	}
	fmt.Fprint(w, ": listening\n\n")
	send(s.look(r.Context()))
	for flush.Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			fmt.Fprint(w, ":\n\n")
		case now := <-changed:
			send(now)
		}
	}
}

// look is a digest of the mount's state that changes whenever a page may.
func (s *server) look(ctx context.Context) string {
	_, st, err := s.reach(ctx)
	return seen(st, err)
}

// seen is a digest of a status, without fields that change all the time and show no event.
func seen(st control.Status, err error) string {
	var b []byte
	if err != nil {
		b = []byte(err.Error())
	} else {
		st.Taken, st.Operations, st.Notifications, st.OpenFiles, st.Fetching = time.Time{}, 0, 0, nil, control.Fetching{}
		parts := make([]control.Part, len(st.Parts))
		for i, p := range st.Parts {
			p.Inodes, p.OpenFiles, p.IOMode, p.Watch.Directories = 0, 0, "", 0
			if p.Copy != nil {
				c := *p.Copy
				c.Requests, c.Unreachable, c.Content = nil, 0, cache.ContentUsage{}
				p.Copy = &c
			}
			parts[i] = p
		}
		st.Parts = parts
		b, _ = exactjson.Marshal(st) // it came as JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
