package mountspec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

func mustStorage(t *testing.T, text string) *Storage {
	t.Helper()
	s, findings := ParseStorage(Source{"S.md", []byte("---\n" + text + "---\n")}, Options{})
	assert.Must(t, s != nil, "refused", findings, text)
	return s
}

// TestProviderConfigs checks what each provider's config is read as.
func TestProviderConfigs(t *testing.T) {
	no := false
	for _, c := range []struct {
		name, text string
		want       Config
	}{
		{"cloud-bucket", "provider: cloud-bucket\nconfig: { bucket: files, prefix: /a/b/ }\n", CloudBucketConfig{"files", "a/b/"}},
		{"no prefix", "provider: cloud-bucket\nconfig: { bucket: files }\n", CloudBucketConfig{"files", ""}},
		{"only slashes", "provider: cloud-bucket\nconfig: { bucket: files, prefix: \"//\" }\n", CloudBucketConfig{"files", ""}},
		{"backslash is plain", "provider: cloud-bucket\nconfig: { bucket: files, prefix: 'a\\b' }\n", CloudBucketConfig{"files", `a\b/`}},
		{"self-bucket", "provider: self-bucket\nconfig: { kind: s3, endpoint: \"https://x.test\", region: r1, bucket: files, prefix: p, credentials_ref: org/a1/b2 }\n",
			SelfBucketConfig{BucketS3, "https://x.test", "r1", "files", "p/", "org/a1/b2"}},
		{"azure", "provider: self-bucket\nconfig: { kind: azure, bucket: files }\n", SelfBucketConfig{Kind: BucketAzure, Bucket: "files"}},
		{"github", "provider: github\nconfig: { owner: a, repo: r, branch: b, installation_id: 042, default_commit_email: a@b.test }\n",
			GitHubConfig{"a", "r", "b", "042", "a@b.test"}},
		{"github in one", "provider: github\nconfig: { repo: a/r }\n", GitHubConfig{Owner: "a", Repo: "r"}},
		{"github in both", "provider: github\nconfig: { owner: a, repo: a/r }\n", GitHubConfig{Owner: "a", Repo: "r"}},
		{"github branch that looks like a number", "provider: github\nconfig: { owner: a, repo: r, branch: 1.10 }\n", GitHubConfig{Owner: "a", Repo: "r", Branch: "1.10"}},
		{"local-fs", "provider: local-fs\nconfig: { mount_path: /a//b/, agent_id: x }\n", LocalFSConfig{"/a/b", "x"}},
		{"vault", "provider: vault\nconfig: { vault_path: /a//b/ }\n", VaultConfig{"/a/b"}},
		{"local-fs by path", "provider: local-fs\nconfig: { path: ./x }\n", LocalFSConfig{MountPath: "x"}},
		{"dev-local", "provider: dev-local\nconfig: {}\n", DevLocalConfig{}},
		{"dev-local root", "provider: dev-local\nconfig: { root: /x }\n", DevLocalConfig{"/x"}},
		{"dev-local by path", "provider: dev-local\nconfig: { path: /x }\n", DevLocalConfig{"/x"}},
		{"mastra-s3", "provider: mastra-s3\nconfig: { bucket: files, region: auto, forcePathStyle: false, readOnly: true, displayName: D }\n",
			MastraS3Config{Bucket: "files", Region: "auto", ForcePathStyle: &no, ReadOnly: true, Label: Label{DisplayName: "D"}}},
		{"mastra-azure", "provider: mastra-azure\nconfig: { container: files, accountName: n, endpoint: \"http://127.0.0.1:1/x\", useDefaultCredential: true }\n",
			MastraAzureConfig{Container: "files", AccountName: "n", Endpoint: "http://127.0.0.1:1/x", UseDefaultCredential: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustStorage(t, c.text).Config
			assert.True(t, reflect.DeepEqual(got, c.want), got, c.want)
		})
	}
}

