package host

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

const fullConfig = `
workspaces:
  "@acme/marketing-ops": { path: ~/ws/marketing-ops, owner_id: 01234 }
  "@acme/short": rel/dir
storages: { "@acme/shared-s3-policy": ~/storage/shared.STORAGE.md, "@acme/one-place": { path: ~/storage/one.STORAGE.md, per_workspace: false } }
manifests: { "@acme/policies/team": /etc/team.POLICY.md }
search_path: [ ~/workspaces ]
secrets:
  org/acme/s3-rw: { env: { access_key_id: ACME_KEY, secret_access_key: ACME_SECRET }, allow: ["@acme/*"] }
  github-app-key: { file: ~/.keys/app.pem }
  other: { command: [pass, show, other], format: json }
allow_env: [ ACME_TOKEN, { name: X, allow: ["@acme/*"] } ]
allow_endpoints: [ "http://127.0.0.1:9000" ]
allow_paths: [ /srv/workspaces ]
allow_refs: [ { from: "@acme/*", to: "@shared/*" } ]
allow_overlap: [ { from: "@acme/a", to: "@acme/b" } ]
allow_write_back: [ "@acme/*" ]
allow_personal: [ { path: ~/Vault, by: [ ann, "operator://bob" ], memory: Notes/Agent/ } ]
providers:
  cloud-bucket: { kind: s3, endpoint: "https://s3.eu-west-1.amazonaws.com", region: eu-west-1, credentials: sdk, grants: [ { owner: acme, bucket: guilde, prefix: guilds/acme } ] }
  github: { base_url: "https://github.com", api_url: "https://api.github.com", clone: blobless, app: { id: 1, key: github-app-key, installations: { acme: [42] } }, ssh: { known_hosts: ~/.keys/known_hosts, credentials: agent, allow: [ "@acme/*" ] } }
identities: { "operator://current": { name: Bob, email: bob@acme.test } }
principal: operator://bob
roles: { "@acme/*": [editor] }
groups: { "group://ops": [operator://bob] }
facts: facts.yaml
notify:
  - { webhook: "https://alerts.acme.test/wsmount", credentials: other, on: [ conflict, push-failed ], timeout: 30 }
  - { webhook_from: other }
  - { command: [ /usr/bin/page, ops ] }
`

func parseAs(text string) (*Config, []string) {
	c, findings := ParseConfig([]byte(text), ParseOptions{Name: "/etc/wsmount/config.yaml", Home: "/home/u"})
	var out []string
	for _, f := range findings {
		out = append(out, f.String())
	}
	return c, out
}

