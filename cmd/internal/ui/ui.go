// Package ui serves one mount to a person's browser: the changes by turn, conflicts with a
// button for each side, the history of a file, unsent changes, and the mount's state.
//
// It promises that
//
//   - only the address 127.0.0.1 is listened on, and only the browser that was given the
//     one-time address is answered (package comment of gate.go);
//   - a page shows and does only things that the control API allows to the user of this
//     process, as the commands of wsmount do: it has no other way to the files;
//   - nothing is loaded from elsewhere, and everything can be read, and done, without
//     JavaScript, which only keeps the page up to date;
//   - names and contents are shown as text, with any content, and are cut with a note if they
//     are too long;
//   - it speaks of one mount, as package attach has it, and says so when that has ended.
//
// One use:
//
//	mount, err := ui.At(stateRoot, "/mnt/ws")
//	err = ui.Serve(ctx, mount, ui.Options{Ready: func(url string) error { ... }})
package ui

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/attach"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// A Client is the part of *control.Client that the pages need.
type Client interface {
	Status(ctx context.Context) (control.Status, error)
	Log(ctx context.Context, r control.LogRequest) (control.LogResult, error)
	Diff(ctx context.Context, r control.DiffRequest) (control.DiffResult, error)
	Restore(ctx context.Context, r control.RestoreRequest) (control.RestoreResult, error)
	Conflicts(ctx context.Context) (control.ConflictsResult, error)
	ConflictContent(ctx context.Context, path, side string) (io.ReadCloser, error)
	Resolve(ctx context.Context, r control.ResolveRequest, content io.Reader) (control.ResolveResult, error)
	Sync(ctx context.Context, r control.SyncRequest) (control.EventResult, error)

	// Answering and Patient end calls to a daemon that hangs.
	Answering(ctx context.Context) (context.Context, context.CancelFunc)
	Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc)
}

// A Mount is the mount that the pages show.
type Mount struct {
	Workspace, Mountpoint string

	// Reach finds the mount as it is now. The error says why it cannot be shown any
	// more, or not now.
	Reach func() (Client, error)
}

// At is the mount at a mount point.
func At(root, path string) (Mount, error) {
	m, err := attach.To(root, path, "ui")
	return Mount{m.Workspace, m.Mountpoint, func() (Client, error) {
		c, _, err := m.Reach()
		return c, err
	}}, err
}

// Options of Serve; the zero value works.
type Options struct {
	Port    int    // 0: the kernel chooses one that is free
	Version string // of this program

	// Ready, if not nil, is called once with the address that lets one browser in, after the
	// port is open. An error of it ends Serve.
	Ready func(url string) error
}

// endLimit is how long answers under way may take when Serve ends.
const endLimit = 2 * time.Second

// Serve answers until ctx ends.
func Serve(ctx context.Context, m Mount, o Options) error {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		return exit.New(exit.Failed, "the page cannot be served: %w", err).Hint("without --port a port that is free is chosen")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(m, l.Addr().(*net.TCPAddr).Port, o.Version)
	h := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)} // browsers that hung up
	go s.live.watch(ctx, lookEvery, s.look)
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	if o.Ready != nil {
		err = o.Ready(s.gate.address())
	}
	if err == nil {
		select {
		case err = <-served:
		case <-ctx.Done():
		}
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer stop()
	if h.Shutdown(ending) != nil {
		h.Close()
	}
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return exit.From(err)
}

// A server answers for one mount.
type server struct {
	m       Mount
	version string
	gate    *gate
	live    *live
	done    *notices
	now     func() time.Time
}

func newServer(m Mount, port int, version string) *server {
	return &server{m: m, version: version, gate: newGate(port), live: newLive(), done: &notices{}, now: time.Now}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page(overview))
	mux.HandleFunc("GET /changes", s.page(changes))
	mux.HandleFunc("GET /file", s.page(file))
	mux.HandleFunc("GET /diff", s.page(diff))
	mux.HandleFunc("GET /conflicts", s.page(conflicts))
	mux.HandleFunc("GET /conflict", s.page(conflict))
	mux.HandleFunc("GET /queue", s.page(queue))
	mux.HandleFunc("GET /restore", s.page(restorePlan))
	mux.HandleFunc("GET /done", s.page(s.done.page))
	mux.HandleFunc("GET /", s.page(notFound))
	mux.HandleFunc("GET /side", s.side)
	mux.HandleFunc("GET /live", s.stream)
	mux.HandleFunc("POST /resolve", s.act(resolve))
	mux.HandleFunc("POST /restore", s.act(restore))
	mux.HandleFunc("POST /commit", s.act(commit))
	return s.gate.guard(mux, s.refused)
}

// reach returns the mount as it is now, and its status.
func (s *server) reach(ctx context.Context) (Client, control.Status, error) {
	c, err := s.m.Reach()
	if err != nil {
		return nil, control.Status{}, err
	}
	st, err := c.Status(ctx)
	return c, st, s.why(ctx, err)
}

// why is attach.Why.
func (s *server) why(ctx context.Context, err error) error {
	return attach.Why(ctx, err, func() error {
		_, gone := s.m.Reach()
		return gone
	})
}
