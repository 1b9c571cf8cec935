package integration

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

// codespace is AIP-34's example of a workspace as a repository.
const codespace = `---
# WORKSPACE.md at the root of acme/marketing-bot repo
schema: workspace/v1
id: "@acme/marketing-bot"
version: 1.0.0
name: "Marketing Bot"
owner: { type: org, id: "01HQ8VR...", slug: acme }
storage:
  inline:
    provider: github
    config: { owner: acme, repo: marketing-bot, branch: main }
    sync:
      pull: { on: turn-start, ttl_seconds: 30 }
      commit: { on: per-turn, message_template: "{{operator}}: {{summary}}" }
      push: { on: per-conversation, branch_policy: per-conversation, pr_policy: auto }
sandbox:
  inline:
    provider: mastra-e2b
    config: { template: "code-interpreter" }
    mounts:
      - source: workspace
        at: /workspace
        mode: read-write
code:
  file: "./CODE.md"       # the workspace IS this code module
identity:
  - { ref: "operator://current" }
  - { ref: "user://current", role: "co-author" }
---
`

const codeManifest = "---\nschema: code/v2\nid: \"@acme/code/marketing-bot\"\nversion: 1.0.0\ndescription: A bot.\nsource: { local: ./bot.py }\nrun: python bot.py\n---\n"

// codespaceFromItsServer registers the codespace from the server where it lies, and mounts it
// with the only installation that its owner has.
func codespaceFromItsServer(t *testing.T) {
	w := harness.New(t, harness.Options{})
	server := gitserver.Start(t)
	api := server.StartAPI(t)
	app := api.StartApp()
	server.Require("a token that nobody is told")
	repo := server.Create(t, "acme/marketing-bot")
	other := repo.Clone(w.Path("other"))
	other.Write(map[string]string{"WORKSPACE.md": codespace, "CODE.md": codeManifest, "bot.py": "print('hello')\n"})
	other.Commit("main", "begin")
	w.Write("config/app.pem", app.Key, 0o600)
	config := fmt.Sprintf("allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\nsecrets: { github-app: { file: %[2]q } }\nproviders: { github: { base_url: %[1]q, api_url: %[3]q, app: { id: %[4]d, key: github-app, installations: { acme: [%[5]d] } } } }\n",
		server.URL, w.Path("config/app.pem"), api.URL, app.ID, app.Installation)
	w.Write("config/wsmount/config.yaml", config, 0o600)

	shown := w.MustRun("registry", "add", "--from", server.URL+"/acme/marketing-bot.git")
	for _, line := range []string{"WORKSPACE.md\n", "  +name: \"Marketing Bot\"\n", "CODE.md\n", "  +run: python bot.py\n", "@acme/marketing-bot: github:acme/marketing-bot#main\n"} {
		assert.Contains(t, shown, line)
	}
	assert.Contains(t, w.MustRun("registry", "accept", "@acme/marketing-bot"), "nothing has changed")
	assert.Contains(t, w.MustRun("resolve", "--operator", "Ann Bo <ann@acme.test>", "@acme/marketing-bot"), "code")
	w.Mkdir("config/git", 0o755)
	w.Write("config/git/config", "[user]\n\tname = Cara Dee\n\temail = cara@acme.test\n", 0o600)
	m := w.Mount("@acme/marketing-bot", "--operator", "Ann Bo <ann@acme.test>")
	assert.Of(os.ReadFile(m.Dir+"/bot.py")).Equal(t, []byte("print('hello')\n"))

	// What a conversation changes is committed by the operator with the user of the machine,
	// as status says, and ends in a pull request.
	assert.Contains(t, w.MustRun("status", m.Dir), "commits by  Ann Bo <ann@acme.test>, with Cara Dee <cara@acme.test>")
	assert.Contains(t, w.MustRun("status", m.Dir, "--json"), `"email": "cara@acme.test"`)
	for _, event := range []string{"conversation-start", "turn-start", "turn-end", "conversation-end"} {
		if event == "turn-end" {
			assert.OK(t, os.WriteFile(m.Dir+"/bot.py", []byte("print('hi')\n"), 0o644))
		}
		w.MustRun("event", m.Dir, event, "--var", "conversationId=c1", "--var", "turnId=1", "--var", "summary=says hi")
	}
	assert.Equal(t, len(api.Pulls()), 1, "pull requests")
	commit := repo.Git("log", "-1", "--format=%an <%ae>: %s%n%(trailers)", "wsmount/c/c1")
	assert.Contains(t, commit, "Ann Bo <ann@acme.test>: Ann Bo: says hi")
	assert.Contains(t, commit, "Co-authored-by: Cara Dee <cara@acme.test>")

	// A program in the mount, or somebody else, may change the manifest in the repository:
	// here it counts when it is accepted.
	other.Write(map[string]string{"WORKSPACE.md": strings.Replace(codespace, "Marketing Bot", "Marketing Robot", 1)})
	other.Commit("main", "another name")
	shown = w.MustRun("registry", "accept", "--show", "@acme/marketing-bot")
	assert.Contains(t, shown, "-name: \"Marketing Bot\"")
	assert.Contains(t, shown, "+name: \"Marketing Robot\"")
	w.MustRun("registry", "accept", "--yes", "@acme/marketing-bot")
	assert.Contains(t, w.MustRun("list", "--json"), "Marketing Robot")
	for _, e := range assert.Of(os.ReadDir(w.Path("state", ".shared"))).OK(t) {
		assert.False(t, strings.HasPrefix(e.Name(), "fetch-"), e.Name(), "is left")
	}

	// Without an installation that is the owner's there are no credentials.
	w.Write("config/wsmount/config.yaml", strings.Replace(config, "acme: [", "other: [", 1), 0o600)
	r := w.Run("resolve", "@acme/marketing-bot", "--operator", "Ann Bo <ann@acme.test>")
	assert.Contains(t, r.Err, "a pull request needs credentials")
}

