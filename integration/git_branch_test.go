package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A pullStage is a gitStage whose server has an API for pull requests.
type pullStage struct {
	*gitStage
	api *gitserver.API
}

// newPullStage asks for the token. app is the host configuration of a GitHub App.
func newPullStage(t *testing.T, app string) *pullStage {
	t.Helper()
	g := newGitStage(t)
	g.seed()
	p := &pullStage{g, g.server.StartAPI(t)}
	g.server.Require(gitToken)
	config := g.w.Path("config/wsmount/config.yaml")
	text, err := os.ReadFile(config)
	g.check(err)
	api := fmt.Sprintf("providers: { github: { api_url: %q%s,", p.api.URL, app)
	g.w.Write("config/wsmount/config.yaml", strings.Replace(string(text), "providers: { github: {", api, 1), 0o600)
	return p
}

// told is what a command says in JSON, and how it ended.
func (g *gitStage) told(args ...string) (out told, code int) {
	g.t.Helper()
	r := g.w.Run(append(args, "--json")...)
	assert.OK(g.t, json.Unmarshal([]byte(r.Out), &out), args, "exit", r.Code, r.Out, r.Err)
	return out, r.Code
}

type told struct {
	Pushed, Committed int
	PRURL             string
	Notes, Failed     []string
}

// happens tells a mount of an event, which is to be followed in full.
func (g *pullStage) happens(m *harness.Mount, name string, vars ...string) told {
	g.t.Helper()
	args := []string{"event", m.Dir, name}
	for _, v := range vars {
		args = append(args, "--var", v)
	}
	out, code := g.told(args...)
	assert.Must(g.t, code == 0, name, vars, "exit", code, out)
	return out
}

// copyOf is the working copy at a path of a mount.
func copyOf(m *harness.Mount, at string) *harness.WorkingCopy {
	for _, p := range m.Status().Parts {
		if p.At == at && p.WorkingCopy != nil {
			return p.WorkingCopy
		}
	}
	return &harness.WorkingCopy{}
}

func (g *pullStage) has(dir string, there bool, names ...string) {
	g.t.Helper()
	for _, name := range names {
		assert.Equal(g.t, assert.ErrOf(os.Stat(filepath.Join(dir, name))) == nil, there, name)
	}
}

// AIP-34's codespace: a workspace of code inside another, each with its own
// policy. An event to the whole reaches both; a conversation ends in one pull
// request; the next one begins without its work; all of it outlives a kill.
func TestGitCodespace(t *testing.T) {
	t.Parallel()
	g := newPullStage(t, "")
	bot := g.server.Create(t, "acme/marketing-bot")
	other := bot.Clone(g.w.Path("bot"))
	other.Write(map[string]string{"bot.go": "package bot\n"})
	other.Commit("main", "begin")
	g.workspaceOf("marketing-bot", "owner: acme, repo: marketing-bot", "pull: {on: conversation-start}, commit: {on: per-turn}, "+
		"push: {on: per-conversation, branch_policy: per-conversation, pr_policy: auto}", "")
	g.workspaceOf("marketing-ops", "repo: acme/site", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}",
		"metadata: { wsmount: { mounts: [ { at: /marketing-bot/, source: \"@acme/marketing-bot\" } ] } }\n")
	m := g.w.Mount("@acme/marketing-ops")
	inside := m.Dir + "/marketing-bot"

	g.happens(m, "conversation-start", "conversationId=c1")
	g.happens(m, "turn-start", "conversationId=c1", "turnId=1")
	g.check(os.WriteFile(m.Dir+"/plan.md", []byte("plan\n"), 0o644))
	g.check(os.WriteFile(inside+"/c1.go", []byte("package bot\n"), 0o644))
	if out := g.happens(m, "turn-end", "conversationId=c1", "turnId=1", "summary=the first turn"); out.Committed != 2 || out.PRURL != "" {
		t.Errorf("turn-end: %+v", out)
	}
	harness.Eventually(t, "the plan is on the tracked branch", func() bool {
		out, err := g.repo.Try("show", "main:plan.md")
		return err == nil && out == "plan\n"
	})
	if out, err := bot.Try("rev-parse", "-q", "--verify", "wsmount/c/c1"); err == nil {
		t.Errorf("before its conversation ends the branch is at %s", out)
	}
	out := g.happens(m, "conversation-end", "conversationId=c1")
	pulls := g.api.Pulls()
	assert.Must(t, len(pulls) == 1 && out.PRURL == pulls[0].HTML && out.Pushed == 1, "conversation-end:", out, "pull requests", pulls)
	p := pulls[0]
	assert.True(t, p.Repo == "acme/marketing-bot" && p.Head == "wsmount/c/c1" && p.Base == "main" && strings.Contains(p.Title+p.Text, "the first turn"), "it is", p)
	got := bot.Git("log", "-1", "--format=%an %s", "wsmount/c/c1")
	assert.True(t, strings.HasPrefix(got, "Bob "), "the commit is", got)

	g.happens(m, "conversation-start", "conversationId=c2")
	g.has(inside, false, "c1.go")
	g.has(inside, true, "bot.go")
	g.check(os.WriteFile(inside+"/c2.go", []byte("package bot\n"), 0o644))
	m.Kill()
	m.Start()
	g.has(inside, true, "c2.go", "bot.go")
	harness.Eventually(t, "the branches are known after a kill", func() bool { // which a mount does not wait long for
		c := copyOf(m, "/marketing-bot")
		return len(c.Branches) == 1 && c.Branches[0].Name == "wsmount/c/c1" && c.Branches[0].PRURL == pulls[0].HTML && c.Branches[0].Pushed && c.Branch == "wsmount/c/c2"
	})
	g.happens(m, "turn-end", "conversationId=c2")
	g.happens(m, "conversation-end", "conversationId=c2")
	g.happens(m, "conversation-end", "conversationId=c2")
	assert.Equal(t, len(g.api.Pulls()), 2, "pull requests after two conversations")
	assert.Equal(t, bot.Git("diff", "--name-only", "main", "wsmount/c/c2"), "c2.go\n", "the second")
	m.Stop()
	g.sound()
	g.nowhere(gitToken)
}

