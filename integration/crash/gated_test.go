package crash

import (
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/wsmount/wsmount/integration/internal/gate"
)

// gated is the way from a stage to a real server.
type gated struct {
	*stage
	verb func(*http.Request) string // what a request asks for, as traps name it

	mu   sync.Mutex
	open chan struct{} // closed: requests pass
}

func newGated(s *stage, way *gate.Gate, verb func(*http.Request) string) *gated {
	g := &gated{stage: s, verb: verb, open: make(chan struct{})}
	close(g.open)
	way.Set(g.guard)
	return g
}

// guard holds requests up, and traps one.
func (g *gated) guard(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-r.Context().Done():
		gate.Break()
	}
	tr := g.caught(g.verb(r))
	if tr == nil {
		pass.ServeHTTP(w, r)
		return
	}
	if tr.after {
		pass.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(tr.hit)
	<-tr.free
	gate.Break()
}

func (g *gated) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gated) connect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gated) clear() { g.connect() }
