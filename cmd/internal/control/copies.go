package control

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/providers"
)

// Schemas of the answers about working copies.
const (
	SyncSchema      = "wsmount.sync/v1"
	LogSchema       = "wsmount.log/v1"
	DiffSchema      = "wsmount.diff/v1"
	RestoreSchema   = "wsmount.restore/v1"
	ConflictsSchema = "wsmount.conflicts/v1"
	ResolveSchema   = "wsmount.resolve/v1"
	CacheSchema     = "wsmount.cache/v1"
)

// EventUpload is the event of an upload without a mount.
const EventUpload = "upload"

// Copies are the working copies of a mount. Paths are those of the mount,
// without a leading slash.
type Copies interface {
	Sync(ctx context.Context, r SyncRequest) (EventResult, error)
	Log(ctx context.Context, r LogRequest) (LogResult, error)
	Diff(ctx context.Context, r DiffRequest) (DiffResult, error)
	Restore(ctx context.Context, r RestoreRequest) (RestoreResult, error)
	Conflicts(ctx context.Context) (ConflictsResult, error)
	// ConflictContent reads one side, "base", "ours" or "theirs".
	ConflictContent(ctx context.Context, path, side string) (io.ReadCloser, error)
	Resolve(ctx context.Context, r ResolveRequest, content io.Reader) (ResolveResult, error)
	Cache(ctx context.Context, r CacheRequest) (CacheResult, error)
	// Replace is nil, an error with a kind of package providers, or an *exit.Error.
	Replace(ctx context.Context, r ReplaceRequest, content io.Reader) error
	// Lock keeps other writers of a path in a local directory out until unlock, if its content
	// is still r.Old. The error is one as of Replace.
	Lock(ctx context.Context, r ReplaceRequest) (unlock func(), err error)
}

// ReplaceRequest puts content at a path, as seam.Conditional does.
type ReplaceRequest struct {
	Path string
	Old  string // seam.ETag of the content to replace, as String writes it; "" for Lock: any
}

// replaced is the answer: empty, or the reason why nothing was replaced.
type replaced struct {
	Kind string `json:"kind,omitempty"` // as providers.KindNamed knows it
	What string `json:"what,omitempty"`
}

// CacheRequest asks for the disk usage of the working copies' content.
type CacheRequest struct {
	Clear bool `json:"clear,omitempty"` // first evict content that the stores have

	// Pin keeps the content at Path local, and returns once it is there; Unpin undoes it.
	Pin   bool   `json:"pin,omitempty"`
	Unpin bool   `json:"unpin,omitempty"`
	Path  string `json:"path,omitempty"`
}

// CacheResult is the answer.
type CacheResult struct {
	Schema string      `json:"schema"`
	Copies []CacheCopy `json:"copies"`
	Pinned *Pinned     `json:"pinned,omitempty"` // the content that was pinned
}

// Pinned is the size of the content at a pinned path.
type Pinned struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// CacheCopy is one working copy.
type CacheCopy struct {
	Workspace string `json:"workspace"`
	Directory string `json:"directory"`
	Mounted   bool   `json:"mounted"`
	cache.ContentUsage
	Freed  int64    `json:"freedBytes"`
	Pins   []string `json:"pins,omitempty"`   // paths whose content stays
	Unread string   `json:"unread,omitempty"` // why its usage is unknown
}

// The verbs of a SyncRequest.
const (
	VerbPull   = "pull"
	VerbCommit = "commit"
	VerbPush   = "push"
)

// SyncRequest pulls, commits or pushes now, whenever the policy would do it.
type SyncRequest struct {
	Verb    string  `json:"verb"`
	At      string  `json:"at,omitempty"`      // only the part at this path; empty: all
	Message string  `json:"message,omitempty"` // of a commit
	Confirm bool    `json:"confirm,omitempty"` // allow a halted pull or commit, once
	PR      bool    `json:"pr,omitempty"`      // of a push: open a pull request too
	NoWait  bool    `json:"noWait,omitempty"`  // of a commit: return before a push that policy ties to it
	Timeout float64 `json:"timeoutSeconds,omitempty"`
}

// LogRequest selects versions of the history. Zero fields do not restrict.
type LogRequest struct {
	Path         string    `json:"path,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Until        time.Time `json:"until,omitzero"`
	Event        string    `json:"event,omitempty"`
	Turn         string    `json:"turn,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Commit       string    `json:"commit,omitempty"`
	Limit        int       `json:"limit,omitempty"`
}

// LogResult lists versions, the newest first.
type LogResult struct {
	Schema   string          `json:"schema"`
	Versions []cache.Version `json:"versions"`
	Notes    []string        `json:"notes,omitempty"` // the parts that it leaves out, and why
}

// DiffRequest compares two states of a file, or of a directory and all below.
// The zero To is now, the zero From the newest version of the file that differs.
type DiffRequest struct {
	Path string      `json:"path"`
	From cache.State `json:"from,omitzero"`
	To   cache.State `json:"to,omitzero"`
}

// DiffResult is a unified diff; "" when there is no difference.
type DiffResult struct {
	Schema string `json:"schema"`
	Path   string `json:"path"`
	Diff   string `json:"diff"`
}

// RestoreRequest restores a file or a directory to a state; the empty path is the
// whole working copy at the root.
type RestoreRequest struct {
	Path string `json:"path"`
	cache.State
	DryRun bool `json:"dryRun,omitempty"`
}

// RestoreResult lists the restored, removed and skipped files.
type RestoreResult struct {
	Schema string `json:"schema"`
	DryRun bool   `json:"dryRun,omitempty"`
	cache.RestoreReport
}