// Each turn has a branch, and goes on from the one before it: nothing goes from
// the tree between two turns. Another conversation begins anew, but not at the
// cost of what is not pushed, and it says so.
func TestGitBranchOfATurn(t *testing.T) {
	t.Parallel()
	g := newPullStage(t, "")
	g.workspace("turns", "pull: {on: manual}, commit: {on: per-turn}, push: {on: manual, branch_policy: per-turn, pr_policy: manual}")
	m := g.w.Mount("@acme/turns")
	for _, turn := range []string{"1", "2/ö"} {
		g.happens(m, "turn-start", "conversationId=c1", "turnId="+turn)
		g.check(os.WriteFile(m.Dir+"/turn"+turn[:1], []byte(turn), 0o644))
		g.happens(m, "turn-end", "conversationId=c1", "turnId="+turn)
		if turn == "1" {
			g.told("push", m.Dir)
		}
	}
	g.has(m.Dir, true, "turn1", "turn2")
	out := g.happens(m, "conversation-start", "conversationId=c2")
	assert.True(t, len(out.Notes) == 1 && strings.Contains(out.Notes[0], "commits that are not pushed"), "the next conversation:", out)
	g.has(m.Dir, true, "turn1", "turn2")

	g.api.Fail(func(*http.Request) *gitserver.Answer {
		return &gitserver.Answer{Status: http.StatusServiceUnavailable, Body: `{"message":"down for repairs"}`}
	})
	out, code := g.told("push", m.Dir, "--pr")
	assert.True(t, code != 0 && out.Pushed == 1 && strings.Contains(strings.Join(out.Failed, ""), "down for repairs"), "while the API is away: exit", code, out)
	g.check(os.WriteFile(m.Dir+"/later", []byte("x"), 0o644))
	assert.Equal(t, g.happens(m, "turn-end").Committed, 1, "a turn meanwhile")
	out, code = g.told("push", m.Dir)
	assert.True(t, code == 0 && out.Pushed == 1, "a push meanwhile: exit", code, out)
	wanted := 0
	for _, b := range copyOf(m, "/").Branches {
		if !b.PRWantedSince.IsZero() {
			wanted++
		}
	}
	if wanted != 1 {
		t.Errorf("%d pull requests are wanted: %+v", wanted, copyOf(m, "/").Branches)
	}
	g.api.Fail(nil)
	m.Kill() // what is wanted outlives that
	m.Start()
	harness.Eventually(t, "the pull request is opened in the background", func() bool { return len(g.api.Pulls()) == 1 })
	if out, code := g.told("push", m.Dir, "--pr"); code != 0 || len(g.api.Pulls()) != 1 || out.PRURL != g.api.Pulls()[0].HTML {
		t.Errorf("when it is back: exit %d, %+v, %+v", code, out, g.api.Pulls())
	}
	g.happens(m, "conversation-start", "conversationId=c3")
	g.has(m.Dir, false, "turn1", "turn2", "later")
	m.Stop()

	// The policy is another by now: what was committed stays on its branch.
	manifest := g.w.Path("ws-turns", "WORKSPACE.md")
	text, err := os.ReadFile(manifest)
	g.check(err)
	g.check(os.WriteFile(manifest, []byte(strings.Replace(string(text), "push: {on: manual, branch_policy: per-turn, pr_policy: manual}", "push: {on: per-turn}", 1)), 0o644))
	g.w.MustRun("registry", "accept", "@acme/turns", "--yes")
	m.Start()
	g.check(os.WriteFile(m.Dir+"/tracked", []byte("x"), 0o644))
	g.happens(m, "turn-end", "conversationId=c4")
	if c := copyOf(m, "/"); c.Branch != "main" || g.repo.Git("diff", "--name-only", "main~", "main") != "tracked\n" {
		t.Errorf("with another policy: %+v, main has %s", c, g.repo.Git("diff", "--name-only", "main~", "main"))
	}
	m.Stop()
	g.sound()
}

