package host

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

const (
	cloud  = `{ inline: { provider: cloud-bucket, config: { bucket: BUCKET, prefix: "PREFIX" } } }`
	gitHub = `{ inline: { provider: github, config: { owner: acme, repo: bot, branch: main INST } AUTH } }`
)

func cloudAt(bucket, prefix string) string {
	return strings.NewReplacer("BUCKET", bucket, "PREFIX", prefix).Replace(cloud)
}

func gitHubWith(inst, auth string) string {
	return strings.NewReplacer("INST", inst, "AUTH", auth).Replace(gitHub)
}

const cloudConfig = `providers: { cloud-bucket: { kind: s3, endpoint: "http://127.0.0.1:9000", credentials: sdk,
  grants: [ { owner: acme, bucket: guilde, prefix: guilds/acme }, { owner: all, bucket: guilde, prefix: "" } ] } }
`

func TestCloudBucket(t *testing.T) {
	for _, c := range []struct {
		name, id, bucket, prefix string
		o                        ResolveOptions
		config                   string
		words                    string // empty: granted
	}{
		{name: "granted", id: "@acme/ops", bucket: "guilde", prefix: "guilds/acme/ops"},
		{name: "whole bucket", id: "@acme/ops", bucket: "guilde", prefix: "", words: "not granted"},
		{name: "other bucket", id: "@acme/ops", bucket: "other", prefix: "guilds/acme", words: "not granted"},
		{name: "other owner", id: "@evil/ops", bucket: "guilde", prefix: "guilds/acme", words: "not granted"},
		{name: "owner of everything", id: "@all/ops", bucket: "guilde", prefix: ""},
		{name: "no service", id: "@acme/ops", bucket: "guilde", prefix: "guilds/acme", config: "{}", words: "no bucket service"},
		{name: "not registered", id: "@acme/ops", bucket: "guilde", prefix: "guilds/acme", o: ResolveOptions{}, words: "registered manifests only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = orDefault(c.config, cloudConfig)
			w.manifest("ws", c.id, cloudAt(c.bucket, c.prefix))
			c.o.Trust = c.name != "not registered"
			if c.words != "" {
				w.refused("ws", c.o, Denied, c.words)
				assert.Contains(t, w.log(), `"event":"denied"`, "not in the audit log")
				return
			}
			got := w.ok("ws", c.o)
			assert.True(t, got.Grants.HostCredentials == "sdk" && slices.Equal(got.Grants.Endpoints, []string{"http://127.0.0.1:9000"}), "grants", got.Grants)
		})
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		name, endpoint string
		config         string
		unregistered   bool
		words          string // empty: granted
		reaches        string
		refuses        string
	}{
		{name: "listed", endpoint: "http://127.0.0.1:9000", config: "allow_endpoints: [ \"http://127.0.0.1:9000\" ]\n", reaches: "http://127.0.0.1:9000", refuses: "http://127.0.0.1:9001"},
		{name: "not listed", endpoint: "http://127.0.0.1:9000", words: "not granted"},
		{name: "metadata service", endpoint: "http://169.254.169.254", words: "not granted"},
		{name: "not listed, public", endpoint: "https://evil.example", words: "not granted"},
		{name: "listed on another port", endpoint: "http://127.0.0.1:9001", config: "allow_endpoints: [ \"http://127.0.0.1:9000\" ]\n", words: "not granted"},
		{name: "listed with a network", endpoint: "https://minio.corp.example", config: "allow_endpoints: [ \"https://minio.corp.example 10.1.0.0/16\" ]\n", reaches: "https://data.minio.corp.example", refuses: "https://other.minio.corp.example"},
		{name: "listed by a star is narrowed", endpoint: "https://a.corp.example", config: "allow_endpoints: [ \"https://*.corp.example\" ]\n", reaches: "https://a.corp.example", refuses: "https://b.corp.example"},
		{name: "the service's own", endpoint: "https://s3.eu-west-1.amazonaws.com", reaches: "https://data.s3.eu-west-1.amazonaws.com", refuses: "https://evil.s3.eu-west-1.amazonaws.com"},
		{name: "looks like the service's own", endpoint: "https://s3.eu-west-1.amazonaws.com.evil.example", words: "not granted"},
		{name: "somebody's bucket as an endpoint", endpoint: "https://evil.s3.amazonaws.com", words: "not granted"},
		{name: "somebody's bucket with a dot", endpoint: "https://s3.evil.s3.eu-west-1.amazonaws.com", words: "not granted"},
		{name: "the service's own without TLS", endpoint: "http://s3.eu-west-1.amazonaws.com", words: "not granted"},
		{name: "not registered, public", endpoint: "https://data.example.com", unregistered: true, reaches: "https://data.example.com", refuses: "http://data.example.com"},
		{name: "not registered, address", endpoint: "https://10.0.0.1", unregistered: true, words: "public https names only"},
		{name: "not registered, listed loopback", endpoint: "http://127.0.0.1:9000", config: "allow_endpoints: [ \"http://127.0.0.1:9000\" ]\n", unregistered: true, words: "public https names only"},
		{name: "not registered, localhost", endpoint: "https://localhost", unregistered: true, words: "public https names only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config
			w.manifest("ws", "@acme/ops", s3(c.endpoint, "data", "x", ""))
			o := ResolveOptions{Trust: !c.unregistered}
			if c.words != "" {
				w.refused("ws", o, Denied, c.words)
				return
			}
			got := w.ok("ws", o)
			assert.Equal(t, got.ReadOnly.On(), c.unregistered, "read-only", got.ReadOnly)
			checkReach(t, got, map[string]bool{c.reaches: true, c.refuses: false})
		})
	}
}