// TestProviderRules has the rows of the modes and conflict policies.
func TestProviderRules(t *testing.T) {
	const bucket = "[canonical] [split-conflicts abort last-writer-wins manual]"
	want := map[string]string{
		"cloud-bucket": bucket, "self-bucket": bucket, "mastra-s3": bucket, "mastra-azure": bucket,
		"github":   "[pull-push] [rebase merge abort manual last-writer-wins split-conflicts]",
		"local-fs": "[watch canonical] []", "dev-local": "[canonical] []",
	}
	assert.Equal(t, len(Providers()), len(want), "providers")
	for _, p := range Providers() {
		r := RulesFor(p)
		assert.Equal(t, fmt.Sprint(r.Modes, r.Conflicts), want[p], p)
		assert.Equal(t, Direct(p), r.Conflicts == nil, p, "direct")
	}
	r := RulesFor(ProviderVault)
	assert.Equal(t, fmt.Sprint(r.Modes, r.Conflicts), bucket, "vault")
}

// TestSyncDefaults has the rows of the sync defaults.
func TestSyncDefaults(t *testing.T) {
	github := "provider: github\nconfig: { owner: a, repo: r }\n"
	const keys = "sync.mode sync.pull.on sync.pull.ttl_seconds sync.commit.on sync.commit.batch_window_ms sync.commit.message_template sync.push.on sync.push.branch_policy sync.push.pr_policy sync.conflict.policy read_only"
	for _, c := range []struct{ name, text, want string }{
		{"github", github + "sync: { mode: pull-push }\n", "pull-push! workspace-open 60 per-turn 5000 {{summary}} per-commit main none rebase false"},
		{"github without sync", github, "pull-push workspace-open 60 per-turn 5000 {{summary}} manual main none rebase false"},
		{"github with an empty sync", github + "sync: {}\n", "pull-push workspace-open 60 per-turn 5000 {{summary}} manual main none rebase false"},
		{"github, all said", github + "sync: { pull: { on: turn-start, ttl_seconds: 1 }, commit: { on: manual, batch_window_ms: 0, message_template: x }, push: { on: manual, branch_policy: per-turn, pr_policy: auto }, conflict: { policy: abort } }\nread_only: true\n",
			"pull-push turn-start! 1! manual! 0! x! manual! per-turn! auto! abort! true!"},
		{"bucket", "provider: cloud-bucket\nconfig: { bucket: files }\n", "canonical - - each-write - {{summary}} - - - split-conflicts false"},
		{"bucket with write-back in mind", "provider: cloud-bucket\nconfig: { bucket: files }\nsync: { commit: { on: per-turn } }\n", "canonical - - per-turn! - {{summary}} - - - split-conflicts false"},
		{"local-fs", "provider: local-fs\nconfig: { mount_path: /x }\n", "watch - - - - - - - - - false"},
		{"local-fs, canonical", "provider: local-fs\nconfig: { mount_path: /x }\nsync: { mode: canonical }\n", "canonical! - - each-write - {{summary}} - - - - false"},
		{"dev-local", "provider: dev-local\nconfig: {}\nread_only: true\n", "canonical - - each-write - {{summary}} - - - - true!"},
		{"mastra-s3, its own readOnly", "provider: mastra-s3\nconfig: { bucket: files, region: r1, readOnly: true }\n", "canonical - - each-write - {{summary}} - - - split-conflicts true!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names, values []string
			for _, s := range mustStorage(t, c.text).Effective() {
				value := dash(s.Value)
				if s.Explicit {
					value += "!"
				}
				names, values = append(names, s.Key), append(values, value)
			}
			assert.Equal(t, strings.Join(names, " "), keys, "keys")
			assert.Equal(t, strings.Join(values, " "), c.want)
		})
	}
	s := DefaultSync(ProviderGitHub, "", true)
	assert.True(t, s.Pull.TTL == time.Minute && s.Commit.Batch == 5*time.Second, "durations:", s.Pull.TTL, s.Commit.Batch)
}

