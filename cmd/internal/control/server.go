package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
)

// Backend is the mount behind the API. Its methods may be called from many goroutines.
type Backend interface {
	Status() Status
	// Work is the work under way. It waits for nothing, not even a lock.
	Work() Work
	// Event emits an event and waits, within ctx, for the work that it starts.
	Event(ctx context.Context, r EventRequest) (EventResult, error)
	Subscribe(name string, handler func(lifecycle.Event)) (stop func())
	// Unmount takes the mount away. The daemon ends by itself afterwards.
	Unmount(r UnmountRequest) (UnmountResult, error)
	Debug() Debug
	// Hold keeps a mount that ends with the last of its users; the process is a user
	// until release.
	Hold(pid int) (release func(), err error)
}

// Options of a Server; the zero value works.
type Options struct {
	Log     *slog.Logger    // nil: silent
	Metrics http.Handler    // at /metrics; nil: none
	Copies  Copies          // nil: the mount has none, ever
	Allow   func(Peer) bool // the admitted peers; nil: root and the user of this process
}

// Server answers on a Unix socket until Close.
type Server struct {
	path string
	http *http.Server
	log  *slog.Logger
	b    Backend

	closing chan struct{} // closed by close: streams end
	close   func()
}

const (
	maxBody        = 1 << 20
	defaultTimeout = 60 * time.Second
	maxTimeout     = time.Hour
	heartbeat      = 15 * time.Second
)

type peerKey struct{}

// Listen makes the socket and answers in the background.
func Listen(path string, b Backend, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Allow == nil {
		o.Allow = sameUser
	}
	l, err := listen(path)
	if err != nil {
		return nil, err
	}
	s := &Server{path: path, log: o.Log, b: b, closing: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.http = &http.Server{Handler: s.contained(s.routes(o)), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c.(*knownConn).peer)
		}}
	go s.http.Serve(&guard{l, o.Log, o.Allow})
	return s, nil
}

func (s *Server) routes(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) { reply(w, s.b.Status()) })
	mux.HandleFunc("GET /v1/work", func(w http.ResponseWriter, r *http.Request) { reply(w, s.b.Work()) })
	mux.HandleFunc("GET /v1/debug", func(w http.ResponseWriter, r *http.Request) { reply(w, s.b.Debug()) })
	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/hold", s.hold)
	mux.HandleFunc("POST /v1/event", s.event)
	mux.HandleFunc("POST /v1/unmount", s.unmount)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	if o.Copies != nil {
		s.routeCopies(mux, o.Copies)
	}
	return mux
}

// contained answers a call that panicked, which is a fault of wsmount, and logs the
// stack. net/http would only hang up.
func (s *Server) contained(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch failed := recover(); failed {
			case nil:
			case http.ErrAbortHandler:
				panic(failed)
			default:
				s.log.Error("a control call failed inside wsmount", "call", r.URL.Path, "panic", failed, "stack", string(debug.Stack()))
				refuse(w, exit.New(exit.Failed, "%s failed inside wsmount: %v", r.URL.Path, failed).
					Hint("this is a fault of wsmount; the log of the mount says where"))
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// Close ends the server, lets requests that are under way finish until ctx
// ends, and removes the socket.
func (s *Server) Close(ctx context.Context) error {
	s.close()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return errors.Join(err, os.Remove(s.path))
}

// logged logs a call that changes something, with its caller.
func (s *Server) logged(r *http.Request, args ...any) {
	p, _ := r.Context().Value(peerKey{}).(Peer)
	s.log.Info("control call", append([]any{"call", r.URL.Path, "uid", p.UID, "pid", p.PID}, args...)...)
}

func (s *Server) event(w http.ResponseWriter, r *http.Request) {
	var req EventRequest
	if !read(w, r, &req) {
		return
	}
	s.logged(r, "event", req.Name, "at", req.At)
	ctx, cancel := s.patient(r.Context(), req.Timeout)
	defer cancel()
	res, err := s.b.Event(ctx, req)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, res)
}

func (s *Server) unmount(w http.ResponseWriter, r *http.Request) {
	var req UnmountRequest
	if !read(w, r, &req) {
		return
	}
	s.logged(r, "lazy", req.Lazy, "force", req.Force)
	res, err := s.b.Unmount(req)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, res)
}

// events streams the bus as server-sent events (HTML Living Standard,
// "Server-sent events") until the caller hangs up or the mount ends. A caller
// that reads too slowly misses events and is told how many.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		name = lifecycle.Any
	}
	if name != lifecycle.Any && !lifecycle.Known(name) {
		refuse(w, exit.New(exit.Usage, "unknown event %q", name).Hint("one of %s", strings.Join(lifecycle.Names(), ", ")))
		return
	}
	stream := make(chan lifecycle.Event)
	stop := s.b.Subscribe(name, func(e lifecycle.Event) {
		select {
		case stream <- e:
		case <-r.Context().Done():
		}
	})
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	s.stream(w, r.Context(), stream)
}

func (s *Server) stream(w http.ResponseWriter, ctx context.Context, events <-chan lifecycle.Event) {
	flush := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	fmt.Fprint(w, ": listening\n\n")
	for flush.Flush() == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.closing: // the bus has handed over everything by now
			return
		case <-beat.C:
			fmt.Fprint(w, ":\n\n")
		case e := <-events:
			body, err := exactjson.Marshal(e)
			if err != nil {
				continue // a payload of strings always marshals
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Name, body)
			if e.Name == "workspace-close" {
				flush.Flush()
				return
			}
		}
	}
}

// hold keeps the mount until the caller hangs up.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	p, _ := r.Context().Value(peerKey{}).(Peer)
	release, err := s.b.Hold(int(p.PID))
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	fmt.Fprintln(w, heldLine)
	if http.NewResponseController(w).Flush() != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

// heldLine is the answer to a caller that holds a mount.
const heldLine = "held"

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := exactjson.Read(d, v); err != nil {
		refuse(w, exit.New(exit.Usage, "the mount does not understand the request: %w", err).Hint("%s", otherVersion))
		return false
	}
	return true
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(exactjson.Escape(v)) // a caller that has hung up needs no answer
}

// httpStatus is the status for each exit code; any other is 500.
var httpStatus = map[exit.Code]int{
	exit.Usage:        http.StatusBadRequest,
	exit.Denied:       http.StatusForbidden,
	exit.Unresolvable: http.StatusNotFound,
	exit.Conflict:     http.StatusConflict,
	exit.Unreachable:  http.StatusBadGateway,
}

// HTTPStatus is the status of a refusal with an exit code.
func HTTPStatus(c exit.Code) int {
	if status, ok := httpStatus[c]; ok {
		return status
	}
	return http.StatusInternalServerError
}

func refuse(w http.ResponseWriter, err error) {
	e := exit.From(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(HTTPStatus(e.Code))
	_ = json.NewEncoder(w).Encode(exactjson.Escape(errorBody{ErrorSchema, e.What, e.Advice, int(e.Code)}))
}
