package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

// Each matter is told of when it begins, once, and again when it has ended in between.
func TestWhatIsToldOf(t *testing.T) {
	start := time.Unix(1000, 0)
	failing := func(activity string, since int) control.Copy {
		return control.Copy{Failing: []control.Failing{{Activity: activity, Since: time.Unix(int64(since), 0), Error: "no route"}}}
	}
	held := func(conflict bool, names ...string) (c control.Copy) {
		for _, name := range names {
			c.Held = append(c.Held, control.Held{Path: name, Conflict: conflict})
		}
		return c
	}
	w := newWatcher()
	for i, c := range []struct {
		after     time.Duration
		copy      control.Copy
		conflicts int
		held      int
		found     string
		last      bool
		want      string
	}{
		{0, control.Copy{}, 0, 0, "", false, ""},
		{0, failing("pull", 1), 0, 0, "", false, "pull-failed 0 []: pull of @acme/app fails: no route"},
		{time.Hour, failing("pull", 1), 0, 0, "", false, ""},
		{0, control.Copy{}, 0, 0, "", false, ""},
		{0, failing("pull", 2), 0, 0, "", false, "pull-failed 0 []: pull of @acme/app fails: no route"},
		{time.Second, failing("pull", 3), 0, 0, "", false, ""}, // it comes and goes
		{quiet, failing("pull", 3), 0, 0, "", false, "pull-failed 0 []: pull of @acme/app fails: no route"},
		{0, failing("upload", 3), 0, 0, "", false, "push-failed 0 []: upload of @acme/app fails: no route"},
		{0, failing("prune history", 3), 0, 0, "", false, ""},
		{0, held(true, "a", "b"), 2, 2, "", false, "conflict 2 [a b]: @acme/app: 2 conflicts: a, b"},
		{time.Second, held(true, "a", "b", "c"), 3, 3, "", false, ""},
		{quiet, held(true, "a", "b", "c"), 3, 3, "", false, "conflict 1 [c]: @acme/app: 1 conflict: c"},
		{quiet, held(true, "c"), 1, 1, "", false, ""},
		{quiet, held(true, "c"), 4, 4, "", false, "conflict 3 []: @acme/app: 3 conflicts"}, // that are not listed
		{quiet, control.Copy{}, 0, 0, "decided", false, "conflict 1 [decided]: @acme/app: 1 conflict: decided"},
		{time.Second, control.Copy{}, 0, 0, "another", false, ""},
		{0, control.Copy{}, 0, 0, "", true, "conflict 1 [another]: @acme/app: 1 conflict: another"},
		{quiet, held(false, "large"), 0, 1, "", false, "held-back 1 [large]: @acme/app: 1 change is held back: large"},
		{quiet, control.Copy{Halted: []string{"pull: half of it would go"}}, 0, 0, "", false, "held-back 0 []: @acme/app waits for --confirm: pull: half of it would go"},
	} {
		start = start.Add(c.after)
		if c.found != "" {
			w.conflict("@acme/app", c.found)
		}
		var got []string
		for _, n := range w.look(control.Status{Taken: start, Parts: []control.Part{{Name: "@local/part"},
			{Name: "@acme/app", At: "/", Copy: &c.copy, Conflicts: c.conflicts, HeldBack: c.held}}}, c.last) {
			got = append(got, fmt.Sprintf("%s %d %v: %s", n.Event, n.Count, n.Paths, n.Text))
		}
		assert.Equal(t, strings.Join(got, "; "), c.want, "row", i)
	}
}

// A scene is a notifier whose pauses are counted, and what its webhook got.
type scene struct {
	*testing.T
	*Notifier
	o Options

	mu     sync.Mutex // guards what follows
	got    []*http.Request
	bodies []Notice
	codes  []int // of the next answers; 200 after them
	pauses int
}