// A provider that this build lacks validates, is an error with upstream's code, and its manifest
// can still be shown.
func TestUnknownProvider(t *testing.T) {
	text := "---\nprovider: dropbox\nconfig: { folder: /x, depth: 3, deep: { on: [1.5, null, yes, 0x10] } }\nsync: { mode: watch, conflict: { policy: merge } }\n---\n"
	s, findings := ParseStorage(Source{"S.md", []byte(text)}, Options{})
	if s == nil || findings.Err() == nil || len(findings) != 1 || findings[0].Code != CodeProviderUnknown || findings[0].Line != 2 ||
		!strings.Contains(findings[0].Message, "is not built into this wsmount") {
		t.Fatalf("got %+v\n%v", s, findings)
	}
	want := RawConfig{map[string]any{"folder": "/x", "depth": int64(3), "deep": map[string]any{"on": []any{1.5, nil, "yes", "0x10"}}}}
	assert.True(t, reflect.DeepEqual(s.Config, want), "config", s.Config, want)
	yes := Options{Registered: func(name string) bool { return name == "dropbox" }}
	_, findings = ParseStorage(Source{"S.md", []byte(text)}, yes)
	assert.True(t, len(findings) == 0, "registered, and yet:", findings)
	for storage, want := range map[string]string{
		"provider: mastra-azure\nconfig: { container: files }\n": "provider-unknown", // enumerated and not registered
		"provider: mastra-azure\nconfig: { contaner: files }\n":  "missing-key provider-unknown unknown-key",
		"provider: mastra-e2b\nconfig: {}\n":                     "provider-unknown", // it computes
	} {
		_, findings := ParseStorage(Source{"S.md", []byte("---\n" + storage + "---\n")}, yes)
		assert.Equal(t, rules(findings), want, storage, findings)
		assert.Equal(t, strings.Contains(findings.Error(), "AIP-36"), strings.Contains(storage, "e2b"), "it says who computes")
	}
}

// TestRequiredKeys takes each key of a minimal manifest away.
func TestRequiredKeys(t *testing.T) {
	for kind, text := range validManifest {
		v, findings := parseKind(kind+".md", []byte("---\n"+text+"---\n"), Options{})
		assert.True(t, v != nil && len(findings) == 0, kind, "the minimal manifest is refused:", findings)
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		for i, line := range lines {
			key, _, _ := strings.Cut(line, ":")
			rest := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "") + "\n"
			_, findings := parseKind(kind+".md", []byte("---\n"+rest+"---\n"), Options{})
			assert.False(t, findings.Err() == nil, kind, "without", key, "is accepted")
			assert.False(t, len(lines) > 1 && !strings.Contains(findings.Error(), "the key "+key+" is missing"), kind, "without", key, findings)
		}
	}
	policy := "---\nmetadata: {}\n---\n"
	p, findings := ParsePolicy(Source{"P.md", []byte(policy)}, Options{})
	assert.True(t, p == nil && rules(findings) == "missing-key", "a policy without a schema:", findings)
}

func TestHints(t *testing.T) {
	for lines, want := range map[string]string{
		"config: { bucket: files, prefx: x }\n":  "did you mean prefix?",
		"config: { bucket: files, Prefix: x }\n": "did you mean prefix?",
		"readOnly: true\n":                       "did you mean read_only?",
		"sync: { mod: canonical }\n":             "did you mean mode?",
		"sync: { mode: canonnical }\n":           "did you mean canonical?",
		"provider: cloudbucket\n":                "did you mean cloud-bucket?",
		"config: { buckt: files }\n":             "did you mean it by \"buckt\"?",
		"sync: { wholly: other }\n":              "known here: mode, pull, commit, push, conflict",

		// Who writes the URL of a clone hears where the server is named instead.
		"provider: github\nconfig: { repo: \"git@git.acme.test:a/r\" }\n":       "providers.github.base_url",
		"provider: github\nconfig: { repo: \"ssh://git@git.acme.test/a/r\" }\n": "providers.github.base_url",
		"provider: github\nconfig: { repo: \"https://git.acme.test/a/r\" }\n":   "providers.github.base_url",
	} {
		text, _, _ := ruleCase{kind: "STORAGE", lines: mark + lines}.text(t)
		_, findings := ParseStorage(Source{"S.md", []byte(text)}, Options{})
		assert.True(t, strings.Contains(findings.Error(), want), lines, findings, "want the hint", want)
	}
}