// What a server refuses is listed with its reason, and is in the way of nothing
// that comes after it.
func TestGitRefusedBranch(t *testing.T) {
	t.Parallel()
	g := newPullStage(t, "")
	hook := filepath.Join(g.repo.Dir, "hooks", "update")
	g.check(os.MkdirAll(filepath.Dir(hook), 0o755))
	g.check(os.WriteFile(hook, []byte("#!/bin/sh\ncase $1 in */bad) echo 'GH006: Protected branch update failed' >&2; exit 1;; esac\n"), 0o755))
	g.workspace("refused", "pull: {on: manual}, commit: {on: per-turn}, push: {on: per-turn, branch_policy: per-conversation}")
	m := g.w.Mount("@acme/refused")
	g.happens(m, "turn-start", "conversationId=bad")
	g.check(os.WriteFile(m.Dir+"/bad", []byte("x"), 0o644))
	out, code := g.told("event", m.Dir, "turn-end", "--var", "conversationId=bad")
	assert.True(t, code == 5 && out.Committed == 1 && len(out.Failed) == 1, "what is refused: exit", code, out)
	g.happens(m, "turn-start", "conversationId=good")
	g.has(m.Dir, false, "bad")
	g.check(os.WriteFile(m.Dir+"/good", []byte("x"), 0o644))
	assert.Equal(t, g.happens(m, "turn-end", "conversationId=good").Pushed, 1, "the next conversation")
	b := copyOf(m, "/").Branches
	assert.True(t, len(b) == 2 && b[0].Name == "wsmount/c/bad" && b[0].Refused == "protected-branch" && !b[0].Pushed && b[1].Refused == "", "listed:", b)
	assert.Contains(t, g.w.MustRun("status", m.Dir), "protected-branch", "status does not say why")
	m.Stop()
	g.sound()
}

// A GitHub App is who the host says: its key and its tokens are nowhere on the
// disk, and an installation that is not the owner's is refused.
func TestGitApp(t *testing.T) {
	t.Parallel()
	g := newPullStage(t, ", app: { id: 4711, key: app-key, installations: { acme: [42] } }")
	app := g.api.StartApp()
	g.w.Write("config/app.pem", app.Key, 0o600)
	config := g.w.Path("config/wsmount/config.yaml")
	text, err := os.ReadFile(config)
	g.check(err)
	g.w.Write("config/wsmount/config.yaml", strings.Replace(string(text), "secrets: {", fmt.Sprintf("secrets: { app-key: { file: %q },", g.w.Path("config/app.pem")), 1), 0o600)
	g.workspaceOf("app", "repo: acme/site, branch: main, installation_id: 42", "pull: {on: manual}, commit: {on: per-turn}, "+
		"push: {on: per-commit, branch_policy: per-conversation, pr_policy: auto}", "")
	g.server.Require("nobody's")
	m := g.w.Mount("@acme/app")
	g.check(os.WriteFile(m.Dir+"/by-the-app", []byte("x"), 0o644))
	out := g.happens(m, "turn-end")
	pulls := g.api.Pulls()
	assert.True(t, out.Pushed == 1 && len(pulls) == 1 && out.PRURL == pulls[0].HTML, "a turn:", out, pulls)
	m.Stop()
	m = g.w.Mount("@acme/app", "--patience", "1s") // for a server that is away
	g.server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		away := strings.Contains(r.URL.RequestURI(), "git-receive-pack")
		if away {
			http.Error(w, "later", http.StatusServiceUnavailable)
		}
		return away
	})
	g.later(m, "while-it-is-away", "503")
	b := copyOf(m, "/").Branches
	assert.True(t, len(b) == 1 && !b[0].Pushed && b[0].Commits == 2, "after a turn while the server is away:", b)
	g.server.Hook(nil)
	harness.Eventually(t, "it is pushed in the background", func() bool {
		b := copyOf(m, "/").Branches
		return len(b) == 1 && b[0].Pushed && b[0].Commits == 2
	})
	m.Stop()
	tokens, asked := app.Minted()
	others := slices.ContainsFunc(asked, func(repo string) bool { return repo != "site" })
	if len(tokens) < 2 || others { // one for each mount; more where one was given up while it came
		t.Errorf("%d tokens were minted, for %q", len(tokens), asked)
	}
	g.nowhere(append(tokens, strings.Split(app.Key, "\n")[1])...)
	g.sound()

	g.workspaceOf("stranger", "repo: acme/site, branch: main, installation_id: 43", "push: {on: per-commit}", "")
	r := g.w.Run("mount", "@acme/stranger", g.w.Mkdir("mnt-stranger", 0o755))
	assert.True(t, r.Code == 5 && strings.Contains(r.Err, "installation 43 is not granted to acme"), "another's installation: exit", r.Code, r.Err)
}
