package ui

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// evil is a name, and a content, that no page may take for its own.
const evil = "<script>alert('\"x&y')</script>\u202e\x1b[31m\ufffd"

// fake is a mount that answers from memory and notes what it was asked to change.
type fake struct {
	mu         sync.Mutex // guards these four, while pages are open
	reach, err error      // of the mount, and of its status
	status     control.Status
	looks      int

	refuses   error           // what is to change something
	versions  []cache.Version // the newest first
	conflicts []control.Conflict
	sides     map[string]string
	diff      string
	event     control.EventResult

	diffed   control.DiffRequest
	restored []control.RestoreRequest
	resolved []control.ResolveRequest
	synced   []control.SyncRequest
}

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newFake() *fake {
	f := &fake{status: control.Status{Schema: control.StatusSchema, Workspace: "@acme/a", Mountpoint: "/mnt/ws", State: control.Ready, Started: began, ConflictsTotal: 2,
		Parts: []control.Part{
			{Name: "@acme/a", At: "/", Provider: "github", Mode: "pull-push", HeldBack: 1, Unsaved: control.Unsaved{Files: 2, Names: 3, Bytes: 2048},
				Copy: &control.Copy{Policy: "commit on turn-end", LastPush: began, Unpushed: true, UnpushedCommits: 2, Halted: []string{control.HaltedCommit + "it would remove 90 of 100 files"},
					InFlight: []control.Transfer{{Path: "big" + evil, What: "write", Sent: 1, Size: 4, Seconds: 2}}, Held: []control.Held{{Path: "held" + evil, Reason: "a secret is in it"}}},
				Errors: 7, Recent: []control.Failure{{Time: began, Op: "open", Path: "/f" + evil, Errno: "EIO", Error: "because of " + evil}}},
			{Name: "@acme/lib", At: "/lib", Provider: "cloud-bucket", ReadOnly: "policy (no-grant)", Copy: &control.Copy{}},
		}}}
	f.versions = []cache.Version{
		{ID: "9", Change: cache.Written, Path: "lib/x", Time: began.Add(9), Mode: syscall.S_IFREG, Kept: true},
		{ID: "8", Change: cache.Written, Path: "docs/plan.md", Time: began.Add(8), Mode: syscall.S_IFREG, Kept: true, Current: true},
		{ID: "7", Change: cache.Written, Path: "f" + evil, Was: "g" + evil, Time: began.Add(7), Mode: syscall.S_IFREG, Kept: true},
		{ID: "6", Change: cache.Ended, Why: "removed", Path: "docs/old.md", Time: began.Add(6), Mode: syscall.S_IFREG},
		{ID: "5", Change: cache.Made, New: true, Path: "docs", Time: began.Add(5), Mode: syscall.S_IFDIR},
	}
	for i := range f.versions[1:4] {
		f.versions[i+1].Turn, f.versions[i+1].Conversation = "7", "c"+evil
	}
	f.versions[4].Commit = "4fa44be0123456789"
	f.conflicts = []control.Conflict{{Path: "docs/plan.md", Reason: "modified locally and on the remote " + evil, Since: began, Theirs: "v2", Ours: 4},
		{Path: "copy" + evil, Copy: true}, {Path: "lib/x", Theirs: "v1"}, {Path: "w\xff"}}
	f.sides = map[string]string{"ours": "one\ntwo" + evil + "\n", "theirs": "one\nthree\n"}
	f.diff = "--- docs/plan.md@before 8\n+++ docs/plan.md@8\n@@ -1,2 +1,2 @@\n one\n--- not a head " + evil + "\n+<b>new</b>\nBinary files a and b differ\n"
	return f
}

func (f *fake) Status(context.Context) (control.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	st := f.status
	st.Parts = slices.Clone(st.Parts)
	return st, f.err
}

// reached is f, if it is there.
func (f *fake) reached() (Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.reach
}

