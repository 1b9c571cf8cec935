package ui

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

//go:embed pages
var pages embed.FS

var functions = template.FuncMap{
	"name": visible, "text": visibleText, "size": bytesize.Text, "prose": prose,
	"when": func(t time.Time) string {
		if t.Unix() <= 0 {
			return ""
		}
		return t.Local().Format(time.DateTime)
	},
	"count": func(n int, what string) string { return statustext.Count(n, what) },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}

// templates are the pages, each with the frame round it.
// They are read when the first page is asked for: each command of the program would wait for them.
var templates = sync.OnceValue(func() map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(functions).ParseFS(pages, "pages/frame.html"))
	all := map[string]*template.Template{}
	names, _ := pages.ReadDir("pages")
	for _, n := range names {
		if name, _ := strings.CutSuffix(n.Name(), ".html"); name != "frame" {
			all[name] = template.Must(template.Must(frame.Clone()).ParseFS(pages, "pages/"+n.Name()))
		}
	}
	return all
})

// A view is the content of a page.
type view struct {
	Page  string // its template, and the name of its tab
	Title string
	Body  any

	// Keep has the page stay as it is when the mount changes, and only say that it has:
	// a button must not change at the moment when a person presses it.
	Keep bool
}

// A frame is the surroundings of each page.
type frame struct {
	view
	Workspace, Mountpoint, Version string
	State, Tone                    string // of the mount in a word
	ReadOnly                       string // why the whole mount is
	Conflicts, Waiting             int
	Seen                           string
	Error                          *exit.Error
	Tabs                           []tab
	Live                           bool
	Now                            time.Time
}

type tab struct {
	Name, URL string
	Current   bool
	Count     int
}

// ask is the input of a page, or of an action.
type ask struct {
	*server
	Client
	status control.Status
	query  url.Values // of the address, and of the form
}

// page answers with the view that show makes of a mount that answers.
func (s *server) page(show func(ctx context.Context, a ask) (view, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		c, st, err := s.reach(ctx)
		v := view{Page: "error", Title: "Not available"}
		if err == nil {
			ctx, cancel := c.Answering(ctx)
			v, err = show(ctx, ask{s, c, st, r.URL.Query()})
			cancel()
			if err = s.why(r.Context(), err); err != nil && v.Page == "" {
				v = view{Page: "error", Title: "Refused"}
			}
		}
		s.send(w, v, st, err)
	}
}

// send writes a page. err is why it does not show the requested view.
func (s *server) send(w http.ResponseWriter, v view, st control.Status, err error) {
	f := frame{view: v, Workspace: s.m.Workspace, Mountpoint: s.m.Mountpoint, Version: s.version,
		Error: exit.From(err), Seen: seen(st, nil), Live: true, Now: s.now()}
	if st.Schema == "" { // it did not answer
		f.State, f.Tone, f.Seen = "not mounted", "bad", seen(st, err)
	} else {
		f.State = statustext.Summary(st, s.now())
		f.Tone = "warn"
		if strings.HasPrefix(f.State, string(control.Ready)) {
			f.Tone = "good"
		}
		f.ReadOnly = allReadOnly(st)
		f.Conflicts = st.ConflictsTotal
		for _, p := range st.Parts {
			f.Waiting += p.Unsaved.Names + p.HeldBack
		}
	}
	f.tabs()
	status := http.StatusOK
	if err != nil {
		status = control.HTTPStatus(f.Error.Code)
	}
	write(w, f, status)
}

// refused answers a browser that was not let in, with nothing of the mount.
func (s *server) refused(w http.ResponseWriter, _ *http.Request, why *exit.Error) {
	write(w, frame{view: view{Page: "error", Title: "Refused"}, Error: why}, http.StatusForbidden)
}

// write writes a page whole, or none of it.
func write(w http.ResponseWriter, f frame, status int) {
	var b bytes.Buffer
	if err := templates()[f.Page].Execute(&b, f); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that has hung up needs no answer
}

func (f *frame) tabs() {
	for _, t := range []struct {
		tab
		pages string
	}{
		{tab{Name: "Overview", URL: "/"}, "overview"},
		{tab{Name: "Changes", URL: "/changes"}, "changes file diff restore"},
		{tab{Name: "Conflicts", URL: "/conflicts", Count: f.Conflicts}, "conflicts conflict"},
		{tab{Name: "Queue and errors", URL: "/queue", Count: f.Waiting}, "queue"},
	} {
		for name := range strings.FieldsSeq(t.pages) {
			t.Current = t.Current || name == f.Page
		}
		f.Tabs = append(f.Tabs, t.tab)
	}
}

func notFound(_ context.Context, a ask) (view, error) {
	return view{}, exit.New(exit.Unresolvable, "there is no such page").Hint("the pages are those above")
}

// allReadOnly is the reason why nothing in a mount can be changed; "" if something can.
func allReadOnly(st control.Status) string {
	why := ""
	for _, p := range st.Parts {
		if p.Unavailable != "" {
			continue
		}
		if p.ReadOnly == "" && !st.ReadOnly {
			return ""
		}
		if why == "" {
			why = p.ReadOnly
		}
	}
	if why == "" && st.ReadOnly {
		why = "it was mounted so"
	}
	return why
}

// partOf is the part that a path of the mount lies in.
func (a ask) partOf(path string) (best control.Part) {
	found := false
	for _, p := range a.status.Parts {
		at := strings.Trim(p.At, "/")
		if (at == "" || path == at || strings.HasPrefix(path, at+"/")) && (!found || len(at) > len(strings.Trim(best.At, "/"))) {
			best, found = p, true
		}
	}
	return best
}

// readOnly is the reason why a path cannot be changed, or "".
func (a ask) readOnly(path string) string {
	p := a.partOf(path)
	if p.ReadOnly == "" && a.status.ReadOnly {
		return "it was mounted so"
	}
	return p.ReadOnly
}

// link is an address of a page with a query. Empty values are left out.
func link(page string, query ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			q.Set(query[i], query[i+1])
		}
	}
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}