func TestParseConfig(t *testing.T) {
	c, findings := parseAs(fullConfig)
	assert.Must(t, len(findings) == 0, findings)
	for i := range c.Secrets {
		if e, ok := c.Secrets[i].Source.(secrets.Env); ok {
			e.Lookup = nil
			c.Secrets[i].Source = e
		}
		if e, ok := c.Secrets[i].Source.(secrets.Command); ok {
			e.Lookup = nil
			c.Secrets[i].Source = e
		}
	}
	want := &Config{
		Path: "/etc/wsmount/config.yaml", Dir: "/etc/wsmount", digest: digest([]byte(fullConfig)),
		Workspaces: map[string]WorkspaceEntry{"@acme/marketing-ops": {Path: "/home/u/ws/marketing-ops", OwnerID: "01234"}, "@acme/short": {Path: "/etc/wsmount/rel/dir"}},
		Storages: map[string]StorageEntry{"@acme/shared-s3-policy": {Path: "/home/u/storage/shared.STORAGE.md"},
			"@acme/one-place": {Path: "/home/u/storage/one.STORAGE.md", Shared: true}},
		Manifests:  map[string]string{"@acme/policies/team": "/etc/team.POLICY.md"},
		SearchPath: []string{"/home/u/workspaces"},
		Secrets: []secrets.Entry{
			{Slug: "org/acme/s3-rw", Source: secrets.Env{Fields: map[string]string{"access_key_id": "ACME_KEY", "secret_access_key": "ACME_SECRET"}}, Allow: []string{"@acme/*"}},
			{Slug: "github-app-key", Source: secrets.File{Path: "/home/u/.keys/app.pem"}},
			{Slug: "other", Source: secrets.Command{Argv: []string{"pass", "show", "other"}, Format: secrets.JSON}},
		},
		AllowPersonal:  []PersonalGrant{{Path: "/home/u/Vault", By: []string{"ann", "operator://bob"}, Memory: "Notes/Agent"}},
		AllowEnv:       []secrets.EnvGrant{{Name: "ACME_TOKEN"}, {Name: "X", Allow: []string{"@acme/*"}}},
		AllowEndpoints: []string{"http://127.0.0.1:9000"}, AllowPaths: []string{"/srv/workspaces"},
		AllowRefs: []Pair{{"@acme/*", "@shared/*"}}, AllowOverlap: []Pair{{"@acme/a", "@acme/b"}}, AllowWriteBack: []string{"@acme/*"},
		CloudBucket: &CloudBucket{"s3", "https://s3.eu-west-1.amazonaws.com", "eu-west-1", "sdk", []BucketGrant{{"acme", "guilde", "guilds/acme"}}},
		GitHub:      GitHub{"https://github.com", "https://api.github.com", &GitHubApp{1, "github-app-key", map[string][]int64{"acme": {42}}}, SSH{"/home/u/.keys/known_hosts", "agent", []string{"@acme/*"}}, "blobless"},
		Identities:  map[string]Identity{"operator://current": {Name: "Bob", Email: "bob@acme.test"}},
		Principal:   "operator://bob", Roles: map[string][]string{"@acme/*": {"editor"}},
		Groups: map[string][]string{"group://ops": {"operator://bob"}}, Facts: "/etc/wsmount/facts.yaml",
		Notify: []hook.Hook{
			{URL: "https://alerts.acme.test/wsmount", Credentials: "other", On: []string{hook.Conflict, hook.PushFailed}, Timeout: 30 * time.Second},
			{URLFrom: "other", Timeout: hook.DefaultTimeout}, {Command: []string{"/usr/bin/page", "ops"}, Timeout: hook.DefaultTimeout}},
	}
	assert.True(t, reflect.DeepEqual(c, want), "got", c, "want", want)
}