func newScene(t *testing.T, h hook.Hook) (*scene, string) {
	t.Helper()
	s := &scene{T: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	allowed := server.URL
	if h.Timeout == 0 {
		h.Timeout = time.Minute
	}
	if len(h.Command) == 0 && h.URLFrom == "" {
		h.URL = server.URL + "/path"
	}
	s.o = Options{Hooks: []hook.Hook{h}, Workspace: "@acme/app", Mountpoint: "/mnt/ws",
		Transport: func(string) (http.RoundTripper, error) {
			g, err := netguard.New(netguard.Options{Allow: []string{allowed}})
			return g.Transport(netguard.TransportOptions{NoRedirects: true}), err
		},
		Secret: func(_ context.Context, slug string) (string, error) {
			return map[string]string{"token": "t0ken", "here": server.URL + "/h1dden", "elsewhere": "http://192.0.2.1/h1dden"}[slug], nil
		},
		Holds: func(text string) bool { return strings.Contains(text, "t0ken") }, Lookup: os.LookupEnv, Changed: func() {}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), pause: func(ctx context.Context, _ time.Duration) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pauses++
			return ctx.Err()
		}}
	s.Notifier = Start(s.o)
	return s, server.URL
}

func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n Notice
	assert.OK(s, json.NewDecoder(r.Body).Decode(&n))
	s.got, s.bodies = append(s.got, r), append(s.bodies, n)
	code := http.StatusOK
	if len(s.codes) > 0 {
		code, s.codes = s.codes[0], s.codes[1:]
	}
	if code == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(code)
}

// fails lets a pull fail, and waits until nothing more is done because of it.
func (s *scene) fails(reason string) control.Hook {
	s.Helper()
	s.Observe(control.Status{Taken: time.Now(), Parts: []control.Part{{Name: "@acme/app", At: "/",
		Copy: &control.Copy{Failing: []control.Failing{{Activity: "pull", Since: time.Unix(1, 0), Error: reason}}}}}})
	sender := s.senders[0]
	close(sender.queue)
	<-sender.done
	return s.Status()[0]
}

// A webhook gets a notice under a time limit and in a few tries, and nothing but it does.
func TestWebhook(t *testing.T) {
	bad, gone := http.StatusBadGateway, http.StatusGone
	for name, c := range map[string]struct {
		hook      hook.Hook
		codes     []int
		reason    string
		requests  int
		delivered bool
		err       string // "its host" where the URL is secret
	}{
		"it arrives":               {hook.Hook{Credentials: "token"}, nil, "no route", 1, true, ""},
		"at the third try":         {hook.Hook{}, []int{bad, bad}, "no route", 3, true, ""},
		"never":                    {hook.Hook{}, []int{bad, bad, bad, bad, bad}, "no route", 5, false, "it answered 502 Bad Gateway"},
		"it does not want it":      {hook.Hook{}, []int{gone}, "no route", 1, false, "it answered 410 Gone"},
		"it sends one elsewhere":   {hook.Hook{}, []int{http.StatusFound}, "no route", 1, false, "redirect"},
		"its URL is a secret":      {hook.Hook{URLFrom: "here"}, nil, "no route", 1, true, ""},
		"it is not granted":        {hook.Hook{URLFrom: "elsewhere"}, nil, "no route", 0, false, "http://its host"},
		"there is no such secret":  {hook.Hook{URLFrom: "none"}, nil, "no route", 0, false, "is no URL"},
		"the reason has a secret":  {hook.Hook{}, nil, "t0ken was refused", 1, true, ""},
		"it is not told of events": {hook.Hook{On: []string{hook.Conflict}}, nil, "no route", 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := newScene(t, c.hook)
			s.codes = c.codes
			is := s.fails(c.reason)
			assert.Equal(t, len(s.got), c.requests, "requests")
			assert.Equal(t, s.pauses, max(c.requests-1, 0), "pauses")
			assert.Equal(t, is.Delivered == 1, c.delivered, is)
			assert.True(t, strings.Contains(is.Error, c.err) && (is.Error == "") == (c.err == "") && (is.Lost == 1) == (c.err != ""), is.Text())
			text := fmt.Sprintf("%+v %s %+v", is, is.Text(), s.bodies)
			assert.False(t, strings.Contains(text, "t0ken") || strings.Contains(text, "h1dden"), "a secret is shown:", text)
			for i, n := range s.bodies {
				assert.Equal(t, n.ID, s.bodies[0].ID, "try", i)
				assert.True(t, n.Schema == Schema && n.Event == hook.PullFailed && n.Workspace == "@acme/app" && n.Part == "@acme/app" && n.Mountpoint == "/mnt/ws" &&
					strings.HasPrefix(n.Text, "wsmount: pull"), fmt.Sprintf("%+v", n))
				wants := map[bool]string{true: "Bearer t0ken"}[c.hook.Credentials != ""]
				assert.Equal(t, s.got[i].Header.Get("Authorization"), wants, url)
			}
		})
	}
}