func TestDefineStorage(t *testing.T) {
	for _, c := range []struct {
		name string
		def  Storage
		want string // rules of the errors
		sync string // effective push.on and batch
	}{
		{"all defaults", Storage{Provider: "github", Config: GitHubConfig{Owner: "a", Repo: "r"}}, "", "manual 5s"},
		{"a push that is the default with sync", Storage{Provider: "github", Config: GitHubConfig{Owner: "a", Repo: "r"}, Sync: Sync{Push: Push{On: "per-commit"}}}, "", "per-commit 5s"},
		{"a push that is the default without", Storage{Provider: "github", Config: GitHubConfig{Owner: "a", Repo: "r"}, Sync: Sync{Pull: Pull{On: "turn-start"}, Push: Push{On: "manual"}}}, "", "manual 5s"},
		{"zero means default", Storage{Provider: "github", Config: GitHubConfig{Owner: "a", Repo: "r"}, Sync: Sync{Mode: ModePullPush}}, "", "per-commit 5s"},
		{"a zero that is meant", Storage{Provider: "github", Config: GitHubConfig{Owner: "a", Repo: "r"}, Sync: Sync{Set: map[string]bool{"commit.batch_window_ms": true}}}, "", "per-commit 0s"},
		{"no config", Storage{Provider: "github"}, "missing-key", ""},
		{"config of another", Storage{Provider: "github", Config: CloudBucketConfig{Bucket: "files"}}, "missing-key unknown-key", ""},
		{"wrong mode", Storage{Provider: "cloud-bucket", Config: CloudBucketConfig{Bucket: "files"}, Sync: Sync{Mode: ModeWatch}}, "sync-mode", ""},
		{"credential", Storage{Provider: "x", Config: RawConfig{map[string]any{"token": "t"}}}, "plaintext-credential provider-unknown", ""},
		{"unprintable", Storage{Provider: "x", Config: RawConfig{map[string]any{"f": func() {}}}}, "unprintable", ""},
		{"not UTF-8", Storage{Provider: "x\xff", Config: RawConfig{}}, "unprintable", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, findings := DefineStorage(c.def, Options{})
			for _, f := range findings.Filter(Error) {
				assert.True(t, f.Line != 0 && f.File == definition, "a finding without a place", f)
			}
			assert.Equal(t, rules(findings), c.want, "rules", findings)
			if s != nil && c.want == "" {
				assert.Equal(t, fmt.Sprint(s.Sync.Push.On, " ", s.Sync.Commit.Batch), c.sync)
			}
		})
	}
}

func validDefinition() Workspace {
	return Workspace{
		ID: Address{"a", "b"}, Version: "1.0.0", Name: "B",
		Owner:   Owner{Type: "org", ID: "7", Slug: "a"},
		Storage: Block[Storage]{Inline: &Storage{Provider: "dev-local", Config: DevLocalConfig{}}},
	}
}

// Whichever of two forms is kept, what is wrong in it is known at once.
func TestAllFaultsOfABlockWithTwoForms(t *testing.T) {
	text := "---\n" + strings.Replace(validManifest["WORKSPACE"], `storage: { ref: "@a/s" }`, `storage:
  ref: /etc/s
  inline:
    provider: cloud-buckett
    config: { bucket: files }
    sync: { mode: sideways }
    secret_access_key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
    colour: red`, 1) + "---\n"
	_, findings := parseKind("WORKSPACE.md", []byte(text), Options{})
	for _, want := range []string{"block-form", "ref-shape", "provider-unknown", "not-allowed", "unknown-key", "plaintext-credential"} {
		assert.True(t, findings.Has(want), want, "is not reported:", findings)
	}
}

