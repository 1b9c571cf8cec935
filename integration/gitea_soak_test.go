//go:build soak

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/internal/port"
	"github.com/wsmount/wsmount/integration/tier"
)

// A gitea is a running Gitea with one user, whose token may do all.
type gitea struct {
	t          *testing.T
	url, token string
}

// startGitea runs bin/gitea for one test.
func startGitea(t *testing.T, w *harness.World) *gitea {
	t.Helper()
	program := tier.RequireBuilt(t, "gitea")
	held := assert.Of(port.Hold()).OK(t)
	t.Cleanup(held.Close)
	g := &gitea{t: t, url: "http://" + held.Addr}
	_, number, _ := net.SplitHostPort(held.Addr)
	work := w.Mkdir("gitea", 0o755)
	ini := w.Write("gitea/app.ini", fmt.Sprintf("RUN_USER = %[4]s\nI_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\nWORK_PATH = %[1]s\n"+
		"[server]\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = %[2]s\nROOT_URL = %[3]s/\nDISABLE_SSH = true\nOFFLINE_MODE = true\n"+
		"[database]\nDB_TYPE = sqlite3\nPATH = %[1]s/gitea.db\n[security]\nINSTALL_LOCK = true\nSECRET_KEY = of-the-test\n"+
		"[log]\nLEVEL = Warn\nMODE = console\n[cron]\nENABLED = false\n[actions]\nENABLED = false\n[indexer]\nISSUE_INDEXER_TYPE = db\n",
		work, number, g.url, currentUser()), 0o600)
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"-c", ini}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "GITEA_WORK_DIR=" + work, "USER=" + currentUser()}
		return cmd
	}
	for _, args := range [][]string{{"migrate"}, {"admin", "user", "create", "--username", "acme", "--password", "Of-the-test-1", "--email", "a@acme.test", "--admin", "--must-change-password=false"}} {
		out, err := run(args...).CombinedOutput()
		assert.Must(t, err == nil, "gitea", args, err, out)
	}
	out := assert.Of(run("admin", "user", "generate-access-token", "--username", "acme", "--scopes", "write:repository,write:user", "--raw").Output()).OK(t)
	lines := strings.Fields(string(out))
	g.token = lines[len(lines)-1]
	server := run("web")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	assert.OK(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("gitea says:\n%.4000s", log.String())
		}
	})
	harness.Eventually(t, "gitea answers", func() bool {
		resp, err := http.Get(g.url + "/api/v1/version")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return g
}

func currentUser() string {
	out, err := exec.Command("id", "-un").Output()
	if err != nil {
		return "root"
	}
	return strings.TrimSpace(string(out))
}

// ask asks the API as the user, and wants a status of 2xx.
func (g *gitea) ask(method, path string, in, out any) {
	g.t.Helper()
	body := assert.Of(json.Marshal(in)).OK(g.t)
	r := assert.Of(http.NewRequest(method, g.url+"/api/v1"+path, bytes.NewReader(body))).OK(g.t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "token "+g.token)
	resp := assert.Of(http.DefaultClient.Do(r)).OK(g.t)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		g.t.Fatalf("%s %s: %s, %v\n%.500s", method, path, resp.Status, err, answer)
	}
	if out == nil {
		return
	}
	assert.OK(g.t, json.Unmarshal(answer, out), method, path)
}

// A giteaPull is what the test looks at of a pull request.
type giteaPull struct {
	Number      int
	State       string
	Mergeable   bool
	Title, Body string
	HTMLURL     string `json:"html_url"`
	Head, Base  struct{ Ref string }
}

func (g *gitea) pulls(repo string) (all []giteaPull) {
	g.t.Helper()
	g.ask("GET", "/repos/acme/"+repo+"/pulls?state=all", nil, &all)
	return all
}