// What lies at a git server is read with the credentials that are named, and only plain
// files of a bounded size are.
func TestRegisterFromGit(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.server.Require(gitToken)
	manifest := harness.Manifest("@acme/site", "storage: {inline: {provider: github, auth: {state: {env: [GITHUB_TOKEN]}}, config: {owner: acme, repo: site, branch: next}}}\nidentity: [ { name: Bob, email: bob@acme.test } ]\npolicy: {file: ./a.POLICY.md}\n")
	policy := "---\nschema: policy/v1\ndefault: allow\n---\n"
	g.other.Write(map[string]string{"README.md": "nothing here\n"})
	g.other.Commit("main", "begin")
	g.other.Write(map[string]string{"WORKSPACE.md": manifest, "a.POLICY.md": policy})
	g.other.Commit("next", "with a manifest")
	add := func(code int, says string, args ...string) {
		t.Helper()
		r := g.w.Run(append([]string{"registry", "add"}, args...)...)
		assert.True(t, r.Code == code && strings.Contains(r.Out+r.Err, says), args, "exit", r.Code, "want", code, "and", says, r.Out, r.Err)
		assert.False(t, strings.Contains(r.Out+r.Err, gitToken), "the token is shown")
	}
	add(5, "", "github:acme/site#next")
	add(4, "there is no WORKSPACE.md", "github:acme/site", "--auth", "GITHUB_TOKEN")
	add(4, "has no branch none", "github:acme/site#none", "--auth", "GITHUB_TOKEN")
	add(4, "hint: correct the place", "github:acme/none", "--auth", "GITHUB_TOKEN")
	add(2, "not at "+g.server.URL, "--from", "https://github.com/acme/site")
	add(2, "--show is not for a path", "ws", "--show")

	refused := func(says string, change func()) {
		t.Helper()
		change()
		g.other.Commit("next", says)
		add(4, says, "github:acme/site#next", "--auth", "GITHUB_TOKEN")
		assert.OK(t, os.Remove(g.other.Dir+"/a.POLICY.md"))
	}
	refused("is a symlink", func() {
		assert.OK(t, os.Remove(g.other.Dir+"/a.POLICY.md"))
		assert.OK(t, os.Symlink("WORKSPACE.md", g.other.Dir+"/a.POLICY.md"))
	})
	refused("bytes", func() { g.other.Write(map[string]string{"a.POLICY.md": policy + strings.Repeat("x", 2<<20)}) })
	g.other.Write(map[string]string{"a.POLICY.md": policy})
	g.other.Commit("next", "as it was")
	add(0, "@acme/site: github:acme/site#next", "github:acme/site#next", "--auth", "GITHUB_TOKEN")
}