func TestListedNetworkIsKept(t *testing.T) {
	w := newWorld(t)
	w.config = "allow_endpoints: [ \"https://minio.corp.example 10.1.0.0/16\" ]\n"
	w.manifest("ws", "@acme/ops", s3("https://minio.corp.example", "data", "x", ""))
	want := []string{"https://minio.corp.example 10.1.0.0/16", "https://data.minio.corp.example 10.1.0.0/16"}
	assert.Slice(t, w.ok("ws", ResolveOptions{Trust: true}).Grants.Endpoints, want)
}

func TestSecretsOfAStorage(t *testing.T) {
	const ref = `, credentials_ref: org/acme/s3-rw`
	const config = "secrets: { org/acme/s3-rw: { env: { access_key_id: ACME_KEY, secret_access_key: ACME_SECRET } } }\n"
	endpoint := "https://s3.eu-west-1.amazonaws.com"
	env := func(name string) string {
		return `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: x }, auth: { state: { env: [ ` + name + ` ] } } } }`
	}
	for _, c := range []struct {
		name, id, storage, config string
		other                     string // another registered workspace
		o                         ResolveOptions
		words                     string
		fields                    string
	}{
		{name: "own", id: "@acme/ops", storage: s3(endpoint, "data", "x", ref), config: config, o: ResolveOptions{Trust: true}, fields: "access_key_id secret_access_key"},
		{name: "of another owner", id: "@evil/ops", storage: s3(endpoint, "data", "x", ref), config: config, o: ResolveOptions{Trust: true}, words: "does not grant it to @evil/ops"},
		{name: "not kept", id: "@acme/ops", storage: s3(endpoint, "data", "x", ref), o: ResolveOptions{Trust: true}, words: "WORKSPACE.md:7:"},
		{name: "not registered", id: "@acme/ops", storage: s3(endpoint, "data", "x", ref), config: config, words: "not registered"},
		{name: "not registered, named", id: "@acme/ops", storage: s3(endpoint, "data", "x", ref), config: config, o: ResolveOptions{Secrets: []string{"org/acme/s3-rw"}}, fields: "access_key_id secret_access_key"},
		{name: "usual variable, single owner", id: "@acme/ops", storage: env("AWS_ACCESS_KEY_ID"), o: ResolveOptions{Trust: true}, fields: "access_key_id"},
		{name: "usual variable, of a host with another owner", id: "@evil/ops", storage: env("AWS_SECRET_ACCESS_KEY"), other: "@acme/main", o: ResolveOptions{Trust: true}, words: "are of @acme"},
		{name: "unusual variable", id: "@acme/ops", storage: env("ACME_TOKEN"), o: ResolveOptions{Trust: true}, words: "not one of the usual names"},
		{name: "unusual variable, listed", id: "@acme/ops", storage: env("ACME_TOKEN"), config: "allow_env: [ { name: ACME_TOKEN, allow: [\"@acme/*\"] } ]\n", o: ResolveOptions{Trust: true}, fields: "acme_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config
			if c.other != "" {
				w.workspace("other", c.other)
				w.add("other")
			}
			w.manifest("ws", c.id, c.storage)
			if c.words != "" {
				w.refused("ws", c.o, Denied, c.words)
				return
			}
			got := w.ok("ws", c.o)
			assert.False(t, strings.Contains(w.log(), "secret.reveal"), "resolving revealed a secret")
			assert.Equal(t, strings.Join(assert.Of(got.Grants.Secrets.Reveal(t.Context())).OK(t).Names(), " "), c.fields)
		})
	}
}