// The codespace, whole, at a Gitea: a conversation in the workspace inside another
// ends in a pull request, which goes on with the conversation, is merged, and comes
// back with a pull. What Gitea protects is refused by name. It takes minutes to build a
// Gitea; the same is in make test at a server of its own.
func TestGiteaCodespace(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	server := startGitea(t, w)
	for _, repo := range []string{"marketing-ops", "marketing-bot"} {
		server.ask("POST", "/user/repos", map[string]any{"name": repo, "auto_init": true, "default_branch": "main"}, nil)
	}
	server.ask("POST", "/repos/acme/marketing-bot/branch_protections", map[string]any{"rule_name": "wsmount/c/locked", "enable_push": false}, nil)
	w.Write("config/token", server.token, 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\n"+
		"providers: { github: { base_url: %[1]q, api_url: \"%[1]s/api/v1\" } }\nsecrets: { github-token: { file: %[2]q, allow: [\"@acme/*\"] } }\n",
		server.url, w.Path("config/token")), 0o600)
	g := &pullStage{gitStage: &gitStage{t: t, w: w, auth: "GITHUB_TOKEN"}}
	g.workspaceOf("marketing-bot", "repo: acme/marketing-bot", "pull: {on: conversation-start}, commit: {on: per-turn}, "+
		"push: {on: per-turn, branch_policy: per-conversation, pr_policy: auto}", "")
	g.workspaceOf("marketing-ops", "repo: acme/marketing-ops", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-turn}",
		"metadata: { wsmount: { mounts: [ { at: /marketing-bot/, source: \"@acme/marketing-bot\" } ] } }\n")
	m := g.w.Mount("@acme/marketing-ops")
	inside := m.Dir + "/marketing-bot"

	g.happens(m, "conversation-start", "conversationId=c1")
	url := ""
	for turn := range 3 {
		g.happens(m, "turn-start", "conversationId=c1", fmt.Sprint("turnId=", turn))
		g.check(os.WriteFile(m.Dir+"/plan.md", fmt.Append(nil, turn), 0o644))
		if turn < 2 {
			g.check(os.WriteFile(filepath.Join(inside, fmt.Sprint("turn", turn)), []byte("x\n"), 0o644))
		}
		out := g.happens(m, "turn-end", "conversationId=c1", fmt.Sprint("turnId=", turn), fmt.Sprint("summary=turn ", turn))
		pulls := server.pulls("marketing-bot")
		assert.Must(t, len(pulls) == 1 && out.PRURL != "" && out.PRURL == pulls[0].HTMLURL && (url == "" || url == out.PRURL), "turn", turn, out, "pull requests", pulls)
		url = out.PRURL
	}
	p := server.pulls("marketing-bot")[0]
	assert.True(t, p.Head.Ref == "wsmount/c/c1" && p.Base.Ref == "main" && strings.Contains(p.Title, "turn 0") && p.State == "open", "it is", p)
	assert.Equal(t, len(server.pulls("marketing-ops")), 0, "pull requests of the workspace outside")

	// Merged as one commit, so that the branch is none of the tracked one's.
	// Gitea finds out in the background whether that can be, and refuses until then.
	request := fmt.Sprint("/repos/acme/marketing-bot/pulls/", p.Number)
	harness.Eventually(t, "the pull request can be merged", func() bool {
		var now giteaPull
		server.ask("GET", request, nil, &now)
		return now.Mergeable
	})
	server.ask("POST", request+"/merge", map[string]any{"Do": "squash", "delete_branch_after_merge": true}, nil)
	g.happens(m, "conversation-start", "conversationId=c2")
	g.has(inside, true, "turn0", "turn1", "README.md")
	assert.Equal(t, len(copyOf(m, "/marketing-bot").Branches), 0, "after the merge")

	g.happens(m, "conversation-start", "conversationId=locked")
	g.check(os.WriteFile(inside+"/locked", []byte("x\n"), 0o644))
	out, code := g.told("event", m.Dir, "turn-end", "--var", "conversationId=locked")
	assert.True(t, code == 5 && len(out.Failed) == 1, "what Gitea protects: exit", code, out)
	b := copyOf(m, "/marketing-bot").Branches
	assert.True(t, len(b) == 1 && b[0].Refused == "protected-branch", "listed:", b)
	g.happens(m, "conversation-start", "conversationId=c3")
	g.check(os.WriteFile(inside+"/c3", []byte("x\n"), 0o644))
	out = g.happens(m, "turn-end", "conversationId=c3")
	assert.True(t, out.PRURL != "" && out.PRURL != url, "the next conversation:", out)
	m.Stop()
	g.nowhere(server.token)
}