func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "search_paths: [ /a ]\n", ":1:1: error: unknown key \"search_paths\" [unknown-key]; did you mean search_path?"},
		{"unknown key below", "providers:\n  github: { basurl: x }\n", ":2:13: error: providers.github: unknown key \"basurl\" [unknown-key]; did you mean base_url?"},
		{"a value for a secret", "secrets: { a: { value: " + secretValue + " } }\n", "unknown key"},
		{"a value for a variable", "secrets: { a: { env: " + secretValue + " } }\n", "not the name of an environment variable"},
		{"two sources", "secrets: { a: { env: A, file: /b } }\n", "exactly one source, has 2"},
		{"no source", "secrets: { a: { allow: [] } }\n", "exactly one source, has 0"},
		{"twice", "secrets:\n  a: { env: A }\n  a: { env: B }\n", ":3:3: error: secrets: \"a\" is there twice"},
		{"address", "workspaces: { acme/ops: /x }\n", "workspaces"},
		{"no path", "workspaces: { \"@a/b\": { owner_id: x } }\n", "path is missing"},
		{"slug", "storages: { ./x: /x }\n", "not a registry slug"},
		{"storage without a path", "storages: { \"@a/s\": { per_workspace: false } }\n", "path is missing"},
		{"storage that is neither", "storages: { \"@a/s\": { path: /x, per_workspace: maybe } }\n", "not known here"},
		{"pattern", "allow_refs: [ { from: \"@*/x\", to: \"@b/*\" } ]\n", "not a pattern of addresses"},
		{"pattern of everything by a typo", "allow_write_back: [ \"@*/*\" ]\n", "not a pattern"},
		{"personal space of nobody", "allow_personal: [ { path: /x, by: [] } ]\n", "both needed"},
		{"memory that is all of a personal space", "allow_personal: [ { path: /x, by: [ ann ], memory: ./ } ]\n", "below the path"},
		{"memory beside a personal space", "allow_personal: [ { path: /x, by: [ ann ], memory: ../y } ]\n", "below the path"},
		{"personal space nowhere", "allow_personal: [ { by: [ ann ] } ]\n", "both needed"},
		{"half a pair", "allow_refs: [ { from: \"@a/*\" } ]\n", "both needed"},
		{"endpoint with a path", "allow_endpoints: [ \"https://a.example/x\" ]\n", "only scheme, host and port"},
		{"endpoint with a password", "allow_endpoints: [ \"https://a:" + secretValue + "@a.example\" ]\n", "user info"},
		{"service with a password", "providers: { github: { base_url: \"https://a:" + secretValue + "@a.example\" } }\n", "github"},
		{"git server with a password", "providers: { github: { base_url: \"ssh://git:" + secretValue + "@a.example\" } }\n", "it holds a password"},
		{"git server of another scheme", "providers: { github: { base_url: \"ftp://a.example\" } }\n", "its scheme is not https, http, ssh or git"},
		{"git daemon with a user", "providers: { github: { base_url: \"git://ann@a.example\" } }\n", "only a URL of ssh"},
		{"git daemon with a password", "providers: { github: { base_url: \"git://ann:" + secretValue + "@a.example\" } }\n", "it holds a password"},
		{"git daemon with a query", "providers: { github: { base_url: \"git://a.example?x\" } }\n", "at most a path"},
		{"git daemon without a host", "providers: { github: { base_url: \"git:///srv/git\" } }\n", " refused: "},
		{"git daemon with a line in its path", "providers: { github: { base_url: \"git://a.example/a%00host=b\" } }\n", "need not take"},
		{"git daemon with an API", "providers: { github: { base_url: \"git://a.example\", api_url: \"https://a.example/api\" } }\n", "leave api_url and app away"},
		{"git daemon with an app", "providers: { github: { app: { id: 1, key: k, installations: {} }, base_url: \"GIT://a.example\" } }\n", "leave api_url and app away"},
		{"git server with a query", "providers: { github: { base_url: \"ssh://a.example/x?y\" } }\n", "at most a path"},
		{"git server with a path for a shell", "providers: { github: { base_url: \"git@a.example:x';reboot'\" } }\n", "a shell would read"},
		{"git server with an option for a login", "providers: { github: { base_url: \"ssh://-oProxyCommand@a.example\" } }\n", "not a login"},
		{"git server with a user over https", "providers: { github: { base_url: \"https://git@a.example\" } }\n", "only a URL of ssh"},
		{"git server that is a path", "providers: { github: { base_url: \"/srv/git\" } }\n", "write it like https://git.acme.test, ssh://git@git.acme.test:22"},
		{"SSH credentials of everybody", "providers: { github: { ssh: { credentials: agent } } }\n", "no workspace may use"},
		{"endpoint that is a name", "allow_endpoints: [ minio ]\n", "allow_endpoints[0]: minio refused: its scheme is not http, https, ssh or git"},
		{"variable without a name", "allow_env: [ { allow: [ \"@a/b\" ] } ]\n", "name is missing"},
		{"every endpoint", "allow_endpoints: [ \"*\" ]\n", "endpoint"},
		{"variable", "allow_env: [ \"A=b\" ]\n", "not the name"},
		{"grant without a prefix", "providers: { cloud-bucket: { kind: s3, grants: [ { owner: a, bucket: b } ] } }\n", "all needed"},
		{"grant of what is no prefix", "providers: { cloud-bucket: { kind: s3, grants: [ { owner: a, bucket: b, prefix: [] } ] } }\n", "prefix: must be text"},
		{"grant of a prefix that was forgotten", "providers: { cloud-bucket: { kind: s3, grants: [ { owner: a, bucket: b, prefix: } ] } }\n", "all needed"},
		{"grant with dots", "providers: { cloud-bucket: { kind: s3, grants: [ { owner: a, bucket: b, prefix: a/../b } ] } }\n", "dots"},
		{"bucket without a kind", "providers: { cloud-bucket: { region: x } }\n", "kind is missing"},
		{"unknown kind", "providers: { cloud-bucket: { kind: s4 } }\n", "did you mean s3?"},
		{"installation that is text", "providers: { github: { app: { id: 1, key: k, installations: { acme: [ \"42\" ] } } } }\n", "positive number"},
		{"principal of everybody", "principal: \"*\"\n", "does not name one principal"},
		{"principal by role", "principal: role://owner\n", "does not name one principal"},
		{"principal that is an organisation", "principal: org://acme\n", "does not name one principal"},
		{"principal with a slash more", "principal: operator://bob/\n", "does not name one principal"},
		{"member that is an organisation", "groups: { org://acme: [ org://acme ] }\n", "does not name one principal"},
		{"member that is a guild", "groups: { org://acme: [ guild://acme ] }\n", "does not name one principal"},
		{"member that is nobody", "groups: { group://ops: [ bob ] }\n", "does not name one principal"},
		{"current principal", "principal: user://current\n", "does not name one principal"},
		{"identity that forges a header", "identities: { \"user://a\": { name: \"A <x@y>\", email: a@b } }\n", "angle brackets"},
		{"role", "roles: { \"@a/*\": [ admin ] }\n", "not known here"},
		{"home of another", "search_path: [ ~root/x ]\n", "another user"},
		{"hook of two kinds", "notify: [ { webhook: \"https://a.example\", command: [ x ] } ]\n", "exactly one of them, has 2"},
		{"hook that is nothing", "notify: [ { on: [ conflict ] } ]\n", "exactly one of them, has 0"},
		{"hook of no program", "notify: [ { command: [] } ]\n", "names nothing"},
		{"hook of another event", "notify: [ { command: [ x ], on: [ conflicts ] } ]\n", "did you mean conflict?"},
		{"hook that takes too long", "notify: [ { command: [ x ], timeout: 301 } ]\n", "too many"},
		{"webhook with a password", "notify: [ { webhook: \"https://a:" + secretValue + "@a.example\" } ]\n", "at most a path"},
		{"webhook over SSH", "notify: [ { webhook: \"ssh://a.example\" } ]\n", "its scheme is not https or http"},
		{"webhook that shows credentials", "notify: [ { webhook: \"http://a.example\", credentials: x } ]\n", "http without credentials"},
		{"credentials of a program", "notify: [ { command: [ x ], credentials: x } ]\n", "are for a webhook"},
		{"a list", "[ a ]\n", "must be a mapping"},
		{"not YAML", "a: [\n", "[yaml]"},
		{"second document", "principal: user://a\n---\nprincipal: user://b\n", "second document"},
		{"alias", "search_path: &a [ /x ]\nallow_paths: *a\n", "anchors"},
		{"merge", "providers: { <<: { github: {} } }\n", "plain key"},
		{"control character", "principal: \"user://a\\e[2J\"\n", "control character"},
		{"text for a list", "allow_paths: /x\n", "must be a list"},
		{"empty value", "principal:\n", "not empty"},
	} {
		_, findings := parseAs(c.text)
		all := strings.Join(findings, "\n")
		assert.Contains(t, all, c.want, c.name, "in it")
		assert.False(t, strings.Contains(all, secretValue), c.name, "a finding shows a secret:", all)
		for _, f := range findings {
			assert.True(t, strings.HasPrefix(f, "/etc/wsmount/config.yaml:"), c.name, "no place:", f)
		}
	}
}

