package ui

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

type conflictsBody struct {
	Conflicts []conflictEntry
	Total     int
	Notes     []string
	ReadOnly  string
}

type conflictEntry struct {
	control.Conflict
	URL string
}

// conflicts lists the conflicts, the oldest first.
func conflicts(ctx context.Context, a ask) (view, error) {
	res, err := a.Conflicts(ctx)
	b := conflictsBody{Total: len(res.Conflicts), Notes: res.Notes}
	shorten(&res.Conflicts)
	for _, c := range res.Conflicts {
		b.Conflicts = append(b.Conflicts, conflictEntry{c, link("/conflict", "path", c.Path)})
	}
	return view{Page: "conflicts", Title: "Conflicts", Body: b}, err
}

// sideBytes bounds the part of a side that a page shows.
const sideBytes = 128 << 10

type conflictBody struct {
	control.Conflict
	Sides    []side
	Diff     []fileDiff
	Left     int
	Version  string // of the conflict that is shown
	ReadOnly string
}

// A side is the local or remote content of a conflict, or their base.
type side struct {
	Name, Title string
	Text        string
	Note        string // instead of a text, or of its rest
	URL         string // of all of it; "": there is none

	whole bool
}

// conflict shows both sides of a conflict.
func conflict(ctx context.Context, a ask) (view, error) {
	at := clean(a.query.Get("path"))
	c, err := a.conflictAt(ctx, at)
	if err != nil {
		return view{}, err
	}
	b := conflictBody{Conflict: c, Version: versionOf(c), ReadOnly: a.readOnly(at)}
	if !c.Copy {
		for _, s := range []side{{Name: "ours", Title: "Local"}, {Name: "theirs", Title: "Remote"}, {Name: "base", Title: "What both began from"}} {
			b.Sides = append(b.Sides, a.read(ctx, at, s))
		}
		if ours, theirs := b.Sides[0], b.Sides[1]; ours.whole && theirs.whole {
			text := string(textdiff.Diff("remote", []byte(theirs.Text), "local", []byte(ours.Text)))
			if _, rest, ok := bytes.Cut([]byte(text), []byte("\n")); ok { // the first line is a fictitious command
				text = string(rest)
			}
			b.Diff, b.Left = parseDiff(text)
		}
	}
	return view{Page: "conflict", Title: "Conflict: " + visible(at), Body: b, Keep: true}, nil
}

// conflictAt is the conflict of a path as it is now.
func (a ask) conflictAt(ctx context.Context, at string) (control.Conflict, error) {
	res, err := a.Conflicts(ctx)
	if err != nil {
		return control.Conflict{}, err
	}
	for _, c := range res.Conflicts {
		if c.Path == at {
			return c, nil
		}
	}
	return control.Conflict{}, exit.New(exit.Unresolvable, "%s has no conflict any more", wrap.OneLine(at)).Hint("`wsmount conflicts list` lists those that there are")
}

// versionOf identifies a conflict together with the state of its sides.
func versionOf(c control.Conflict) string {
	return c.Theirs + " " + strconv.FormatInt(c.Ours, 10) + " " + strconv.FormatInt(c.Since.UnixNano(), 10)
}

// read fills in a side, as far as a page shows it.
func (a ask) read(ctx context.Context, at string, s side) side {
	body, err := a.ConflictContent(ctx, at, s.Name)
	if err != nil {
		s.Note = exit.From(err).What
		return s
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, sideBytes+1))
	if err != nil {
		s.Note = "it could not be read: " + err.Error()
		return s
	}
	s.URL = link("/side", "path", at, "side", s.Name)
	switch cut := len(b) > sideBytes; {
	case !isText(b, cut):
		s.Note = "it is no text"
	case cut:
		s.Text, _ = wrap.Beginning(string(b), sideBytes)
		s.Note = "only the first " + bytesize.Text(int64(len(s.Text))) + " are shown"
	default:
		s.Text, s.whole = string(b), true
		if s.Text == "" {
			s.Note = "it is empty"
		}
	}
	return s
}

// side sends a side unchanged, as a download: no browser shows it.
func (s *server) side(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c, st, err := s.reach(r.Context())
	var body io.ReadCloser
	if err == nil {
		body, err = c.ConflictContent(r.Context(), clean(q.Get("path")), q.Get("side"))
	}
	if err != nil {
		s.send(w, view{Page: "error", Title: "Refused"}, st, s.why(r.Context(), err))
		return
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(clean(q.Get("path"))) + "." + q.Get("side")}))
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // so that a part is not taken for the whole
	}
}

// keeps are the texts for the kept side of a conflict.
var keeps = map[string]string{
	control.KeepOurs:   "kept the local version",
	control.KeepTheirs: "took the remote version",
	control.KeepBoth:   "took the remote version, and kept the local one beside it under another name",
}

// resolve ends a conflict, if it is the one that the page has shown.
func resolve(ctx context.Context, a ask) (notice, error) {
	at, keep := clean(a.query.Get("path")), a.query.Get("keep")
	did, known := keeps[keep]
	if !known {
		return notice{}, exit.New(exit.Usage, "%q cannot be kept", wrap.OneLine(keep)).Hint("press one of the buttons of the conflict's page")
	}
	c, err := a.conflictAt(ctx, at)
	if err != nil {
		return notice{}, err
	}
	if versionOf(c) != a.query.Get("version") {
		return notice{}, exit.New(exit.Conflict, "%s has changed since the page was shown: nothing was done", wrap.OneLine(at)).
			Hint("go back, load the page again and look at both sides")
	}
	if _, err := a.Resolve(ctx, control.ResolveRequest{Path: at, Keep: keep}, nil); err != nil {
		return notice{}, err
	}
	return notice{Title: "Resolved " + visible(at), Lines: []string{did + "; what was not kept is in the history"}, Back: reference{"Conflicts", "/conflicts"}}, nil
}
