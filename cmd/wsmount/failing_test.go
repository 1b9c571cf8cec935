package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// gitWorkspace registers @acme/site, which lies in a repository with one file, and whose commits are
// by an identity.
func (w *world) gitWorkspace(s *gitserver.Server, identity, sync string) (string, *gitserver.Repo) {
	w.t.Helper()
	repo := s.Create(w.t, "acme/site")
	other := repo.Clone(w.path("other"))
	other.Write(map[string]string{"a": "1"})
	other.Commit("main", "begin")
	w.config(fmt.Sprintf("allow_endpoints: [ %[1]q ]\nproviders: { github: { base_url: %[1]q } }\n", s.URL))
	w.write("site/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/site\"\nversion: \"1.0.0\"\nname: site\n"+
		"owner: {type: user, id: acme-1, slug: acme}\nidentity: "+identity+"\n"+
		"storage: {inline: {provider: github, config: {repo: acme/site, branch: main}, sync: {"+sync+"}}}\n---\n")
	w.ok("registry", "add", w.path("site"))
	return "@acme/site", repo
}

// metrics are those of a mount that serves them anywhere.
func (w *world) metrics() string {
	w.t.Helper()
	log := assert.Of(os.ReadFile(w.status().Log)).OK(w.t)
	_, after, found := strings.Cut(string(log), "msg=metrics address=")
	assert.True(w.t, found, "the log has the address")
	addr, _, _ := strings.Cut(after, "\n")
	resp := assert.Of(http.Get("http://" + addr + "/metrics")).OK(w.t)
	defer resp.Body.Close()
	body := assert.Of(io.ReadAll(resp.Body)).OK(w.t)
	return string(body)
}