func TestParseConfigFindsAllAtOnce(t *testing.T) {
	_, f := parseAs("a: 1\nallow_paths: 3\nprincipal: x\n")
	assert.True(t, len(f) == 3, "got", f)
	c, f := parseAs("")
	assert.True(t, len(f) == 0 && c != nil, "an empty file:", f)
	_, f = parseAs("# nothing yet\n")
	assert.True(t, len(f) == 0, "a file of comments:", f)
}

func FuzzParseConfig(f *testing.F) {
	f.Add(fullConfig)
	f.Add("a: *b\n")
	f.Add("providers: { cloud-bucket: { kind: s3, grants: [ { owner: a, bucket: b, prefix: \"\" } ] } }")
	f.Fuzz(func(t *testing.T, text string) {
		c, findings := ParseConfig([]byte(text), ParseOptions{Name: "/c.yaml", Home: "/h"})
		for _, x := range findings {
			assert.True(t, x.Line >= 1 && x.Rule != "" && x.Message != "", "finding", x)
		}
		if findings.Err() == nil {
			for _, e := range c.Secrets {
				assert.False(t, e.Source == nil, "secret", e.Slug, "without a source")
			}
			for _, p := range append(append([]string{}, c.SearchPath...), c.AllowPaths...) {
				assert.True(t, filepath.IsAbs(p), "relative path", p)
			}
		}
	})
}

