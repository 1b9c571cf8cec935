package ui

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/past"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// perPage is how many versions a page shows.
const perPage = 100

type changesBody struct {
	Path, Turn   string // that were asked for
	Groups       []group
	Notes        []string
	Older, First string // addresses of other pages; "": there are none
	IsFile       bool   // the page is about Path
	ReadOnly     string
}

// A group is the changes of one turn, or of one commit, or those in neither.
type group struct {
	ID      string // its first version's ID, for the page
	Title   string
	To      time.Time // of the last
	Diffs   []reference
	Undo    []reference
	Entries []entry
}

// A reference leads to another page.
type reference struct{ Text, URL string }

// An entry is a version of a file.
type entry struct {
	cache.Version
	Word, Where, By          string
	History, Diff, Now, Undo string // addresses of pages; "": there is none
	Gone                     bool   // its content is not kept
}

// changes shows the changes by turn, the newest first; those of a path, a turn or a
// conversation if the query names one.
func changes(ctx context.Context, a ask) (view, error) {
	b, err := a.versions(ctx, "/changes")
	return view{Page: "changes", Title: "Changes", Body: b}, err
}

// file shows the history of a file, or of a directory and all below.
func file(ctx context.Context, a ask) (view, error) {
	b, err := a.versions(ctx, "/file")
	b.IsFile = true
	return view{Page: "file", Title: cmp.Or(b.Path, "all files"), Body: b}, err
}

// versions asks for one page of the history. A page begins after so many versions of a time:
// later changes move no version from one page to the next.
func (a ask) versions(ctx context.Context, page string) (changesBody, error) {
	q := a.query
	b := changesBody{Path: clean(q.Get("path")), Turn: strings.TrimSpace(q.Get("turn"))}
	b.ReadOnly = a.readOnly(b.Path)
	req := control.LogRequest{Path: b.Path, Turn: b.Turn, Conversation: q.Get("conversation")}
	skip := 0
	if at := q.Get("until"); at != "" {
		var err, bad error
		req.Until, err = past.Time("until", at, a.now())
		skip, bad = strconv.Atoi(cmp.Or(q.Get("skip"), "0"))
		if err = cmp.Or(err, bad); err != nil || skip < 0 {
			return b, exit.New(exit.Usage, "this is no page of the history").Hint("begin at the newest change")
		}
	}
	req.Limit = skip + perPage + 1
	res, err := a.Log(ctx, req)
	if err != nil {
		return b, err
	}
	b.Notes = res.Notes
	found := res.Versions[min(skip, len(res.Versions)):]
	shown := found[:min(perPage, len(found))]
	if len(found) > len(shown) {
		last := shown[len(shown)-1].Time
		same := 0
		for _, v := range res.Versions[:skip+len(shown)] {
			if v.Time.Equal(last) {
				same++
			}
		}
		b.Older = link(page, "path", b.Path, "turn", b.Turn, "conversation", req.Conversation, "until", last.Format(time.RFC3339Nano), "skip", strconv.Itoa(same))
	}
	if !req.Until.IsZero() {
		b.First = link(page, "path", b.Path, "turn", b.Turn, "conversation", req.Conversation)
	}
	b.Groups = a.grouped(shown, b.Path)
	return b, nil
}

// clean is a path of the mount without leading slash.
func clean(p string) string { return strings.Trim(path.Clean("/"+p), "/") }

// grouped groups consecutive versions by turn, or else by commit. list is the
// versions of a path and all below.
func (a ask) grouped(list []cache.Version, path string) (groups []group) {
	kind := func(v cache.Version) cache.State {
		if v.Turn != "" {
			return cache.State{Turn: v.Turn, Conversation: v.Conversation}
		}
		return cache.State{Commit: v.Commit}
	}
	for i := 0; i < len(list); {
		of, n := kind(list[i]), 1
		for i+n < len(list) && kind(list[i+n]) == of {
			n++
		}
		groups = append(groups, a.group(of, list[i:i+n], path))
		i += n
	}
	return groups
}

