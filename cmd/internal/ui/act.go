package ui

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// A notice is the result of an action.
type notice struct {
	Title string
	Lines []string
	Back  reference
	Bad   bool // not all was done

	id string
}

// notices keeps the last ones. A page that is loaded again shows its notice again, and does not
// repeat the action.
type notices struct {
	mu   sync.Mutex // guards list
	list []notice
}

const mostNotices = 50

func (l *notices) add(n notice) (id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.id = rand.Text()
	l.list = append(l.list, n)
	l.list = l.list[max(len(l.list)-mostNotices, 0):]
	return n.id
}

func (l *notices) page(_ context.Context, a ask) (view, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.list {
		if n.id == a.query.Get("id") {
			return view{Page: "done", Title: n.Title, Body: n, Keep: true}, nil
		}
	}
	return view{}, exit.New(exit.Unresolvable, "this was too long ago to be told again").Hint("`wsmount log` has what was done")
}

// act answers a form with the result of do on a mount that answers.
func (s *server) act(do func(ctx context.Context, a ask) (notice, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			s.refused(w, r, exit.New(exit.Usage, "the form cannot be read: %w", err).Hint("go back, and send less"))
			return
		}
		c, st, err := s.reach(r.Context())
		var n notice
		if err == nil {
			ctx, cancel := c.Patient(r.Context(), actLimit)
			n, err = do(ctx, ask{s, c, st, r.Form})
			cancel()
			err = s.why(r.Context(), err)
		}
		if err != nil {
			s.send(w, view{Page: "error", Title: "Refused", Keep: true}, st, err)
			return
		}
		w.Header().Set("Location", link("/done", "id", s.done.add(n)))
		w.WriteHeader(http.StatusSeeOther)
	}
}

// actLimit is how long an action may go without progress.
const actLimit = time.Minute

// commit sends the changes.
func commit(ctx context.Context, a ask) (notice, error) {
	message := wrap.OneLine(a.query.Get("message"))
	res, err := a.Sync(ctx, control.SyncRequest{Verb: control.VerbCommit, Message: message, Confirm: a.query.Get("confirm") != "", Timeout: actLimit.Seconds()})
	if err != nil {
		return notice{}, err
	}
	n := notice{Title: "Committed", Lines: []string{statustext.Event(res)}, Back: reference{"Queue and errors", "/queue"}, Bad: res.Exit != 0}
	for _, lists := range [][]string{res.ConflictPaths, res.PutOff, res.Notes, res.Failing, res.Failed} {
		for _, l := range lists {
			n.Lines = append(n.Lines, visible(l))
		}
	}
	if hint := statustext.EventHint(res); hint != "" {
		n.Lines = append(n.Lines, hint)
	}
	return n, nil
}