// Conflict is a name that was changed locally and on the remote.
type Conflict struct {
	Path   string    `json:"path"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Base   string    `json:"base,omitempty"`   // version that ours began from
	Theirs string    `json:"theirs,omitempty"` // version of the store
	Ours   int64     `json:"oursBytes"`
	Kind   string    `json:"theirsKind"`
	Copy   bool      `json:"copy,omitempty"` // a separate file that replication of the store has left: resolve does not know it
}

// CopiesText says how many copies a replication has left in a part; "" if none.
func (p Part) CopiesText() string {
	switch p.ConflictCopies {
	case 0:
		return ""
	case 1:
		return "; 1 copy that a replication kept of a conflict"
	}
	return fmt.Sprintf("; %d copies that a replication kept of conflicts", p.ConflictCopies)
}

// ConflictsResult lists conflicts, the oldest first.
type ConflictsResult struct {
	Schema    string     `json:"schema"`
	Conflicts []Conflict `json:"conflicts"`
	Notes     []string   `json:"notes,omitempty"` // the parts that it leaves out, and why
}

// The values of ResolveRequest.Keep.
const (
	KeepOurs    = "ours"
	KeepTheirs  = "theirs"
	KeepBoth    = "both"
	KeepContent = "content" // the content of the request
)

// ResolveRequest ends a conflict.
type ResolveRequest struct {
	Path string `json:"path"`
	Keep string `json:"keep"`
}

// ResolveResult says that it has ended.
type ResolveResult struct {
	Schema string `json:"schema"`
	Path   string `json:"path"`
	Keep   string `json:"keep"`
}

// routeCopies adds the routes of working copies.
func (s *Server) routeCopies(mux *http.ServeMux, c Copies) {
	mux.HandleFunc("POST /v1/sync", func(w http.ResponseWriter, r *http.Request) {
		call(s, w, r, func(ctx context.Context, req SyncRequest) (EventResult, error) {
			ctx, cancel := s.patient(ctx, req.Timeout)
			defer cancel()
			return c.Sync(ctx, req)
		})
	})
	mux.HandleFunc("POST /v1/log", func(w http.ResponseWriter, r *http.Request) { call(s, w, r, c.Log) })
	mux.HandleFunc("POST /v1/diff", func(w http.ResponseWriter, r *http.Request) { call(s, w, r, c.Diff) })
	mux.HandleFunc("POST /v1/restore", func(w http.ResponseWriter, r *http.Request) { call(s, w, r, c.Restore) })
	mux.HandleFunc("GET /v1/conflicts", func(w http.ResponseWriter, r *http.Request) {
		res, err := c.Conflicts(r.Context())
		answer(w, res, err)
	})
	mux.HandleFunc("POST /v1/cache", func(w http.ResponseWriter, r *http.Request) { call(s, w, r, c.Cache) })
	mux.HandleFunc("GET /v1/conflict", func(w http.ResponseWriter, r *http.Request) { sendSide(w, r, c) })
	mux.HandleFunc("POST /v1/replace", func(w http.ResponseWriter, r *http.Request) {
		req := ReplaceRequest{r.URL.Query().Get("path"), r.URL.Query().Get("old")}
		s.logged(r, "path", req.Path, "old", req.Old)
		err := c.Replace(r.Context(), req, r.Body)
		answerKind(w, err)
	})
	mux.HandleFunc("POST /v1/lock", func(w http.ResponseWriter, r *http.Request) {
		unlock, err := c.Lock(r.Context(), ReplaceRequest{r.URL.Query().Get("path"), r.URL.Query().Get("old")})
		if err == nil {
			defer unlock()
		}
		answerKind(w, err)
		if err == nil && http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done() // until the caller hangs up
		}
	})
	mux.HandleFunc("POST /v1/resolve", func(w http.ResponseWriter, r *http.Request) {
		req := ResolveRequest{r.URL.Query().Get("path"), r.URL.Query().Get("keep")}
		s.logged(r, "path", req.Path, "keep", req.Keep)
		res, err := c.Resolve(r.Context(), req, r.Body)
		answer(w, res, err)
	})
}

// answerKind answers with nothing, or with an error whose kind the caller needs.
func answerKind(w http.ResponseWriter, err error) {
	var out replaced
	if kind := providers.KindOf(err); kind.Err != nil {
		out, err = replaced{kind.Name, err.Error()}, nil
	}
	answer(w, out, err)
}

// call reads a request, logs it, and answers it.
func call[Req, Res any](s *Server, w http.ResponseWriter, r *http.Request, f func(context.Context, Req) (Res, error)) {
	var req Req
	if !read(w, r, &req) {
		return
	}
	s.logged(r, "request", fmt.Sprintf("%+v", req))
	res, err := f(r.Context(), req)
	answer(w, res, err)
}

func answer(w http.ResponseWriter, res any, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, res)
}

// sendSide sends one side of a conflict unchanged. A failed read breaks the
// connection, so that no caller takes a part for the whole.
func sendSide(w http.ResponseWriter, r *http.Request, c Copies) {
	body, err := c.ConflictContent(r.Context(), r.URL.Query().Get("path"), r.URL.Query().Get("side"))
	if err != nil {
		refuse(w, err)
		return
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// waitLimit is the limit of a call that asked for so many seconds.
func waitLimit(seconds float64) time.Duration {
	limit := time.Duration(seconds * float64(time.Second))
	if limit <= 0 {
		limit = defaultTimeout
	}
	return min(limit, maxTimeout)
}