// group is the versions of a turn or commit; of is zero for those in neither.
func (a ask) group(of cache.State, list []cache.Version, path string) group {
	g := group{ID: list[0].ID, To: list[0].Time, Title: "Not in a turn"}
	if !of.IsZero() {
		g.Title = called(of)
		g.Title = strings.ToUpper(g.Title[:1]) + g.Title[1:]
	}
	var parts []string
	for _, v := range list {
		g.Entries = append(g.Entries, a.entry(v))
		if at := strings.Trim(a.partOf(where(v)).At, "/"); !slices.Contains(parts, at) {
			parts = append(parts, at)
		}
	}
	if of.IsZero() {
		return g
	}
	for _, at := range parts {
		if a.partOf(path).At == a.partOf(at).At {
			at = path // not beyond the page's path
		}
		in := ""
		if len(parts) > 1 {
			in = " in /" + visible(at)
		}
		state := stateQuery(of)
		g.Diffs = append(g.Diffs, reference{"What it changed" + in, link("/diff", append(state, "path", at)...)})
		if a.readOnly(at) == "" {
			g.Undo = append(g.Undo, reference{"Go back to before it" + in + " …", link("/restore", append(state, "path", at, "before", "1")...)})
		}
	}
	return g
}

// where is the path that a file had when the version was made.
func where(v cache.Version) string { return cmp.Or(v.Was, v.Path) }

func (a ask) entry(v cache.Version) entry {
	word, reason := past.Change(v)
	at := where(v)
	by := v
	if v.Turn != "" { // the group names it
		by.Turn, by.Conversation = "", ""
	}
	e := entry{Version: v, Word: word, Where: visible(past.Path(v)), By: visible(past.By(by, reason)),
		Gone: !v.Kept && v.Change != cache.Moved && v.Change != cache.Made}
	e.History = link("/file", "path", v.Path)
	if kind := v.Mode & syscall.S_IFMT; kind != syscall.S_IFREG && kind != syscall.S_IFLNK {
		return e
	}
	if v.Change == cache.Written || v.Change == cache.Made {
		e.Diff = link("/diff", "path", at, "version", v.ID)
	}
	if !v.Current {
		e.Now = link("/diff", "path", at, "version", v.ID, "with", "now")
		e.Undo = link("/restore", "path", at, "version", v.ID)
	}
	return e
}

// stateQuery is a state as the query of an address, and stateOf reads it.
func stateQuery(s cache.State) []string {
	before := ""
	if s.Before {
		before = "1"
	}
	return []string{"version", s.Version, "turn", s.Turn, "conversation", s.Conversation, "commit", s.Commit, "before", before}
}

func stateOf(q url.Values) cache.State {
	return cache.State{Version: q.Get("version"), Turn: q.Get("turn"), Conversation: q.Get("conversation"), Commit: q.Get("commit"), Before: q.Get("before") != ""}
}

// called is the name of a state on a page.
func called(s cache.State) string {
	name := "the version before"
	switch {
	case s.Version != "":
		name = "version " + s.Version
	case s.Turn != "" && s.Conversation != "":
		name = "turn " + s.Turn + " of conversation " + s.Conversation
	case s.Turn != "":
		name = "turn " + s.Turn
	case s.Conversation != "":
		name = "conversation " + s.Conversation
	case s.Commit != "":
		name = "commit " + s.Commit[:min(12, len(s.Commit))]
	}
	if s.Before {
		name = "before " + name
	}
	return visible(name)
}

// diffBytes bounds a diff that a page shows.
const diffBytes = 512 << 10

type diffBody struct {
	What    string
	Files   []fileDiff
	Left    string // says how much is left out
	Command string // that shows all of it
}