// What lies in a bucket of any service is read with the secret that is named, or with what
// the host has itself.
func TestRegisterFromBucket(t *testing.T) {
	t.Parallel()
	start := map[string]func(t testing.TB) harness.Bucket{"s3": func(t testing.TB) harness.Bucket { return harness.S3(s3server.Start(t, s3server.Default())) }}
	maps.Copy(start, others)
	for kind, start := range start {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			w := harness.New(t, harness.Options{})
			w.Grant(b, b.Endpoint)
			name := b.Name()
			put := func(key, text string) {
				t.Helper()
				assert.OK(t, b.Put(t.Context(), key, []byte(text), nil))
			}
			block := fmt.Sprintf("kind: %s, endpoint: %q, %s, prefix: team/ws, credentials_ref: org/acme/bucket", b.Kind, b.Endpoint+b.Path, b.Config)
			put("team/ws/WORKSPACE.md", harness.Manifest("@acme/bucket", "storage: {ref: ./storage/main.STORAGE.md}\n"))
			put("team/ws/storage/main.STORAGE.md", "---\nschema: storage/v1\nprovider: self-bucket\nconfig: {"+block+"}\n---\n")
			place := kind + ":" + name + "/team/ws"
			args := []string{"registry", "add", place, "--id", "@acme/bucket", "--endpoint", b.Endpoint + b.Path, "--auth", "org/acme/bucket"}
			if kind == "s3" {
				args = append(args, "--region", "us-east-1")
			}
			shown := w.MustRun(args...)
			assert.Contains(t, shown, "storage/main.STORAGE.md\n")
			assert.Contains(t, shown, "@acme/bucket: "+place+"\n")
			w.MustRun("resolve", "@acme/bucket")
			put("team/ws/storage/main.STORAGE.md", "---\nschema: storage/v1\nprovider: self-bucket\nconfig: {"+block+"}\nread_only: true\n---\n")
			assert.Contains(t, w.MustRun("registry", "accept", "--yes", "@acme/bucket"), "+read_only: true")
			assert.Contains(t, w.MustRun("resolve", "@acme/bucket"), "read-only")

			// It must be the place itself.
			put("copy/WORKSPACE.md", harness.Manifest("@acme/copy", "storage: {inline: {provider: self-bucket, config: {"+block+"}}}\n"))
			args[2], args[4] = kind+":"+name+"/copy", "@acme/copy"
			r := w.Run(args...)
			assert.Equal(t, r.Code, 5, r.Err)
			assert.Contains(t, r.Err, "and it lies at")

			// A new workspace there is set up in one go, or leaves nothing.
			setUp := func(bucket string) harness.Result {
				return w.Run("init", w.Path("new"), "--id", "@acme/new", "--provider", kind, "--storage", bucket+"/new", "--endpoint", b.Endpoint+b.Path,
					"--credentials", "file:"+w.Path("config/login.json"), "--grant", "--register")
			}
			r = setUp("no-such-bucket")
			assert.Equal(t, r.Code, 4, r.Err)
			assert.Contains(t, r.Err, "bucket no-such-bucket does not exist at "+b.Endpoint)
			assert.True(t, os.IsNotExist(assert.ErrOf(os.Stat(w.Path("new")))), "what was refused is left")
			r = setUp(name)
			assert.Equal(t, r.Code, 0, r.Err)
			assert.Contains(t, r.Out, "acme/new: {file: ")
			w.MustRun("doctor", "@acme/new")
		})
	}
}