// Whose the usual variables are does not change by who else comes, nor goes.
func TestUsualVariablesStayTheFirstOwners(t *testing.T) {
	const storage = `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: "SLUG" }, auth: { state: { env: [ AWS_ACCESS_KEY_ID ] } } } }`
	w := newWorld(t)
	for _, addr := range []string{"@me/one", "@me/two", "@you/one", "@you/two", "@acme/one"} {
		w.manifest("ws"+addr[1:], addr, strings.ReplaceAll(storage, "SLUG", addr[1:]))
	}
	may := func(addr string, want bool, when string) {
		t.Helper()
		if want {
			w.ok(addr, ResolveOptions{})
			return
		}
		e := w.refused(addr, ResolveOptions{}, Denied, "AWS_ACCESS_KEY_ID")
		owner, _, _ := strings.Cut(addr, "/")
		assert.Contains(t, e.Hint, `allow_env: [ { name: AWS_ACCESS_KEY_ID, allow: [ "`+owner+`/*" ] } ]`, when)
	}
	remove := func(addr string) { assert.OK(t, w.resolver().Remove(t.Context(), addr)) }
	w.add("wsme/one")
	may("@me/one", true, "alone")
	w.add("wsyou/one")
	may("@me/one", true, "beside another owner")
	may("@you/one", false, "the second")
	w.add("wsme/two")
	may("@me/two", true, "another of the first")
	listed := "workspaces: { \"@acme/one\": " + w.path("wsacme/one") +
		", \"@row/one\": { storage: { provider: self-bucket, config: { kind: s3, bucket: row, region: eu-west-1 }, auth: { state: { env: [ AWS_ACCESS_KEY_ID ] } } } } }\n"
	w.config = listed
	may("@me/one", true, "beside others who are listed")
	may("@acme/one", false, "listed, beside the first")
	may("@row/one", true, "which the host configuration names itself")
	remove("@me/one")
	remove("@me/two")
	w.config = ""
	may("@you/one", false, "when the first has gone")
	w.add("wsyou/two")
	may("@you/two", false, "entered when the first has gone")
	remove("@you/one")
	remove("@you/two")
	w.config = listed
	may("@acme/one", false, "listed, and nobody registered")
	w.add("wsyou/one")
	may("@you/one", false, "the first in the registry, where others are listed")
	w.config = "allow_env: [ { name: AWS_ACCESS_KEY_ID, allow: [ \"@you/*\" ] } ]\n"
	may("@you/one", true, "by name")
	// What an older wsmount wrote says nothing of it.
	w.config = ""
	registry := w.home + "/.config/wsmount/registry.json"
	text, err := os.ReadFile(registry)
	assert.OK(t, err)
	old := regexp.MustCompile(`,\s*"usual_env": ""`).ReplaceAll(text, nil)
	assert.False(t, len(old) == len(text), "the registry records nothing")
	assert.OK(t, os.WriteFile(registry, old, 0o600))
	may("@you/one", true, "alone in an old registry")
	w.add("wsme/one")
	may("@you/one", true, "the first of an old registry")
	may("@me/one", false, "the second of an old registry")
}

func TestGitHub(t *testing.T) {
	const config = `secrets: { app: { file: /k } }
providers: { github: { app: { id: 1, key: app, installations: { acme: [42] } } } }
`
	for _, c := range []struct {
		name, id, storage, config string
		unregistered              bool
		words                     string
		installation              int64
	}{
		{name: "granted", id: "@acme/bot", storage: gitHubWith(`, installation_id: "42"`, ""), config: config, installation: 42},
		{name: "the only installation of its owner", id: "@acme/bot", storage: gitHubWith("", ""), config: config, installation: 42},
		{name: "one of several", id: "@acme/bot", storage: gitHubWith("", ""), config: strings.Replace(config, "[42]", "[42, 43]", 1)},
		{name: "that of another owner", id: "@other/bot", storage: gitHubWith("", ""), config: config},
		{name: "a token instead", id: "@acme/bot", storage: gitHubWith("", ", auth: { state: { env: [ GITHUB_TOKEN ] } }"), config: config},
		{name: "installation of another", id: "@acme/bot", storage: gitHubWith(`, installation_id: "43"`, ""), config: config, words: "installation 43 is not granted"},
		{name: "another owner", id: "@evil/bot", storage: gitHubWith(`, installation_id: "42"`, ""), config: config, words: "not granted to evil"},
		{name: "no app", id: "@acme/bot", storage: gitHubWith(`, installation_id: "42"`, ""), words: "no GitHub App"},
		{name: "no app, a token", id: "@acme/bot", storage: gitHubWith(`, installation_id: "42"`, ", auth: { state: { env: [ GITHUB_TOKEN ] } }")},
		{name: "public", id: "@acme/bot", storage: gitHubWith("", "")},
		{name: "not registered", id: "@acme/bot", storage: gitHubWith(`, installation_id: "42"`, ""), config: config, unregistered: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config
			w.manifest("ws", c.id, c.storage)
			o := ResolveOptions{Trust: !c.unregistered}
			if c.words != "" {
				w.refused("ws", o, Denied, c.words)
				return
			}
			got := w.ok("ws", o)
			if got.Grants.Installation != c.installation || (got.Grants.App != nil) != (c.installation != 0) || got.ReadOnly.On() != c.unregistered {
				t.Errorf("grants %+v, read-only %v", got.Grants, got.ReadOnly)
			}
			if !slices.Contains(got.Grants.Endpoints, "https://api.github.com") || got.Location.String() != "https://github.com/acme/bot#main" {
				t.Errorf("endpoints %q, location %s", got.Grants.Endpoints, got.Location)
			}
		})
	}
}