func (w *world) load(o LoadOptions) (*Config, error) {
	o.Home, o.System = w.home, orDefault(o.System, w.path("etc"))
	if o.Lookup == nil {
		o.Lookup = w.lookup
	}
	return LoadConfig(o)
}

// A service works in / and may have no home: what it is given came with no
// repository.
func TestLoadConfig(t *testing.T) {
	const user, system = "home/.config/wsmount/config.yaml", "etc/config.yaml"
	for _, c := range []struct {
		name   string
		files  string // those that are there; each says which one it is
		xdg    string
		path   string // that was given, below the world's directory
		spoil  func(w *world)
		want   string // the file that is taken
		denied string // words of the refusal
	}{
		{name: "none"},
		{name: "the user's", files: user + " " + system, want: user},
		{name: "the machine's", files: system, want: system},
		{name: "XDG", xdg: "DIR/xdg", files: "xdg/wsmount/config.yaml", want: "xdg/wsmount/config.yaml"},
		{name: "relative XDG is ignored", xdg: ".", files: system, want: system},
		{name: "given", files: "x/c.yaml", path: "x/c.yaml", want: "x/c.yaml"},
		{name: "given, and others can write it", files: "x/c.yaml", path: "x/c.yaml", spoil: func(w *world) { assert.OK(w.t, os.Chmod(w.path("x/c.yaml"), 0o666)) }, denied: "written by others"},
		{name: "given, and others can replace it", files: "x/c.yaml", path: "x/c.yaml", spoil: func(w *world) { assert.OK(w.t, os.Chmod(w.path("x"), 0o777)) }, denied: "others can write"},
		{name: "others can write it", files: user + " " + system, spoil: func(w *world) { assert.OK(w.t, os.Chmod(w.path(user), 0o666)) }, denied: "written by others"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range strings.Fields(c.files) {
				w.write(name, "principal: \"user://"+name+"\"\n")
			}
			if c.spoil != nil {
				c.spoil(w)
			}
			w.env["XDG_CONFIG_HOME"] = strings.Replace(c.xdg, "DIR", w.dir, 1)
			var o LoadOptions
			if c.path != "" {
				o.Path = w.path(c.path)
			}
			got, err := w.load(o)
			if c.denied != "" {
				checkError(t, err, Denied, c.denied)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, strings.TrimPrefix(got.Principal, "user://"), c.want)
			assert.False(t, got.Dir == "", "it has no directory")
		})
	}
	w := newWorld(t)
	_, err := w.load(LoadOptions{Path: w.path("none.yaml")})
	checkError(t, err, Unresolvable, "does not exist")
	_, err = w.load(LoadOptions{Path: "conf/wsmount.yaml"})
	checkError(t, err, Denied, "relative")
	w.write(user, "principle: x\n") // does not fall through
	w.write(system, "principal: user://s\n")
	_, err = w.load(LoadOptions{})
	checkError(t, err, Invalid, "did you mean principal?")
}
