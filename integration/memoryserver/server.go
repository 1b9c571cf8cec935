// Package memoryserver gives other processes a provider of package memory, and has its Switches and
// content controlled from there: the store that tests of the program mount.
//
//	s := memoryserver.Serve(l, memory.New(memory.Options{}))
//	defer s.Close()
//	p, err := memoryserver.Dial(ctx, socket)
//	c, err := memoryserver.DialControl(ctx, "unix", socket)
package memoryserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

// Server gives other processes a provider of this one.
type Server struct {
	http http.Server
	done chan struct{}
}

// Serve answers Dial and DialControl on l, a Unix socket or a loopback port,
// until Close. It asks nobody who they are: whoever can reach l can read and
// change everything. The provider stays open when the server closes.
func Serve(l net.Listener, p providers.Provider) *Server {
	return serve(l, func(wire.Clone) (providers.Provider, controlled, error) {
		store, ok := p.(*memory.Provider)
		if !ok {
			return p, controlled{}, nil
		}
		return p, controlled{switches: store.Switches(), store: store}, nil
	})
}

// ServeRemote is Serve for the clones of a remote. Each name that DialClone
// gives is a clone of its own, made with opts when it is first named; so it
// outlives the programs that use it, as a directory of git does.
func ServeRemote(l net.Listener, remote *memoryrepo.Remote, opts memory.Options) *Server {
	type served struct {
		*memoryrepo.Repository
		branch string
	}
	var mu sync.Mutex // guards clones
	clones := map[string]served{}
	return serve(l, func(c wire.Clone) (providers.Provider, controlled, error) {
		mu.Lock()
		defer mu.Unlock()
		branch := cmp.Or(c.Branch, "main")
		r, ok := clones[c.Name]
		if !ok {
			r = served{memoryrepo.NewRepository(remote, branch, opts), branch}
			clones[c.Name] = r
		}
		if r.branch != branch {
			return nil, controlled{}, fmt.Errorf("clone %q tracks %q and not %q: %w", c.Name, r.branch, c.Branch, providers.ErrInvalid)
		}
		return r.Repository, controlled{switches: r.Switches(), remote: remote, branch: branch}, nil
	})
}

type finder func(wire.Clone) (providers.Provider, controlled, error)

func serve(l net.Listener, find finder) *Server {
	s := &Server{done: make(chan struct{})}
	s.http = http.Server{Handler: handler{find}, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // returns when the listener or the server is closed
	}()
	return s
}

// Close cuts all connections and frees the listener.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

type handler struct{ find finder }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := wire.NewIncoming(r.Body)
	q, err := wire.Next[wire.Request](in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result, body, err := h.call(r.Context(), q, in)
	if body != nil {
		defer body.Close()
	}
	if err != nil {
		err = wire.Send(w, wire.Reply{Failed: failureOf(err)})
	} else {
		err = wire.Send(w, wire.Reply{}, result)
	}
	if err == nil && body != nil {
		_, err = io.Copy(w, body)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client must not take this for the end
	}
}

// failureOf is an error as it is sent.
func failureOf(err error) *wire.Failure {
	f := &wire.Failure{Kind: providers.KindOf(err).Name, Cause: err.Error()}
	var e *providers.Error
	if errors.As(err, &e) {
		f.Op, f.Locator, f.Code, f.Cause = e.Op, e.Locator, e.Code, ""
		if e.Err != nil {
			f.Cause = e.Err.Error()
		}
	}
	return f
}

// call runs one verb. The body is that of a Read.
func (h handler) call(ctx context.Context, q wire.Request, in wire.Incoming) (result any, body io.ReadCloser, err error) {
	p, c, err := h.find(q.Clone)
	switch {
	case err != nil:
		return nil, nil, err
	case q.Method == methodControl:
		result, err = given(in, func(args control) (controlAnswer, error) { return c.obey(q.Locator, args) })
		return result, nil, err
	case q.Past == "":
		return call(ctx, p, q, in)
	}
	past, err := pastOf(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	return call(ctx, past, q, in) // its content may be read on; there is nothing to close
}

// pastOf is the revision that a client has opened.
func pastOf(ctx context.Context, p providers.Provider, q wire.Request) (providers.Provider, error) {
	if r, ok := p.(*memoryrepo.Repository); ok {
		return r.Past(q.Past)
	}
	s, ok := providers.As[providers.Snapshotter](p)
	if !ok {
		return nil, unsupported(q)
	}
	return s.At(ctx, q.Past)
}

// given reads the arguments of a verb and runs it. Nothing must be left to read
// when it runs: only then does its context end with the client.
func given[A, R any](in wire.Incoming, verb func(A) (R, error)) (R, error) {
	args, err := wire.Next[A](in)
	if err == nil {
		_, err = in.Rest.Peek(1)
	}
	if err != io.EOF {
		var none R
		return none, fmt.Errorf("more or less than a request: %w", errors.Join(err, providers.ErrInvalid))
	}
	return verb(args)
}

func call(ctx context.Context, p providers.Provider, q wire.Request, in wire.Incoming) (result any, body io.ReadCloser, err error) {
	switch q.Method {
	case wire.MethodHello:
		result = p.Capabilities()
	case providers.MethodStat:
		result, err = given(in, func(wire.Nothing) (providers.Info, error) { return p.Stat(ctx, q.Locator) })
	case providers.MethodList:
		result, err = given(in, func(o providers.ListOptions) (providers.Page, error) { return p.List(ctx, q.Locator, o) })
	case providers.MethodRead:
		var c providers.Content
		c, err = given(in, func(o providers.ReadOptions) (providers.Content, error) { return p.Read(ctx, q.Locator, o) })
		result, body = c.Info, c.Body
	case providers.MethodWrite:
		var o providers.WriteOptions
		if o, err = wire.Next[providers.WriteOptions](in); err == nil {
			result, err = p.Write(ctx, q.Locator, providers.Body{Reader: in.Rest, Size: q.Size}, o)
		}
	case providers.MethodDelete:
		result, err = given(in, func(o providers.DeleteOptions) (wire.Nothing, error) {
			return wire.Nothing{}, p.Delete(ctx, q.Locator, o)
		})
	case providers.MethodMkdir:
		result, err = given(in, func(o providers.MkdirOptions) (providers.Info, error) { return p.Mkdir(ctx, q.Locator, o) })
	default:
		result, err = callAbility(ctx, p, q, in)
	}
	return result, body, err
}