// What LFS answers may lead to: of the public GitHub its own services, and what the
// host lists, for registered manifests.
func TestLFSEndpoints(t *testing.T) {
	const listed = "https://media.corp.example 10.1.0.0/16"
	for _, c := range []struct {
		name, config string
		unregistered bool
		lfs, listed  bool
	}{
		{name: "GitHub", lfs: true},
		{name: "GitHub over SSH", config: "providers: { github: { base_url: \"git@github.com:\" } }\n", lfs: true},
		{name: "another server", config: "providers: { github: { base_url: \"https://git.corp.example\" } }\n"},
		{name: "a storage is listed", config: "allow_endpoints: [ \"" + listed + "\", \"ssh://git.corp.example\" ]\nproviders: { github: { base_url: \"https://git.corp.example\" } }\n", listed: true},
		{name: "listed, not registered", config: "allow_endpoints: [ \"" + listed + "\" ]\n", unregistered: true, lfs: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config
			w.manifest("ws", "@acme/bot", gitHubWith("", ""))
			got := w.ok("ws", ResolveOptions{Trust: !c.unregistered}).Grants.Endpoints
			if slices.Contains(got, "https://lfs.github.com") != c.lfs || slices.Contains(got, listed) != c.listed || slices.Contains(got, "ssh://git.corp.example") {
				t.Errorf("endpoints %q", got)
			}
		})
	}
}

func TestWriteBackAndProxy(t *testing.T) {
	w := newWorld(t)
	w.env["HTTPS_PROXY"] = "http://proxy:3128"
	w.manifest("ws", "@acme/ops", s3("https://s3.amazonaws.com", "data", "x", ""))
	got := w.ok("ws", ResolveOptions{Trust: true})
	assert.True(t, !got.Grants.WriteBack && got.Grants.Proxy == "", "granted by default:", got.Grants)
	w.config = "allow_write_back: [ \"@acme/*\" ]\nallow_env: [ HTTPS_PROXY ]\n"
	got = w.ok("ws", ResolveOptions{Trust: true})
	assert.True(t, got.Grants.WriteBack && got.Grants.Proxy == "http://proxy:3128", "not granted:", got.Grants)
	got = w.ok("ws", ResolveOptions{})
	assert.True(t, !got.Grants.WriteBack && got.Grants.Proxy == "", "granted to a manifest that is not registered:", got.Grants)
}

func TestGuard(t *testing.T) {
	w := newWorld(t)
	w.manifest("ws", "@acme/ops", s3("https://s3.amazonaws.com", "data", "x", ""))
	r := w.resolver()
	got := assert.Of(r.Resolve(t.Context(), w.path("ws"), ResolveOptions{Trust: true})).OK(t)
	g := assert.Of(r.Guard(got)).OK(t)
	u, _ := url.Parse("https://s3.amazonaws.com/data")
	assert.True(t, g.Check(u) == nil, "what was granted is refused")
	if u, _ := url.Parse("http://169.254.169.254/?sig=" + secretValue); g.Check(u) == nil || !strings.Contains(w.log(), "network http://169.254.169.254") {
		t.Errorf("not refused, or not in the audit log: %s", w.log())
	}
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		asked <- q.Method + " " + q.Host
		rw.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	got.Grants.Proxy = proxy.URL
	g = assert.Of(r.Guard(got)).OK(t)
	assert.True(t, assert.ErrOf((&http.Client{Transport: g.Transport(netguard.TransportOptions{})}).Get("https://s3.amazonaws.com/")) != nil, "the proxy was passed by")
	assert.Equal(t, <-asked, "CONNECT s3.amazonaws.com:443", "the proxy was asked")
	got.Grants.Proxy = "http://u:" + secretValue + "@%zz"
	_, err := r.Guard(got)
	assert.True(t, err != nil && !strings.Contains(err.Error(), secretValue), "got", err)
	got.Grants = Grants{}
	none := assert.Of(r.Guard(got)).OK(t)
	u, _ = url.Parse("https://s3.amazonaws.com")
	assert.True(t, none.Check(u) != nil, "a volume without grants reaches the network")
}