// A program gets a notice as its input, within its time, with a clean environment.
func TestCommand(t *testing.T) {
	t.Setenv("WSMOUNT_TEST_LEAK", "leaked")
	dir := t.TempDir()
	assert.OK(t, os.Chmod(dir, 0o700))
	script := filepath.Join(dir, "hook")
	write := func(body string) {
		assert.OK(t, os.WriteFile(script, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	}
	for name, c := range map[string]struct {
		body    string
		timeout time.Duration
		err     string
		pauses  int
	}{
		"it takes it":     {`cat > "$1/got"; echo "[$WSMOUNT_TEST_LEAK]" >> "$1/got"`, time.Minute, "", 0},
		"it fails":        {"exit 3", time.Minute, "exit status 3", len(pauses)},
		"it does not end": {"sleep 1000", 50 * time.Millisecond, "did not finish within 50ms", len(pauses)},
	} {
		t.Run(name, func(t *testing.T) {
			write(c.body)
			s, _ := newScene(t, hook.Hook{Command: []string{script, dir}, Timeout: c.timeout})
			is := s.fails("no route")
			assert.Equal(t, s.pauses, c.pauses, "pauses")
			assert.True(t, strings.Contains(is.Error, c.err) && (c.err == "") == (is.Delivered == 1), is.Text())
		})
	}
	got := assert.Of(os.ReadFile(dir + "/got")).OK(t)
	assert.True(t, strings.Contains(string(got), `"event":"pull-failed"`) && strings.HasSuffix(string(got), "}\n[]\n"), string(got))
}

// At the end what is left is tried once; a hook that does not answer holds nothing up for long.
func TestClose(t *testing.T) {
	s, _ := newScene(t, hook.Hook{})
	s.codes = slices.Repeat([]int{http.StatusBadGateway}, len(pauses)+1)
	s.Conflict("@acme/app", "found by the last push")
	s.Notifier.mu.Lock()
	s.last = control.Status{Taken: time.Now(), Parts: []control.Part{{Name: "@acme/app", Copy: &control.Copy{}}}}
	s.Notifier.mu.Unlock()
	assert.OK(t, s.Close())
	assert.True(t, len(s.bodies) > 0 && s.bodies[0].Paths[0] == "found by the last push" && s.Status()[0].Lost == 1, s.bodies, s.Status())
	s.Observe(s.last) // says nothing any more
	var none *Notifier
	none.Observe(control.Status{})
	none.Conflict("", "")
	assert.True(t, none.Close() == nil && none.Status() == nil, "there need be no hook")
}

// Two hooks alike have names of their own, and one that is full loses, not the mount.
func TestFull(t *testing.T) {
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stuck
	}))
	defer server.Close()
	s, _ := newScene(t, hook.Hook{Command: []string{"true"}})
	assert.OK(t, s.Close())
	s.o.Hooks = []hook.Hook{{URL: server.URL, Timeout: time.Minute}, {URL: server.URL + "/b", Timeout: time.Minute}}
	s.o.Transport = func(string) (http.RoundTripper, error) { return http.DefaultTransport, nil }
	n := Start(s.o)
	n.mu.Lock()
	n.tell(make([]Notice, queued+10))
	n.mu.Unlock()
	for i, is := range n.Status() {
		assert.True(t, is.Lost >= 9 && is.Waiting > 0, is.Text())
		assert.Equal(t, strings.HasSuffix(is.Name, " (2)"), i == 1, is.Name)
	}
	for _, sender := range n.senders {
		sender.cancel()
	}
	close(stuck)
	assert.OK(t, n.Close())
}