// A definition is held to the rules of a manifest, and what it names is what comes of it.
func TestDefineWorkspace(t *testing.T) {
	file := func(name string) Ref { return Ref{Kind: RefFile, Value: name} }
	named := func(w *Workspace) any { return []any{w.Storage.Ref, w.Sandbox, w.Code, w.Identity} }
	for _, c := range []struct {
		name   string
		change func(*Workspace)
		want   string // rules of the errors
	}{
		{"valid", func(*Workspace) {}, ""},
		{"by reference", func(w *Workspace) { w.Storage = Block[Storage]{Ref: Ref{Kind: RefSlug, Value: "@a/s"}} }, ""},
		{"by files", func(w *Workspace) {
			w.Storage = Block[Storage]{Ref: file("./storage/main.STORAGE.md")}
			w.Sandbox, w.Code = &Block[Sandbox]{Ref: file("SANDBOX.md")}, &Block[Code]{Ref: file("./CODE.md")}
		}, ""},
		{"by a file of another workspace", func(w *Workspace) { w.Storage = Block[Storage]{Ref: file("../c/STORAGE.md")} }, "ref-shape"},
		{"by a file and inline", func(w *Workspace) { w.Storage.Ref = file("STORAGE.md") }, "block-form"},
		{"of several", func(w *Workspace) {
			w.Identity = []IdentityEntry{{Ref: "operator://current", Role: RoleAuthor},
				{Name: "Bob", Email: "bob@acme.test", Role: "co-author", RoleSet: true}, {File: "./eve.IDENTITY.md", Role: RoleAuthor}}
		}, ""},
		{"with mounts", func(w *Workspace) { w.Mounts = []Mount{{At: "/x", Source: Ref{Value: "@a/c"}, Optional: true}} }, ""},
		{"nothing", func(w *Workspace) { *w = Workspace{} }, "block-form missing-key missing-key missing-key missing-key"},
		{"owner of another", func(w *Workspace) { w.Owner.Slug = "c" }, "owner-mismatch"},
		{"address that climbs", func(w *Workspace) { w.ID.Slug = "../x" }, "address"},
		{"two forms", func(w *Workspace) { w.Storage.Ref = Ref{Kind: RefPath, Value: "./x"} }, "block-form"},
		{"mount at the root", func(w *Workspace) { w.Mounts = []Mount{{At: "/", Source: Ref{Value: "@a/c"}}} }, "mount-point"},
		{"mounts in two ways", func(w *Workspace) { w.Metadata = map[string]any{"wsmount": map[string]any{}} }, "unprintable"},
		{"read-only by another name", func(w *Workspace) { w.Defaults.Extra = map[string]any{"readonly": true} }, "unknown-key"},
		{"infinite metadata", func(w *Workspace) {
			loop := map[string]any{}
			loop["x"] = loop
			w.Metadata = loop
		}, "unprintable"},
		{"infinity", func(w *Workspace) { w.Metadata = map[string]any{"x": 1 / zero} }, "unprintable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := validDefinition()
			c.change(&def)
			w, findings := DefineWorkspace(def, Options{})
			assert.Equal(t, rules(findings), c.want, "rules", findings)
			assert.Equal(t, w != nil, c.want == "", "accepted")
			if w != nil {
				checkStable(t, "WORKSPACE.md", w)
				withoutPositions(reflect.ValueOf(&def))
				assert.True(t, reflect.DeepEqual(named(w), named(&def)), "names", named(w), "and was to name", named(&def))
			}
		})
	}
}

var zero float64

// What a caller changes in a parsed workspace is in what it prints, though defaults are left out.
func TestChangedWorkspacePrints(t *testing.T) {
	base := "provider: github\nconfig: { owner: a, repo: r }\n"
	for _, start := range []string{base, base + "sync: { mode: pull-push }\n", base + "sync: { push: { on: manual } }\n"} {
		for name, change := range map[string]func(*Sync){
			"nothing":    func(*Sync) {},
			"pull":       func(s *Sync) { s.Pull.On = "turn-start" },
			"ttl":        func(s *Sync) { s.Pull.TTL = time.Hour },
			"push":       func(s *Sync) { s.Push.On = "per-commit" },
			"no push":    func(s *Sync) { s.Push.On = "manual" },
			"conflict":   func(s *Sync) { s.Conflict = ConflictAbort },
			"everything": func(s *Sync) { s.Pull.On, s.Push.On, s.Commit.Template = "manual", "turn-end", "x" },
		} {
			s := mustStorage(t, start)
			change(&s.Sync)
			text := assert.Of(s.Marshal()).OK(t)
			again, findings := ParseStorage(Source{"S.md", text}, Options{})
			assert.Must(t, again != nil, name, findings)
			got, want := again.Sync, s.Sync
			got.Set, want.Set, got.Pos, want.Pos = nil, nil, Pos{}, Pos{}
			assert.True(t, reflect.DeepEqual(got, want), name, "on", start, "got", got, "want", want, text)
		}
	}
}