// A server of a repository that lets nobody in any more is seen, at the mount and
// with each event, wherever one looks, until it answers again.
func TestGitServerThatRefuses(t *testing.T) {
	tier.RequireFUSE(t)
	w, s := newWorld(t), gitserver.Start(t)
	site, repo := w.gitWorkspace(s, "{name: Bob, email: bob@acme.test}", "mode: pull-push, pull: {on: workspace-open}, commit: {on: turn-end}, push: {on: per-commit}")
	w.config(fmt.Sprintf("allow_endpoints: [ %[1]q ]\nproviders: { github: { base_url: %[1]q } }\nnotify: [ { command: [ tee, -a, %[2]q ] } ]\n", s.URL, w.path("told")))
	w.mount(site, "mnt", "--metrics-addr", "127.0.0.1:0", "--patience", "1h") // of an end that meets a server which is away
	failing := func(activity string) (found *control.Failing) {
		for _, f := range w.status().Parts[0].Copy.Failing {
			if f.Activity == activity {
				return &f
			}
		}
		return nil
	}
	log := func() string { return w.read("mnt/.wsmount/errors.log") }
	if got := w.event(exit.Done, "event", "mnt", "workspace-open"); len(got.Failing) != 0 || failing("pull") != nil || log() != "" {
		t.Fatalf("while all is well: got %+v, %s", got, log())
	}

	s.Hook(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	got := w.event(exit.Denied, "event", "mnt", "workspace-open")
	assert.True(t, len(got.Failed) == 1 && strings.Contains(got.Failed[0], "pull: credentials are missing, wrong or expired (401)") && len(got.Failing) == 1, "an event that pulls: got", got)
	assert.Contains(t, w.shown(), "pull fails", "the list of mounts")
	w.write("mnt/b", "2")
	got = w.event(exit.Denied, "event", "mnt", "turn-end")
	assert.True(t, len(got.Failed) == 1 && strings.Contains(got.Failed[0], "push: ") && got.Committed == 1 && len(got.Failing) == 2, "an event that pushes: got", got)
	// says looks at all that a person is told while the server does not take what is there.
	says := func(when, reason, hint string) {
		t.Helper()
		o := w.run("push", "mnt", "--timeout", "10s") // for a server that is away; the others answer at once
		assert.Contains(t, o.errOut, "wsmount: @acme/site: push: "+reason, when)
		assert.Contains(t, o.errOut, "\nhint: "+hint, when)
		for _, f := range w.status().Parts[0].Copy.Failing {
			assert.Message(t, f.Error, when, f.Activity)
		}
		assert.Message(t, o.errOut, when, "push")
		assert.Message(t, log(), when, "errors.log")
	}
	says("refused", "credentials are missing, wrong or expired (401): authentication required\n", "check the secret that it uses: `wsmount resolve @acme/site --explain` names it")
	check := func(when string, activities ...string) {
		t.Helper()
		out, status := w.shown("mnt"), w.read("mnt/.wsmount/status.json")
		for _, a := range activities {
			f := failing(a)
			assert.True(t, f != nil && !f.Since.IsZero() && f.Times != 0 && f.Error != "", when, "status of", a, "got", f)
			for want, text := range map[string]string{"failing     " + a + ", for ": out, "# " + a + " fails since ": log(), `"activity": "` + a + `"`: status} {
				assert.Contains(t, text, want, when)
			}
		}
	}
	check("after two events", "pull", "push")
	shown := w.metrics()
	for _, want := range []string{`background_failing_seconds{activity="pull",part="@acme/site"`, `store_reachable{part="@acme/site",workspace="@acme/site"} 1`,
		`unpushed_commits{part="@acme/site",workspace="@acme/site"} 1`, `events_total{event="turn-end",part="@acme/site",result="failed",`,
		`last_pull_timestamp_seconds{`, `credential_failures_total{`} {
		assert.Contains(t, shown, "wsmount_"+want, "metrics")
	}
	for _, event := range []string{"pull-failed", "push-failed"} {
		eventually(t, "the hook is told: "+event, func() bool {
			told, err := os.ReadFile(w.path("told"))
			return err == nil && strings.Contains(string(told), `"event":"`+event+`"`) && strings.Contains(w.shown("mnt"), "command tee: ")
		})
	}

	s.Hook(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	says("away", "storage is not available: unexpected EOF\n", "nothing is lost: it is tried again")
	o := w.run("umount", "mnt", "--timeout", "1s")
	assert.True(t, o.code == exit.Unsafe && strings.Contains(o.errOut, "has not ended yet\n  @acme/site: 1 commit is not pushed: storage is not available: unexpected EOF\nhint: `wsmount umount "), "umount of what still sends", o)
	o = w.run("recover")
	assert.True(t, o.code == exit.Unsafe && strings.Contains(o.out, "is out of sight and has not ended: it sends what is unsaved"), "recover, while it sends", o)
	s.Hook(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})

	for _, when := range []string{"before its end or after it", "after its end"} { // commits are not pushed
		o = w.run("umount", "mnt")
		assert.Contains(t, o.errOut, "unmounted, but not everything is in the store: @acme/site: push: credentials are missing", when)
		assert.Message(t, o.errOut, "umount", when)
	}
	o = w.run("mount", site, "mnt")
	assert.Message(t, o.errOut, "note of the mount")
	assert.True(t, o.code == exit.Done && strings.Contains(o.errOut, "pull fails: "), "mount", o)
	check("at the mount", "pull")

	s.Hook(nil)
	w.event(exit.Done, "event", "mnt", "workspace-open")
	w.event(exit.Done, "event", "mnt", "turn-end")
	if s := w.status(); len(s.Parts[0].Copy.Failing) != 0 || strings.Contains(log(), "fails since") || !strings.Contains(log(), ` pull "/"`) {
		t.Errorf("when it answers again: got %+v\n%s", s.Parts[0].Copy.Failing, log())
	}

	repo.Git("update-ref", "-d", "refs/heads/main")
	gone := s.URL + "/acme/site.git has no branch main any more: a push makes it again"
	got = w.event(exit.Done, "event", "mnt", "workspace-open")
	assert.True(t, len(got.PutOff) == 1 && strings.Contains(got.PutOff[0], "@acme/site: "+gone), "an event of a branch that was deleted: got", got.PutOff)
	check("of a branch that was deleted", "pull")
	assert.Contains(t, w.shown("mnt"), gone, "status")
	assert.Contains(t, log(), gone, "errors.log")
}

// Why a program got an errno of a store that answers, and does not do what it is asked for, is
// wherever one looks, once, until the store does it.
func TestStoreThatRefuses(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	assert.OK(t, r.Tamper(t.Context(), providers.MustLocator("far"), []byte("away")))
	w.mount(w.remoteWorkspace("ops", r, "mode: canonical", ""), "mnt")
	w.listRoot()
	log := func() string { return w.read("mnt/.wsmount/errors.log") }
	const refusals = 1000
	assert.OK(t, r.Fail(t.Context(), providers.MethodRead, refusals, providers.ErrPermission))
	for range 3 {
		assert.Is(t, assert.ErrOf(os.ReadFile(w.path("mnt/far"))), syscall.EACCES)
	}
	for want, in := range map[string]string{
		"failing     read, for ": w.shown("mnt"),
		"read fails":             w.shown(),
		`"activity": "read"`:     w.read("mnt/.wsmount/status.json"),
		"# read fails since ":    log(),
		` read "far": "as the switches say: permission denied"`: log(),
		`msg="the store refuses a request"`:                     string(assert.Of(os.ReadFile(w.status().Log)).OK(t)),
	} {
		assert.Contains(t, in, want)
	}
	assert.Equal(t, w.status().Parts[0].Errors, 1, "failures that are told")
	assert.OK(t, r.Clear(t.Context()))
	assert.Equal(t, w.read("mnt/far"), "away")
	if s := w.status(); len(s.Parts[0].Copy.Failing) != 0 || strings.Contains(log(), "fails since") || !strings.Contains(log(), ` read "`) {
		t.Errorf("when it does: got %+v\n%s", s.Parts[0].Copy.Failing, log())
	}

	// Whoever is told of an end, or asks for a push, hears what the store has not taken.
	assert.OK(t, r.Fail(t.Context(), providers.MethodMkdir, refusals, providers.ErrPermission))
	assert.OK(t, os.Mkdir(w.path("mnt/new"), 0o755))
	for _, args := range [][]string{{"event", "mnt", "turn-end"}, {"event", "mnt", "conversation-end"}, {"push", "mnt"}} {
		assert.Equal(t, w.event(exit.Unsafe, args...).HeldBack, 1, args)
	}
	w.event(exit.Done, "event", "mnt", "turn-start")
	assert.OK(t, r.Clear(t.Context()))
	assert.Equal(t, w.event(exit.Done, "event", "mnt", "turn-end").HeldBack, 0, "when it takes it")
}

// The authors of the example of AIP-34 are whom --operator names and whom git knows;
// without --operator git's user is both, and has one part in the commit. A co-author whom
// nobody knows is told of.
func TestOperatorAndUser(t *testing.T) {
	tier.RequireFUSE(t)
	w, s := newWorld(t), gitserver.Start(t)
	site, repo := w.gitWorkspace(s, "[ { ref: \"operator://current\" }, { ref: \"user://current\", role: co-author } ]",
		"mode: pull-push, commit: {on: turn-end}, push: {on: per-commit}")
	w.refused(exit.Manifest, "operator://current, the author of commits, has no name", site, "mnt")
	w.ok(site, "mnt", "--operator", "Bot <bot@acme.test>")
	assert.Contains(t, w.ok("status", "--json", "mnt"), "user://current is to be a co-author of commits, and has no name")
	w.ok("umount", "mnt")
	w.write("home/.gitconfig", "[user]\nname = Ann Bo\nemail = ann@acme.test\n")
	w.refused(exit.Usage, "--operator", site, "mnt", "--operator", "Bot")
	for _, tt := range []struct{ file, operator, want string }{
		{"one", "", "Ann Bo <ann@acme.test>\n"},
		{"two", "Bot <bot@acme.test>", "Bot <bot@acme.test>\nCo-authored-by: Ann Bo <ann@acme.test>\n"},
	} {
		args := []string{site, "mnt"}
		if tt.operator != "" {
			args = append(args, "--operator", tt.operator)
		}
		w.ok(args...)
		w.write("mnt/"+tt.file, "text\n")
		w.ok("event", "mnt", "turn-end")
		w.ok("umount", "mnt")
		assert.Contains(t, repo.Git("log", "-1", "--format=%an <%ae>%n%(trailers:key=Co-authored-by)", "main")+"\n", tt.want)
	}
}