// becomes changes how it is. What is behind a pointer is replaced.
func (f *fake) becomes(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// looked is how often it was asked how it is.
func (f *fake) looked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

func (f *fake) Log(_ context.Context, r control.LogRequest) (out control.LogResult, _ error) {
	for _, v := range f.versions {
		if r.Limit > 0 && len(out.Versions) == r.Limit {
			break
		}
		if (r.Path == "" || v.Path == r.Path) && (r.Turn == "" || v.Turn == r.Turn) && (r.Until.IsZero() || !v.Time.After(r.Until)) {
			out.Versions = append(out.Versions, v)
		}
	}
	return out, nil
}

func (f *fake) Diff(_ context.Context, r control.DiffRequest) (control.DiffResult, error) {
	f.diffed = r
	return control.DiffResult{Path: r.Path, Diff: f.diff}, nil
}

func (f *fake) Restore(_ context.Context, r control.RestoreRequest) (out control.RestoreResult, _ error) {
	if !r.DryRun {
		f.restored = append(f.restored, r)
	}
	out.Restored, out.Removed, out.Skipped = make([]string, 300), []string{"gone" + evil}, []cache.Skipped{{Path: "f", Reason: "it governs this mount"}}
	return out, f.refuses
}

func (f *fake) Conflicts(context.Context) (control.ConflictsResult, error) {
	return control.ConflictsResult{Conflicts: slices.Clone(f.conflicts), Notes: []string{"@acme/x may not be read: policy"}}, nil
}

func (f *fake) ConflictContent(_ context.Context, _, side string) (io.ReadCloser, error) {
	text, ok := f.sides[side]
	if !ok {
		return nil, exit.New(exit.Unresolvable, "it has no content on the side %q", side)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (f *fake) Resolve(_ context.Context, r control.ResolveRequest, _ io.Reader) (control.ResolveResult, error) {
	f.resolved = append(f.resolved, r)
	return control.ResolveResult{}, f.refuses
}

func (f *fake) Sync(_ context.Context, r control.SyncRequest) (control.EventResult, error) {
	f.synced = append(f.synced, r)
	return f.event, f.refuses
}

func (f *fake) Answering(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (f *fake) Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, limit)
}

// A visitor is a browser in which the page of a fake is open.
type visitor struct {
	t *testing.T
	s *server
	h http.Handler

	Host, Origin, Cookie string
}

func (f *fake) serve(t *testing.T) *visitor {
	s := newServer(Mount{"@acme/a", "/mnt/ws", f.reached}, 4000, "v1")
	s.now = func() time.Time { return began.Add(3 * time.Hour) }
	return &visitor{t, s, s.handler(), "127.0.0.1:4000", "http://127.0.0.1:4000", s.gate.session}
}

// asks sends a request. A form is one that changes something.
func (v *visitor) asks(method, target string, form url.Values) *httptest.ResponseRecorder {
	ctx := v.t.Context()
	if strings.HasPrefix(target, "/live") { // whose answer has no end of its own
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	r.Host = v.Host
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if v.Origin != "" {
		r.Header.Set("Origin", v.Origin)
	}
	if v.Cookie != "" {
		r.AddCookie(&http.Cookie{Name: v.s.gate.cookie, Value: v.Cookie})
	}
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	return w
}

// sees asks for a page and wants words in it.
func (v *visitor) sees(target string, status int, words ...string) string {
	v.t.Helper()
	w := v.asks("GET", target, nil)
	body := w.Body.String()
	assert.Equal(v.t, w.Code, status, target, body)
	for _, word := range words {
		assert.Contains(v.t, body, word, target)
	}
	return body
}

// posts sends a form, and sees the page to which that leads.
func (v *visitor) posts(target string, words []string, pairs ...string) {
	v.t.Helper()
	form, _ := url.ParseQuery(strings.TrimPrefix(link("", pairs...), "?"))
	w := v.asks("POST", target, form)
	assert.Equal(v.t, w.Code, http.StatusSeeOther, target, w.Body.String())
	for range 2 { // loaded again, it does nothing again
		v.sees(w.Header().Get("Location"), http.StatusOK, words...)
	}
}

// Nothing is told to, or done for, what was not let in, and each answer has the browser load
// nothing from elsewhere.
func TestGate(t *testing.T) {
	for _, tt := range []struct {
		what   string
		edit   func(*visitor)
		method string
		target string
		status int
		says   string
	}{
		{"a browser that was let in", func(*visitor) {}, "GET", "/", 200, ""},
		{"by the other name of this machine", func(v *visitor) { v.Host, v.Origin = "localhost:4000", "http://localhost:4000" }, "POST", "/commit", 303, ""},
		{"a form of a page of this address", func(*visitor) {}, "POST", "/commit", 303, ""},
		{"a name that was made to lead here", func(v *visitor) { v.Host = "evil.test:4000" }, "GET", "/", 403, ""},
		{"another port", func(v *visitor) { v.Host = "127.0.0.1:4001" }, "GET", "/", 403, ""},
		{"no port", func(v *visitor) { v.Host = "127.0.0.1" }, "GET", "/assets/style.css", 403, ""},
		{"no cookie", func(v *visitor) { v.Cookie = "" }, "GET", "/", 403, "this browser was not let in"},
		{"no cookie on the stream", func(v *visitor) { v.Cookie = "" }, "GET", "/live", 403, ""},
		{"no cookie for a side", func(v *visitor) { v.Cookie = "" }, "GET", "/side?path=docs/plan.md&side=ours", 403, ""},
		{"another cookie", func(v *visitor) { v.Cookie = v.s.gate.session[1:] }, "GET", "/", 403, ""},
		{"the token as the cookie", func(v *visitor) { v.Cookie = v.s.gate.token }, "GET", "/", 403, ""},
		{"a form of another site", func(v *visitor) { v.Origin = "http://evil.test" }, "POST", "/commit", 403, "what changes something is only taken from a page of this address"},
		{"a form of another port", func(v *visitor) { v.Origin = "http://127.0.0.1:4001" }, "POST", "/commit", 403, ""},
		{"a form of a page that does not say where it is", func(v *visitor) { v.Origin = "null" }, "POST", "/commit", 403, ""},
		{"a form of nowhere", func(v *visitor) { v.Origin = "" }, "POST", "/commit", 403, ""},
		{"a form of the other name", func(v *visitor) { v.Origin = "http://localhost:4000" }, "POST", "/commit", 403, ""},
		{"a form without a cookie", func(v *visitor) { v.Cookie = "" }, "POST", "/commit", 403, ""},
		{"a form by an address", func(*visitor) {}, "GET", "/commit?message=x", 404, ""},
		{"another method", func(v *visitor) { v.Origin = "" }, "DELETE", "/", 403, ""},
		{"a wrong token", func(v *visitor) { v.Cookie = "" }, "GET", "/open?token=x", 403, "this address lets one browser in, once, and was used, or is not the one that was printed"},
		{"no token", func(v *visitor) { v.Cookie = "" }, "GET", "/open", 403, ""},
		{"the style", func(v *visitor) { v.Cookie = "" }, "GET", "/assets/style.css", 200, ""},
		{"the script", func(v *visitor) { v.Cookie = "" }, "GET", "/assets/live.js", 200, ""},
		{"the templates", func(*visitor) {}, "GET", "/pages/frame.html", 404, ""},
	} {
		f := newFake()
		v := f.serve(t)
		tt.edit(v)
		w := v.asks(tt.method, tt.target, url.Values{})
		assert.Equal(t, w.Code, tt.status, tt.what)
		assert.Equal(t, w.Header().Get("Content-Security-Policy"), policy, tt.what)
		assert.Equal(t, w.Header().Get("Cache-Control")+w.Header().Get("X-Content-Type-Options"), "no-storenosniff", tt.what)
		if tt.says != "" {
			assert.Contains(t, w.Body.String(), tt.says, tt.what)
		}
		if tt.status == 403 {
			assert.True(t, f.looks == 0 && f.synced == nil, tt.what, "reached the mount")
			assert.False(t, strings.Contains(w.Body.String(), "acme"), tt.what, "is told of the workspace")
		}
	}
}

// The address that is printed lets one browser in, once.
func TestToken(t *testing.T) {
	v := newFake().serve(t)
	address := assert.Of(url.Parse(v.s.gate.address())).OK(t)
	v.Cookie, v.Origin = "", ""
	assert.Equal(t, v.asks("HEAD", address.RequestURI(), nil).Code, 405, "a look ahead")
	v.Host = "evil.test"
	assert.Equal(t, v.asks("GET", address.RequestURI(), nil).Code, 403, "by another name")
	v.Host = address.Host
	w := v.asks("GET", address.RequestURI(), nil)
	assert.Equal(t, w.Code, 200)
	assert.Contains(t, w.Body.String(), `content="0;url=/"`)
	c := w.Result().Cookies()[0]
	assert.True(t, c.HttpOnly && c.SameSite == http.SameSiteStrictMode && c.Path == "/" && c.Domain == "" && c.Name == "wsmount-ui-4000", c)
	assert.Equal(t, v.asks("GET", address.RequestURI(), nil).Code, 403, "another browser")
	v.Cookie = c.Value
	assert.Equal(t, v.asks("GET", address.RequestURI(), nil).Code, 200, "the same browser")
	v.sees("/", 200)
	assert.Contains(t, v.s.gate.address(), "token=", "its end")
	assert.False(t, v.s.gate.take(""), "the token that was used")
}

// Each page shows what the mount says, and nothing of it becomes a part of the page.
func TestPages(t *testing.T) {
	shown := html.EscapeString(visible(evil))
	for _, tt := range []struct {
		target string
		status int
		says   []string
	}{
		{"/", 200, []string{"halted", "it would remove 90 of 100 files", "commit on turn-end", "2 commits", "policy (no-grant)", "2 conflicts"}},
		{"/changes", 200, []string{"Turn 7 of conversation c" + shown, "g" + shown, "Commit 4fa44be01234", "Not in a turn", "removed", "content not kept locally", "as it is now"}},
		{"/changes?turn=7", 200, []string{`value="7"`}},
		{"/file?path=docs/plan.md", 200, []string{"version 8", `before=1&amp;conversation=c` + url.QueryEscape(evil) + `&amp;path=docs%2Fplan.md&amp;turn=7"`}},
		{"/file?path=lib/x", 200, []string{"it is read-only (policy (no-grant))", `<button disabled aria-describedby="why-not">restore</button>`}},
		{"/changes?until=soon", 400, []string{"begin at the newest"}},
		{"/changes?until=2026-11-20&skip=-1", 400, []string{"begin at the newest"}},
		{"/diff?path=docs/plan.md&version=8", 200, []string{`<span class="add">&#43;&lt;b&gt;new&lt;/b&gt;`, `<span class="del">--- not a head ` + shown, "what version 8 changed", `<bdi class="path">docs/plan.md</bdi></summary>`, "Binary files a and b differ"}},
		{"/conflicts", 200, []string{"docs/plan.md", "modified locally and on the remote " + shown, "may not be read", `href="/conflict?path=w%FF">w\xff</a>`}},
		{"/conflict?path=docs/plan.md", 200, []string{"two" + shown, "three", `<span class="del">-three`, "no content on the side", `name="version" value="v2 4 `}},
		{"/conflict?path=lib/x", 200, []string{`value="ours" disabled aria-describedby="why-not"`, `value="both" disabled aria-describedby="why-not"`, "policy (no-grant)"}},
		{"/conflict?path=gone", 404, []string{"gone has no conflict any more", "wsmount conflicts list"}},
		{"/queue", 200, []string{"2 files changed, 1 change of names or attributes", "big" + shown, `<progress max="4" value="1"`, "held" + shown, "a secret is in it", "EIO", "because of " + shown, "allow what was stopped"}},
		{"/restore?path=docs&turn=7&before=1", 200, []string{"before turn 7", "gone" + shown, "it governs this mount", "100 more files", `name="before" value="1"`}},
		{"/restore?path=w%FF&version=9", 200, []string{`action="/restore?path=w%ff"`, `Restore w\xff`}},
		{"/restore?path=lib/x&version=9", 200, []string{"policy (no-grant)", "<button disabled"}},
		{"/done?id=1", 404, []string{"too long ago"}},
		{"/nothing", 404, []string{"there is no such page"}},
		{"/side?path=x&side=base", 404, []string{"no content on the side"}},
	} {
		v := newFake().serve(t)
		body := v.sees(tt.target, tt.status, tt.says...)
		assert.False(t, strings.Contains(body, "<script>alert") || strings.Contains(body, "\u202e") || strings.Contains(body, "\x1b"), tt.target, "shows a name as it is")
	}
}

// Every link of a page leads to one that shows something.
func TestLinks(t *testing.T) {
	v := newFake().serve(t)
	seen, todo := map[string]bool{}, []string{"/", "/conflict?path=docs/plan.md"}
	for len(todo) > 0 {
		target := todo[0]
		todo = todo[1:]
		if seen[target] || target == "" || strings.HasPrefix(target, "#") {
			continue
		}
		seen[target] = true
		for _, m := range regexp.MustCompile(` (?:href|src)="([^"]*)"`).FindAllStringSubmatch(v.sees(target, 200), -1) {
			todo = append(todo, html.UnescapeString(m[1]))
		}
	}
	assert.AtLeast(t, len(seen), 15, "pages")
}

// What a page asks of the mount is what the commands ask.
func TestDiffAsks(t *testing.T) {
	for target, want := range map[string]control.DiffRequest{
		"/diff?path=/docs/../f&version=8":       {Path: "f", From: cache.State{Version: "8", Before: true}, To: cache.State{Version: "8"}},
		"/diff?path=f&version=8&with=now":       {Path: "f", From: cache.State{Version: "8"}},
		"/diff?turn=7&conversation=c":           {From: cache.State{Turn: "7", Conversation: "c", Before: true}, To: cache.State{Turn: "7", Conversation: "c"}},
		"/diff?path=lib&commit=4fa44be":         {Path: "lib", From: cache.State{Commit: "4fa44be", Before: true}, To: cache.State{Commit: "4fa44be"}},
		"/diff?path=%3Cb%3E+%22%27%26%23%3F%0A": {Path: "<b> \"'&#?\n"},
	} {
		f := newFake()
		f.serve(t).sees(target, 200)
		assert.Equal(t, fmt.Sprintf("%+v", f.diffed), fmt.Sprintf("%+v", want), target)
	}
}

// What is too much is cut, and the page says so.
func TestLargeContents(t *testing.T) {
	f := newFake()
	v := f.serve(t)
	f.diff = "--- f\n+++ f\n@@ -0,0 +1,100000 @@\n" + strings.Repeat("+a line of the file\n", 100_000)
	assert.AtMost(t, len(v.sees("/diff?path=f&version=8", 200, "are left out", "<code>wsmount diff /mnt/ws f</code>")), 1<<20, "a long diff")
	f.diff = "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+" + strings.Repeat("x", 8<<20)
	assert.AtMost(t, len(v.sees("/diff?path=f&version=8", 200, "are left out")), 1<<20, "a long line")
	f.sides = map[string]string{"ours": strings.Repeat("ü", sideBytes), "theirs": "a\x00b", "base": ""}
	body := v.sees("/conflict?path=docs/plan.md", 200, "only the first 128.0 KiB are shown", "it is no text", "it is empty")
	assert.False(t, strings.Contains(body, "class=\"diff\""), "a diff of what is not whole")
	w := v.asks("GET", "/side?path=docs/a%22b%0Ac&side=ours", nil)
	assert.Equal(t, w.Body.String(), f.sides["ours"], "all of it")
	assert.Equal(t, w.Header().Get("Content-Type"), "application/octet-stream")
	assert.True(t, strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment; "), w.Header())
}

// Ten thousand changes are shown a page at a time, each once, while others are made.
func TestManyChanges(t *testing.T) {
	f := newFake()
	f.versions = nil
	const all = 10_000
	for i := range all {
		one := cache.Version{ID: fmt.Sprint(all - i), Path: "f", Change: cache.Written, Mode: syscall.S_IFREG, Time: began.Add(-time.Duration(i/230) * time.Second)}
		one.Turn = fmt.Sprint(i / 150)
		f.versions = append(f.versions, one)
	}
	v := f.serve(t)
	older := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(v.sees("/changes", 200, "version 10000"))
	assert.Must(t, older != nil, "no older changes")
	v.sees(html.UnescapeString(older[1]), 200, "version 9900", `rel="first"`)

	seen, shown, a := map[string]bool{}, 0, ask{v.s, f, f.status, url.Values{}}
	for next := "/changes"; next != ""; {
		a.query = assert.Of(url.Parse(next)).OK(t).Query()
		b := assert.Of(a.versions(t.Context(), "/changes")).OK(t)
		for _, g := range b.Groups {
			for _, e := range g.Entries {
				seen[e.ID], shown = true, shown+1
			}
		}
		assert.Must(t, shown <= 2*all, "the pages have no end")
		next = b.Older
		if shown%2500 == 0 {
			f.versions = append([]cache.Version{{ID: fmt.Sprint(all + shown), Time: began.Add(time.Hour), Path: "new"}}, f.versions...)
		}
	}
	assert.Equal(t, fmt.Sprint(len(seen), shown), fmt.Sprint(all, all), "versions seen, and shown")
}

// Each button does what the command of its name does, once.
func TestActions(t *testing.T) {
	f := newFake()
	v := f.serve(t)
	version := versionOf(f.conflicts[0])
	for _, keep := range []string{control.KeepOurs, control.KeepTheirs, control.KeepBoth} {
		v.posts("/resolve", []string{"Resolved docs/plan.md", html.EscapeString(keeps[keep])}, "path", "docs/plan.md", "version", version, "keep", keep)
		assert.Equal(t, f.resolved[len(f.resolved)-1], control.ResolveRequest{Path: "docs/plan.md", Keep: keep})
	}
	assert.Equal(t, len(f.resolved), 3, "resolved")
	v.sees("/restore?path=docs&turn=7&before=1", 200, "Would be restored") // and nothing is
	v.posts("/restore", []string{"Restored", "it governs this mount", "and 100 more files"}, "path", "docs", "turn", "7", "before", "1")
	assert.Equal(t, fmt.Sprintf("%+v", f.restored), fmt.Sprintf("%+v", []control.RestoreRequest{{Path: "docs", State: cache.State{Turn: "7", Before: true}}}))
	f.event = control.EventResult{Event: "commit", Committed: 2, HeldBack: 1, Notes: []string{"note " + evil}, Exit: 7}
	v.posts("/restore?path=w%FF", []string{`w\xff`}, "version", "9")
	assert.Equal(t, f.restored[len(f.restored)-1].Path, "w\xff")
	v.posts("/commit", []string{"commit: 0 files pulled, 2 files committed", "note &lt;script&gt;", "<code>wsmount status</code> says what is held back"}, "message", "the draft\nand more")
	v.posts("/commit", nil, "confirm", "1")
	assert.Equal(t, fmt.Sprintf("%+v", f.synced), fmt.Sprintf("%+v", []control.SyncRequest{{Verb: "commit", Message: "the draft and more", Timeout: 60}, {Verb: "commit", Confirm: true, Timeout: 60}}))
}

// What an action is refused for is shown, and nothing is done where the page that asks does
// not know how things are.
func TestActionsThatAreRefused(t *testing.T) {
	denied := exit.New(exit.Denied, "@acme/a is read-only: flag").Hint("`wsmount status /mnt/ws` says why")
	for _, tt := range []struct {
		target string
		form   []string
		err    error
		status int
		says   []string
	}{
		{"/resolve", []string{"path", "docs/plan.md", "version", "v1 4 0", "keep", "ours"}, nil, 409, []string{"docs/plan.md has changed since the page was shown: nothing was done"}},
		{"/resolve", []string{"path", "docs/plan.md", "keep", "all"}, nil, 400, []string{"&#34;all&#34; cannot be kept"}},
		{"/resolve", []string{"path", "gone", "keep", "ours"}, nil, 404, []string{"gone has no conflict any more"}},
		{"/restore", []string{"path", "f", "version", "1"}, denied, 403, []string{"@acme/a is read-only: flag", "<code>wsmount status /mnt/ws</code> says why"}},
		{"/commit", []string{"message", strings.Repeat("x", maxForm)}, nil, 403, []string{"the form cannot be read"}},
		{"/commit", nil, errors.New("the store is away"), 500, []string{"the store is away"}},
	} {
		f := newFake()
		v := f.serve(t)
		form, _ := url.ParseQuery(strings.TrimPrefix(link("", tt.form...), "?"))
		f.refuses = tt.err
		w := v.asks("POST", tt.target, form)
		assert.Equal(t, w.Code, tt.status, tt.target, tt.form)
		for _, says := range tt.says {
			assert.Contains(t, w.Body.String(), says, tt.target)
		}
		if tt.err == nil {
			assert.Equal(t, len(f.resolved)+len(f.restored)+len(f.synced), 0, tt.target, "done")
		}
	}
}

// A mount that has ended is told of by every page, and shown again when it is back.
func TestMountThatEnds(t *testing.T) {
	f := newFake()
	v := f.serve(t)
	f.reach = exit.New(exit.Unresolvable, "no workspace is mounted at /mnt/ws").Hint("`wsmount status` lists what is mounted")
	for _, target := range []string{"/", "/changes", "/conflict?path=docs/plan.md"} {
		v.sees(target, 404, "not mounted", "no workspace is mounted at /mnt/ws", "<code>wsmount status</code> lists")
	}
	assert.Equal(t, v.asks("POST", "/commit", url.Values{}).Code, 404, "an action")
	f.reach = nil
	v.sees("/", 200, "halted")

	f.err = exit.New(exit.Unreachable, "the daemon of this mount does not answer: %w", syscall.ECONNREFUSED)
	reached := 0
	v.s.m.Reach = func() (Client, error) {
		if reached++; reached > 1 {
			return nil, exit.New(exit.Unreachable, "the daemon has ended")
		}
		return f, nil
	}
	v.sees("/", 502, "the daemon has ended")
}

// A mount that is read-only as a whole says so on each page, and has no button that works.
func TestReadOnlyMount(t *testing.T) {
	f := newFake()
	f.status.ReadOnly = true
	v := f.serve(t)
	for _, target := range []string{"/", "/queue", "/conflict?path=docs/plan.md", "/restore?path=f&version=7", "/changes"} {
		body := v.sees(target, 200, "read-only: policy (no-grant)")
		for _, m := range regexp.MustCompile(`<button[^>]*>[^<]*`).FindAllString(body, -1) {
			assert.True(t, strings.Contains(m, "disabled") || strings.Contains(m, "Show"), target, m)
		}
	}
}