// What generic YAML decoding turns into something else stays the author's text, and on stays a
// key.
func TestTypedValues(t *testing.T) {
	w, findings := ParseWorkspace(Source{"W.md", []byte("---\nschema: workspace/v1\nid: \"@a/b\"\nversion: 1.0.0\nname: 2026\nowner: { type: org, id: 01234, slug: a }\ncreated_at: 2026-05-02T10:00:00Z\nstorage: { inline: { provider: github, config: { owner: 007, repo: 1e3 }, sync: { pull: { on: workspace-open } } } }\nmetadata: { when: 2026-05-02, octal: 0o17, big: 99999999999999999999, inf: .inf, t: true, f: 2.50 }\n---\n")}, Options{})
	assert.Must(t, w != nil, findings)
	c := w.Storage.Inline.Config.(GitHubConfig)
	got := []string{w.Name, w.Owner.ID, w.CreatedAt, c.Owner, c.Repo, string(w.Storage.Inline.Sync.Pull.On)}
	assert.Slice(t, got, []string{"2026", "01234", "2026-05-02T10:00:00Z", "007", "1e3", "workspace-open"})
	want := map[string]any{"when": "2026-05-02", "octal": "0o17", "big": "99999999999999999999", "inf": ".inf", "t": true, "f": 2.5}
	assert.True(t, maps.Equal(w.Metadata, want), "metadata", w.Metadata, want)
	checkStable(t, "WORKSPACE.md", w)
}

// What YAML 1.1 takes for a boolean or a number is quoted, keys included, so that no reader sees
// anything else than we do.
func TestPrintedForOldReaders(t *testing.T) {
	s := mustStorage(t, "provider: github\nconfig: { owner: no, repo: \"012\" }\nsync: { pull: { on: turn-start } }\nmetadata: { y: Off, word: plain, a/b: 1 }\n")
	text := assert.Of(s.Marshal()).OK(t)
	for _, want := range []string{"owner: \"no\"\n", "repo: \"012\"\n", "\"on\": turn-start\n", "\"y\": \"Off\"\n", "word: plain\n", "a/b: 1\n"} {
		assert.Contains(t, string(text), want, "in")
	}
}

// What the host quotes later knows where it stood.
func TestPositionsSurvive(t *testing.T) {
	w, findings := ParseWorkspace(Source{"W.md", []byte("\ufeff---\r\n" + strings.ReplaceAll(validWorkspace, "\n", "\r\n") + "identity:\r\n  - ref: user://a\r\nmetadata:\r\n  wsmount:\r\n    mounts:\r\n      - at: /x\r\n        source: ./y\r\n---\r\n")}, Options{})
	assert.Must(t, w != nil, findings)
	got := fmt.Sprint(w.Pos, " ", w.Owner.Pos, " ", w.Storage.Ref.Pos, " ", w.Identity[0].Pos, " ", w.Mounts[0].Pos, " ", w.Mounts[0].Source.Pos)
	assert.Equal(t, got, "W.md:2:1 W.md:6:8 W.md:7:17 W.md:9:5 W.md:13:9 W.md:14:17")
	assert.True(t, (Pos{File: "f"}).String() == "f" && (Pos{File: "f", Line: 2}).String() == "f:2", "a place prints what it does not have")
}

func TestPolicyReadOnly(t *testing.T) {
	p, findings := ParsePolicy(Source{"P.md", []byte("---\nschema: policy/v1\ndefaults: { storage: { read_only: true }, sandbox: { read_only: false } }\n---\n")}, Options{})
	assert.True(t, p != nil && p.ReadOnly("storage") && !p.ReadOnly("sandbox") && !p.ReadOnly("code"), p, findings)
}

func TestAuthReference(t *testing.T) {
	a := mustStorage(t, "provider: cloud-bucket\nconfig: { bucket: files }\nauth: { ref: ../team/SECRETS.md, state: { env: [A, B] } }\n").Auth
	r, ok := a.Reference()
	assert.True(t, ok && r.Kind == RefCrossWorkspace && slices.Equal(a.Env, []string{"A", "B"}), r, ok, a.Env)
	_, ok = (Auth{}).Reference()
	assert.False(t, ok, "an absent reference is one")
}
