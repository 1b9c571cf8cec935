package setup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
)

// A desk is a home directory with a host configuration.
type desk struct {
	t    *testing.T
	home string
	cfg  *host.Config
}

func newDesk(t *testing.T, config string) *desk {
	home, err := filepath.EvalSymlinks(t.TempDir())
	assert.OK(t, err)
	t.Setenv("HOME", home)
	d := &desk{t: t, home: home}
	if config != "" {
		assert.OK(t, os.MkdirAll(home+"/.config/wsmount", 0o700))
		assert.OK(t, os.WriteFile(d.config(), []byte(config), 0o600))
	}
	d.load()
	return d
}

func (d *desk) config() string { return d.home + "/.config/wsmount/config.yaml" }

func (d *desk) load() {
	d.t.Helper()
	var err error
	d.cfg, err = host.LoadConfig(host.LoadOptions{Home: d.home, System: d.home + "/etc", Lookup: func(string) (string, bool) { return "", false }})
	assert.OK(d.t, err)
}

func (d *desk) guide(o Options, answers string) (*Guide, *bytes.Buffer) {
	var out bytes.Buffer
	g := &Guide{Options: o, Config: d.cfg, Show: &out, Offline: true, GitKnows: func() bool { return true },
		OwnerIs: func(string) (string, error) { return "ID", nil }}
	if answers != "" {
		g.Ask = NewAsker(strings.NewReader(answers), &out)
	}
	return g, &out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	assert.OK(t, err)
	return string(text)
}

// For each provider: what the manifest and the host configuration say.
func TestProviders(t *testing.T) {
	for _, c := range []struct {
		o        Options
		manifest string // words of it
		needs    string
	}{
		{Options{Provider: "s3", Place: "b-1/p"}, "kind: s3|bucket: b-1|prefix: \"p/\"|region: us-east-1|AWS_ACCESS_KEY_ID|./SECRETS.md",
			"allow_env: [{name: AWS_ACCESS_KEY_ID, allow: [\"@me/ws\"]}, {name: AWS_SECRET_ACCESS_KEY, allow: [\"@me/ws\"]}]\n"},
		{Options{Provider: "s3", Place: "s3:b-1", Endpoint: "http://127.0.0.1:9000", Region: "eu-1", Credentials: "env:A,B,C"}, "region: eu-1|credentials_ref: me/ws|endpoint: \"http://127.0.0.1:9000\"",
			"secrets:\n  me/ws: {env: {access_key_id: A, secret_access_key: B, session_token: C}, allow: [\"@me/ws\"]}\nallow_endpoints: [\"http://127.0.0.1:9000\"]\n"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "none"}, "bucket: b-1", ""},
		{Options{Provider: "azure", Place: "files", Endpoint: "https://acme.blob.core.windows.net", Credentials: "file:/k.json"}, "kind: azure",
			"secrets:\n  me/ws: {file: \"/k.json\", format: json, allow: [\"@me/ws\"]}\n"},
		{Options{Provider: "gcs", Place: "b-1"}, "kind: gcs", "allow_env: [{name: GOOGLE_APPLICATION_CREDENTIALS, allow: [\"@me/ws\"]}]\n"},
		{Options{Provider: "github", Place: "acme/app#next"}, "owner: acme|repo: app|branch: next|operator://current|GITHUB_TOKEN|mode: pull-push",
			"allow_env: [{name: GITHUB_TOKEN, allow: [\"@me/ws\"]}]\n"},
		{Options{Provider: "github", Place: "https://git.acme.invalid/acme/app.git", Endpoint: "https://git.acme.invalid", Credentials: "command:pass show app", Operator: "Ann <ann@acme.test>"}, "repo: app",
			"secrets:\n  me/ws: {command: [\"pass\", \"show\", \"app\"], allow: [\"@me/ws\"]}\nproviders:\n  github:\n    base_url: \"https://git.acme.invalid\"\n" +
				"identities:\n  operator://current: {name: \"Ann\", email: \"ann@acme.test\"}\n"},
		{Options{Provider: "github", Place: "acme/app", Endpoint: "ssh://git@git.acme.invalid"}, "repo: app",
			"providers:\n  github:\n    base_url: \"ssh://git@git.acme.invalid\"\n    ssh:\n      credentials: agent\n      allow: [\"@me/ws\"]\n"},
		{Options{Provider: "local"}, "provider: local-fs", ""},
		{Options{Provider: "local", Place: "~/files"}, "/files", "allow_paths: [\"HOME/files\"]\n"},
		{Options{Provider: "vault", Place: "~"}, "provider: vault", "allow_paths: [\"HOME\"]\n"},
	} {
		d := newDesk(t, "")
		c.o.Dir, c.o.ID = d.home+"/ws", mountspec.Address{Owner: "me", Slug: "ws"}
		what := c.o.Provider + " " + c.o.Place
		g, _ := d.guide(c.o, "")
		assert.OK(t, os.MkdirAll(d.home+"/files", 0o700))
		plan, _, err := g.Plan(t.Context())
		assert.Must(t, err == nil, what, err)
		assert.Equal(t, plan.Needs, strings.ReplaceAll(c.needs, "HOME", d.home), what)
		undo, err := plan.Write(t.Context(), true)
		assert.OK(t, err, what)
		for word := range strings.SplitSeq(c.manifest, "|") {
			assert.Contains(t, read(t, d.home+"/ws/WORKSPACE.md"), word, what)
		}
		d.load() // what was written is valid
		if plan.Secrets != "" {
			_, found := mountspec.ParseSecrets(mountspec.Source{Name: "SECRETS.md", Data: []byte(read(t, plan.Secrets))}, mountspec.Options{Strict: true})
			assert.OK(t, found.Err(), what)
		}
		undo()
		left, err := os.ReadDir(d.home)
		assert.OK(t, err)
		for _, e := range left {
			assert.True(t, e.Name() == ".config" || e.Name() == "files", what, e.Name(), "is left")
		}
	}
}