// diff shows the changes of a state, or its difference from the present.
func diff(ctx context.Context, a ask) (view, error) {
	s, at := stateOf(a.query), clean(a.query.Get("path"))
	req := control.DiffRequest{Path: at, From: s}
	what := "since " + called(s)
	if a.query.Get("with") != "now" && !s.IsZero() {
		req.To, req.From.Before = s, true
		what = "what " + called(s) + " changed"
	}
	res, err := a.Diff(ctx, req)
	if err != nil {
		return view{}, err
	}
	kept, omitted := wrap.Beginning(res.Diff, diffBytes)
	b := diffBody{What: what, Command: "wsmount diff " + a.m.Mountpoint + " " + cmp.Or(at, ".")}
	var left int
	var ends []string // the page names it
	if !s.IsZero() {
		ends = []string{"@before " + s.Name(), "@" + s.Name()}
	}
	b.Files, left = parseDiff(kept, ends...)
	b.Left = bytesLeft(omitted)
	if left > 0 {
		b.Left = statustext.Count(left, "more line") + " and " + statustext.Count(omitted, "byte") + " are left out"
	}
	return view{Page: "diff", Title: "Diff of " + cmp.Or(visible(at), "all files"), Body: b, Keep: true}, nil
}

type restoreBody struct {
	Path, What string
	Fields     []row // of the state, for the form
	Report     control.RestoreResult
	Left       int // of the lists, that are not shown
	Nothing    bool
	ReadOnly   string
}

// mostListed bounds each list of a page.
const mostListed = 200

// restorePlan shows the effect of a restore, with the button that does it.
func restorePlan(ctx context.Context, a ask) (view, error) {
	s, at := stateOf(a.query), clean(a.query.Get("path"))
	b := restoreBody{Path: at, What: called(s), ReadOnly: a.readOnly(at)}
	for pair := range slices.Chunk(stateQuery(s), 2) {
		if pair[1] != "" {
			b.Fields = append(b.Fields, row{pair[0], pair[1]})
		}
	}
	v := view{Page: "restore", Title: "Restore " + cmp.Or(visible(at), "all files"), Keep: true}
	if b.ReadOnly == "" {
		res, err := a.Restore(ctx, control.RestoreRequest{Path: at, State: s, DryRun: true})
		if err != nil {
			return view{}, err
		}
		b.Nothing = len(res.Restored)+len(res.Removed) == 0
		b.Left = shorten(&res.Restored) + shorten(&res.Removed) + shorten(&res.Skipped)
		b.Report = res
	}
	v.Body = b
	return v, nil
}

// shorten cuts a list to the part that a page shows, and returns the number of entries left out.
func shorten[T any](list *[]T) (left int) {
	left = max(len(*list)-mostListed, 0)
	*list = (*list)[:len(*list)-left]
	return left
}

// restore restores a path.
func restore(ctx context.Context, a ask) (notice, error) {
	s, at := stateOf(a.query), clean(a.query.Get("path"))
	res, err := a.Restore(ctx, control.RestoreRequest{Path: at, State: s})
	if err != nil {
		return notice{}, err
	}
	n := notice{Title: "Restored", Back: reference{"History of " + cmp.Or(visible(at), "all files"), link("/file", "path", at)}, Bad: len(res.Skipped) > 0}
	left := shorten(&res.Restored) + shorten(&res.Removed) + shorten(&res.Skipped)
	for _, p := range res.Restored {
		n.Lines = append(n.Lines, "restored "+visible(p))
	}
	for _, p := range res.Removed {
		n.Lines = append(n.Lines, "removed "+visible(p)+": it was not there then; the history has it")
	}
	for _, p := range res.Skipped {
		n.Lines = append(n.Lines, "left as it is: "+visible(p.Path)+": "+visible(p.Reason))
	}
	if left > 0 {
		n.Lines = append(n.Lines, "and "+statustext.Count(left, "more file"))
	}
	if len(n.Lines) == 0 {
		n.Lines = []string{"already in that state"}
	}
	return n, nil
}
