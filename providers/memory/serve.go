package memory

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Server gives other processes a provider of this one.
type Server struct {
	http http.Server
	done chan struct{}
}

// Serve answers Dial on l, a Unix socket or a loopback port, until Close. It
// asks nobody who they are: whoever can reach l can read and change
// everything. The provider stays open when the server closes.
func Serve(l net.Listener, p providers.Provider) *Server {
	s := &Server{done: make(chan struct{})}
	s.http = http.Server{Handler: handler{p}, ReadHeaderTimeout: 10 * time.Second}
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

type handler struct{ p providers.Provider }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := bufio.NewReader(r.Body)
	var q request
	if err := receive(in, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, body := h.call(r.Context(), q, in)
	if body != nil {
		defer body.Close()
	}
	if err := send(w, a); err != nil {
		panic(http.ErrAbortHandler)
	}
	if body == nil {
		return
	}
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // the client must not take this for the end
	}
}

// call runs one verb. The body is that of a Read.
func (h handler) call(ctx context.Context, q request, in io.Reader) (a answer, body io.ReadCloser) {
	var err error
	switch q.Method {
	case methodHello:
		a.Capabilities = h.p.Capabilities()
	case providers.MethodStat:
		a.Info, err = h.p.Stat(ctx, q.Locator)
	case providers.MethodList:
		a.Page, err = h.p.List(ctx, q.Locator, q.List)
	case providers.MethodRead:
		var c providers.Content
		c, err = h.p.Read(ctx, q.Locator, q.Read)
		a.Info, body = c.Info, c.Body
	case providers.MethodWrite:
		a.Info, err = h.p.Write(ctx, q.Locator, providers.Body{Reader: in, Size: q.Size}, q.Write)
	case providers.MethodDelete:
		err = h.p.Delete(ctx, q.Locator, q.Delete)
	case providers.MethodMkdir:
		a.Info, err = h.p.Mkdir(ctx, q.Locator, q.Mkdir)
	default:
		err = h.callAbility(ctx, q, &a)
	}
	a.Failed = newFailure(err)
	return a, body
}

func (h handler) callAbility(ctx context.Context, q request, a *answer) (err error) {
	unsupported := &providers.Error{Op: q.Method, Locator: q.Locator, Kind: providers.ErrUnsupported}
	switch q.Method {
	case providers.MethodCopy:
		if p, ok := providers.As[providers.Copier](h.p); ok {
			a.Info, err = p.Copy(ctx, q.Locator, q.To, q.Copy)
			return err
		}
	case providers.MethodMove:
		if p, ok := providers.As[providers.Mover](h.p); ok {
			a.Info, err = p.Move(ctx, q.Locator, q.To, q.Move)
			return err
		}
	case providers.MethodSetAttr:
		if p, ok := providers.As[providers.AttrSetter](h.p); ok {
			a.Info, err = p.SetAttr(ctx, q.Locator, q.SetAttr)
			return err
		}
	case providers.MethodHead:
		if p, ok := providers.As[providers.Committer](h.p); ok {
			a.Revision, err = p.Head(ctx)
			return err
		}
	case providers.MethodCommit:
		if p, ok := providers.As[providers.Committer](h.p); ok {
			for i := range q.Commit.Changes {
				q.Commit.Changes[i].Body = providers.Body{Reader: bytes.NewReader(q.Bodies[i]), Size: int64(len(q.Bodies[i]))}
			}
			a.Commit, err = p.Commit(ctx, q.Commit)
			return err
		}
	}
	return unsupported
}