func TestRefusals(t *testing.T) {
	const has = "providers: { github: { base_url: \"https://git.acme.invalid\" } }\nsecrets: { me/ws: { env: OTHER } }\n"
	for _, c := range []struct {
		o      Options
		config string
		code   exit.Code
		says   string
	}{
		{Options{Provider: "s3"}, "", exit.Usage, "where the files"},
		{Options{Provider: "ftp"}, "", exit.Usage, "no provider"},
		{Options{Provider: "s3", Place: "b-1"}, "allow_env: [ # mine\n  OTHER ]\n", exit.Failed, " cannot be added: it is written in a way"},
		{Options{Provider: "s3", Place: "b"}, "", exit.Usage, "not the name of a bucket"},
		{Options{Provider: "s3", Place: "b-1", Endpoint: "minio"}, "", exit.Usage, "URL of a service"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "env:wJalrXUtnFEMI,x"}, "", exit.Usage, "never a value"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "env:A"}, "", exit.Usage, "access_key_id and secret_access_key"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "agent"}, "", exit.Usage, "ssh-agent"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "vault:x"}, "", exit.Usage, "not understood"},
		{Options{Provider: "local", Credentials: "env:A"}, "", exit.Usage, "needs none"},
		{Options{Provider: "azure", Place: "box"}, "", exit.Usage, "endpoint of its own"},
		{Options{Provider: "github", Place: "app"}, "", exit.Usage, "no repository"},
		{Options{Provider: "vault", Place: "/none"}, "", exit.Unresolvable, "no directory"},
		{Options{Provider: "local", Place: "/none"}, "", exit.Unresolvable, "/none is no directory"},
		{Options{Provider: "github", Place: "acme/app", Endpoint: "https://other.invalid", Credentials: "none"}, has, exit.Denied, "providers.github.base_url is"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "env:A,B"}, has, exit.Denied, "secrets.me/ws is {env: OTHER} already"},
	} {
		d := newDesk(t, c.config)
		c.o.Dir, c.o.ID = d.home+"/ws", mountspec.Address{Owner: "me", Slug: "ws"}
		g, _ := d.guide(c.o, "")
		_, _, err := g.Plan(t.Context())
		assert.Equal(t, exit.From(err) != nil && exit.From(err).Code == c.code && exit.From(err).Advice != "", true, c.o, err)
		assert.Contains(t, err.Error(), c.says)
	}
}

// Where the store does not know who asks, the hint is where that comes from: no command about
// the workspace, which is not there yet.
func TestCredentialsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		o    Options
		hint string
	}{
		{Options{Provider: "s3", Place: "b-1"}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		{Options{Provider: "github", Place: "acme/app"}, "GITHUB_TOKEN"},
		{Options{Provider: "github", Place: "acme/app", Credentials: "env:MINE"}, "MINE"},
		{Options{Provider: "azure", Place: "files", Endpoint: "https://acme.blob.core.windows.net", Credentials: "file:/k.json"}, "--credentials file:/k.json"},
		{Options{Provider: "s3", Place: "b-1", Credentials: "none"}, "--credentials: write env:VARIABLE"},
		{Options{Provider: "github", Place: "acme/app", Endpoint: "ssh://git@git.acme.invalid"}, "ssh-add"},
	} {
		d := newDesk(t, "")
		c.o.Dir, c.o.ID, c.o.OwnerID = d.home+"/ws", mountspec.Address{Owner: "me", Slug: "ws"}, "ID"
		plan, err := New(c.o, d.cfg)
		assert.OK(t, err)
		refused := exit.New(exit.Denied, "no: %w", providers.ErrUnauthenticated).Hint("check the secret that it uses: `wsmount resolve @me/ws --explain` names it")
		advice := exit.From(plan.at(d.home+"/stage", refused)).Advice
		assert.Contains(t, advice, c.hint)
		assert.False(t, strings.Contains(advice, "wsmount resolve"), advice)
	}
}

// What was in the host configuration stays as it was written, and is there again when the
// rest could not be done.
func TestGrantKeepsWhatIsThere(t *testing.T) {
	const was = "# mine\nallow_endpoints:\n  - \"https://a.test\" # the first\nprincipal: user://ann\n"
	d := newDesk(t, was)
	o := Options{Provider: "s3", Place: "b-1", Endpoint: "https://b.invalid", Dir: d.home + "/ws"}
	g, _ := d.guide(o, "")
	plan, _, err := g.Plan(t.Context())
	assert.OK(t, err)
	assert.Contains(t, plan.Needs, "\n+  - \"https://b.invalid\"\n")
	undo, err := plan.Write(t.Context(), true)
	assert.OK(t, err)
	for _, line := range append(strings.Split(strings.TrimSpace(was), "\n"), `  - "https://b.invalid"`) {
		assert.Contains(t, read(t, d.config()), line)
	}
	undo()
	assert.Equal(t, read(t, d.config()), was)
	assert.OK(t, os.WriteFile(d.config(), []byte("{}\n"), 0o600))
	assert.True(t, assert.ErrOf(plan.Write(t.Context(), true)) != nil, "over what was changed meanwhile")
	assert.Equal(t, read(t, d.config()), "{}\n")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	assert.Contains(t, assert.ErrOf(plan.Write(ctx, false)).Error(), "interrupted, and nothing is left of it")
	assert.True(t, assert.ErrOf(os.Lstat(d.home+"/ws")) != nil, "something is left")
}

// A person is asked what is missing, again what cannot be, and nothing is written before.
func TestQuestions(t *testing.T) {
	d := newDesk(t, "")
	g, out := d.guide(Options{}, "s4\ns3\n\nx\nb-1/p\n\n"+d.home+"/new\n@me/new\nenv:a\n\ny\ny\n")
	plan, _, err := g.Plan(t.Context())
	assert.Must(t, err == nil, err, out)
	assert.Equal(t, plan.Workspace.ID.String()+plan.Manifest, "@me/new"+d.home+"/new/WORKSPACE.md")
	assert.True(t, g.Grant && g.Register, out)
	for _, word := range []string{"did you mean s3", "not the name of a bucket", "never a value", "allow_env: [{name: AWS_ACCESS_KEY_ID"} {
		assert.Contains(t, out.String(), word)
	}
	for _, answers := range []string{"\x04", "s3\n", "s3\n\nb-1\n\nd\n@me"} {
		g, _ := d.guide(Options{}, answers)
		_, _, err := g.Plan(t.Context())
		assert.Contains(t, err.Error(), "nothing was written", answers)
	}
	left, err := os.ReadDir(d.home)
	assert.OK(t, err)
	assert.Equal(t, len(left), 0, left)
}
