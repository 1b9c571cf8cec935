package mountspec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// mark stands in a test's text right before the place of the finding.
const mark = "«"

// A ruleCase breaks one rule once. Lines replace those of a valid manifest
// that begin with the same key, or are added to it.
type ruleCase struct {
	name  string
	kind  string
	lines string
	want  string // severity rule path code, "-" for empty
}

var validManifest = map[string]string{
	"WORKSPACE": "schema: workspace/v1\nid: \"@a/b\"\nversion: 1.0.0\nname: B\nowner: { type: org, id: o, slug: a }\nstorage: { ref: \"@a/s\" }\n",
	"STORAGE":   "provider: cloud-bucket\nconfig: { bucket: files }\n",
	"SECRETS":   "secrets: [{ slug: one, name: One, description: d }]\n",
	"SANDBOX":   "provider: local\nconfig: {}\n",
	"POLICY":    "schema: policy/v1\n",
	"CODE":      "sources: [{ ref: ./x }]\n",
	"IDENTITY":  "name: A\nemail: a@b.test\n",
}

var validWorkspace = validManifest["WORKSPACE"]

// text builds the manifest and where its marker stands.
func (c ruleCase) text(t testing.TB) (text string, line, column int) {
	base := strings.SplitAfter(validManifest[c.kind], "\n")
	var kept []string
	for _, l := range base {
		key, _, _ := strings.Cut(l, ":")
		if key == "" || !strings.Contains("\n"+strings.ReplaceAll(c.lines, mark, ""), "\n"+key+":") {
			kept = append(kept, l)
		}
	}
	text = "---\n" + c.lines + strings.Join(kept, "") + "---\n"
	before, after, found := strings.Cut(text, mark)
	assert.Must(t, found && !strings.Contains(after, mark), "needs one marker", text)
	last := before[strings.LastIndex(before, "\n")+1:]
	return before + after, strings.Count(before, "\n") + 1, len([]rune(last)) + 1
}

func checkRules(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		text, line, column := c.text(t)
		_, findings := parseKind(c.kind+".md", []byte(text), Options{})
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%d:%d %s %s %s %s", f.Line, f.Column, f.Severity, f.Rule, dash(f.Path), dash(f.Code)))
			assert.True(t, f.File == c.kind+".md" && f.Message != "", c.name, "finding without a file or a message", f)
		}
		want := fmt.Sprintf("%d:%d %s", line, column, c.want)
		assert.True(t, len(got) == 1 && got[0] == want, c.name, got, want, text, findings)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

var yamlRules = []ruleCase{
	{"anchor", "WORKSPACE", "name: «&n B\n", "error yaml-alias name -"},
	{"alias of nothing", "POLICY", "«metadata: { x: *n, y: 1 }\n", "error yaml-syntax - -"},
	{"merge key", "WORKSPACE", "metadata: { «<<: { x: 1 } }\n", "error yaml-merge metadata -"},
	{"tag", "WORKSPACE", "name: «!!str B\n", "error yaml-tag name -"},
	{"duplicate key", "WORKSPACE", "tags: [a]\n«tags: [b]\n", "error duplicate-key tags -"},
	{"duplicate in an open block", "WORKSPACE", "metadata: { x: 1, «x: 2 }\n", "error duplicate-key metadata.x -"},
	{"number as key", "WORKSPACE", "metadata: { «1: x }\n", "error key-not-text metadata -"},
	{"list as key", "WORKSPACE", "metadata: { ? «[a] : x }\n", "error key-not-text metadata -"},
	{"tagged key", "WORKSPACE", "metadata: { «!!str a: x }\n", "error yaml-tag metadata -"},
	{"anchored key", "WORKSPACE", "metadata: { «&k a: x }\n", "error yaml-alias metadata -"},
	{"unknown key", "WORKSPACE", "«colour: red\n", "error unknown-key colour -"},
	{"no value", "WORKSPACE", "publish:«\n", "error empty-value publish -"},
	{"null", "WORKSPACE", "tags: «null\n", "error empty-value tags -"},
	{"boolean as text", "WORKSPACE", "name: «true\n", "error wrong-type name -"},
	{"list as text", "WORKSPACE", "name: «[B]\n", "error wrong-type name -"},
	{"mapping as list", "WORKSPACE", "tags: «{ a: b }\n", "error wrong-type tags -"},
	{"text as mapping", "WORKSPACE", "publish: «yes\n", "error wrong-type publish -"},
	{"yes is not true", "STORAGE", "read_only: «yes\n", "error wrong-type read_only storage_config_invalid"},
	{"text is not true", "STORAGE", "read_only: «\"true\"\n", "error wrong-type read_only storage_config_invalid"},
	{"newline in a name", "WORKSPACE", "name: «\"a\\nb\"\n", "error control-character name -"},
	{"direction override", "WORKSPACE", "name: «\"a\\u202eb\"\n", "error control-character name -"},
}

var workspaceRules = []ruleCase{
	{"schema", "WORKSPACE", "schema: «workspace/v2\n", "error not-allowed schema -"},
	{"id in capitals", "WORKSPACE", "id: «\"@A/b\"\n", "error address id -"},
	{"version", "WORKSPACE", "version: «1.0\n", "error version version -"},
	{"long name", "WORKSPACE", "name: «" + strings.Repeat("ä", 81) + "\n", "error length name -"},
	{"empty name", "WORKSPACE", "name: «\"\"\n", "error empty-value name -"},
	{"long description", "WORKSPACE", "description: «" + strings.Repeat("x", 2001) + "\n", "error length description -"},
	{"owner type", "WORKSPACE", "owner: { type: «team, id: o, slug: a }\n", "error not-allowed owner.type -"},
	{"owner without id", "WORKSPACE", "owner: «{ type: org, slug: a }\n", "error missing-key owner -"},
	{"owner key", "WORKSPACE", "owner: { type: org, id: o, slug: a, «mail: x }\n", "error unknown-key owner.mail -"},
	{"owner slug", "WORKSPACE", "owner: { type: org, id: o, slug: «a- }\n", "error owner-slug owner.slug -"},
	{"no storage form", "WORKSPACE", "storage: «{}\n", "error block-form storage storage_config_invalid"},
	{"unknown form", "WORKSPACE", "storage: { ref: ./x, «path: x }\n", "error unknown-key storage.path storage_config_invalid"},
	{"absolute ref", "WORKSPACE", "storage: { ref: «/etc/x.STORAGE.md }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"ref by URL", "WORKSPACE", "storage: { ref: «\"https://x.test/s\" }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"ref to home", "WORKSPACE", "storage: { ref: «~/s }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"ref to nothing", "WORKSPACE", "storage: { ref: «./ }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"empty ref", "WORKSPACE", "storage: { ref: «\"\" }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"compact ref", "WORKSPACE", "storage: { ref: «\"workspace:@a/b\" }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"slug of one", "WORKSPACE", "storage: { ref: «\"@a\" }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"slug that climbs", "WORKSPACE", "storage: { ref: «\"@a/b/../c\" }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"ref with a backslash", "WORKSPACE", "storage: { ref: «'..\\x' }\n", "error ref-shape storage.ref storage_ref_unresolvable"},
	{"file that leaves", "WORKSPACE", "storage: { file: «a/../../x }\n", "error ref-shape storage.file storage_ref_unresolvable"},
	{"file that is a slug", "WORKSPACE", "storage: { file: «\"@a/b\" }\n", "error ref-shape storage.file storage_ref_unresolvable"},
	{"sandbox ref", "WORKSPACE", "sandbox: { ref: «/x }\n", "error ref-shape sandbox.ref sandbox_ref_unresolvable"},
	{"code ref", "WORKSPACE", "code: { ref: «/x }\n", "error ref-shape code.ref -"},
	{"policy as text", "WORKSPACE", "policy: «./x.POLICY.md\n", "error wrong-type policy -"},
	{"policy inline", "WORKSPACE", "policy: { «inline: {} }\n", "error unknown-key policy.inline -"},
	{"no policies", "WORKSPACE", "policy: «[]\n", "error empty-value policy -"},
	{"no identities", "WORKSPACE", "identity: «[]\n", "error empty-value identity -"},
	{"defaults", "WORKSPACE", "defaults: { read_only: «1 }\n", "error wrong-type defaults.read_only -"},
	{"defaults by another name", "WORKSPACE", "defaults: { «readOnly: true }\n", "error unknown-key defaults.readOnly -"},
	{"visibility", "WORKSPACE", "publish: { visibility: «secret }\n", "error not-allowed publish.visibility -"},
	{"publish key", "WORKSPACE", "publish: { «public: true }\n", "error unknown-key publish.public -"},
	{"tag", "WORKSPACE", "tags: [«true]\n", "error wrong-type tags[0] -"},
	{"date only", "WORKSPACE", "created_at: «2026-01-02\n", "error date-time created_at -"},
	{"our metadata is closed", "WORKSPACE", "metadata: { wsmount: { «mount: [] } }\n", "error unknown-key metadata.wsmount.mount -"},
	{"template without a version", "WORKSPACE", "metadata: { wsmount: { template: «{ id: \"@a/b\" } } }\n", "error missing-key metadata.wsmount.template -"},
	{"template that is no address", "WORKSPACE", "metadata: { wsmount: { template: { id: «x, version: 1.0.0 } } }\n", "error address metadata.wsmount.template.id -"},
	{"template's sum", "WORKSPACE", "metadata: { wsmount: { template: { id: \"@a/b\", version: 1.0.0, sha256: «abc } } }\n", "error sha256 metadata.wsmount.template.sha256 -"},
	{"template key", "WORKSPACE", "metadata: { wsmount: { template: { id: \"@a/b\", version: 1.0.0, «url: x } } }\n", "error unknown-key metadata.wsmount.template.url -"},
	{"metadata elsewhere", "STORAGE", "metadata: { «wsmount: {} }\n", "error unknown-key metadata.wsmount storage_config_invalid"},
	{"mount without source", "WORKSPACE", "metadata: { wsmount: { mounts: [«{ at: /x }] } }\n", "error missing-key metadata.wsmount.mounts[0] -"},
	{"mount at a relative path", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: «x, source: ./x }] } }\n", "error mount-point metadata.wsmount.mounts[0].at -"},
	{"mount that climbs", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: «/x/../y, source: ./x }] } }\n", "error mount-point metadata.wsmount.mounts[0].at -"},
	{"mount at the root", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: «//, source: ./x }] } }\n", "error mount-point metadata.wsmount.mounts[0].at -"},
	{"mount over the control directory", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: «/.wsmount/x, source: ./x }] } }\n", "error mount-point metadata.wsmount.mounts[0].at -"},
	{"mount mode", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: ./x, mode: «ro }] } }\n", "error not-allowed metadata.wsmount.mounts[0].mode -"},
	{"mount source", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: «/x }] } }\n", "error ref-shape metadata.wsmount.mounts[0].source storage_ref_unresolvable"},
	{"mount source key", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: { ref: ./x, «as: y } }] } }\n", "error unknown-key metadata.wsmount.mounts[0].source.as storage_ref_unresolvable"},
	{"mount source of two forms", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: «{ ref: ./x, file: x } }] } }\n", "error block-form metadata.wsmount.mounts[0].source storage_ref_unresolvable"},
	{"mount key", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: ./x, «opt: true }] } }\n", "error unknown-key metadata.wsmount.mounts[0].opt -"},
	{"two mounts at one place", "WORKSPACE", "metadata: { wsmount: { mounts: [{ at: /x, source: ./x }, «{ at: /x/, source: ./y }] } }\n", "error mount-duplicate mounts -"},
	{"sketched mounts", "WORKSPACE", "«mounts: [{ at: /x, source: ./x }]\n", "warning sketched-mounts mounts -"},
	{"not an e-mail", "WORKSPACE", "identity: { name: A, email: «\"a b@c\" }\n", "error email identity.email -"},
	{"name that closes the address", "WORKSPACE", "identity: { name: «\"A <x@y>\", email: a@b.test }\n", "error person-name identity.name -"},
	{"three forms", "WORKSPACE", "identity: [«{ ref: \"user://a\", file: x }]\n", "error identity-form identity[0] -"},
	{"identity scheme without id", "WORKSPACE", "identity: { ref: «\"operator://\" }\n", "error identity-ref identity.ref -"},
	{"identity of another host", "WORKSPACE", "identity: { ref: «\"okta://a\" }\n", "warning identity-scheme identity.ref -"},
	{"identity path", "WORKSPACE", "identity: { ref: «/etc/x }\n", "error ref-shape identity.ref -"},
	{"empty role", "WORKSPACE", "identity: { ref: \"user://a\", role: «\"\" }\n", "error empty-value identity.role -"},
}

const (
	bad    = " storage_config_invalid"
	github = "provider: github\nconfig: { owner: a, repo: r }\n"
	local  = "provider: local-fs\nconfig: { mount_path: /srv }\n"
)

var storageRules = []ruleCase{
	{"no provider at all", "STORAGE", "provider: «\"\"\n", "error empty-value provider" + bad},
	{"provider not built in", "STORAGE", "provider: «dropbox\n", "error provider-unknown provider storage_provider_unknown"},
	{"misspelt provider", "STORAGE", "provider: «cloudbucket\n", "error provider-unknown provider storage_provider_unknown"},
	{"no bucket", "STORAGE", "config: «{ prefix: x }\n", "error missing-key config" + bad},
	{"bucket that is a URL", "STORAGE", "config: { bucket: «\"s3://files\" }\n", "error bucket-name config.bucket" + bad},
	{"bucket that climbs", "STORAGE", "config: { bucket: «a..b }\n", "error bucket-name config.bucket" + bad},
	{"prefix that climbs", "STORAGE", "config: { bucket: files, prefix: «a/../b }\n", "error prefix config.prefix" + bad},
	{"prefix with an empty segment", "STORAGE", "config: { bucket: files, prefix: «a//b }\n", "error prefix config.prefix" + bad},
	{"prefix with a control byte", "STORAGE", "config: { bucket: files, prefix: «\"a\\u0001\" }\n", "error control-character config.prefix" + bad},
	{"self-bucket kind", "STORAGE", "provider: self-bucket\nconfig: { kind: «ftp, bucket: files }\n", "error not-allowed config.kind" + bad},
	{"azure container", "STORAGE", "provider: self-bucket\nconfig: { kind: azure, bucket: «Files }\n", "error bucket-name config.bucket" + bad},
	{"endpoint scheme", "STORAGE", "provider: self-bucket\nconfig: { kind: s3, bucket: files, endpoint: «\"file:///x\" }\n", "error endpoint config.endpoint" + bad},
	{"endpoint query", "STORAGE", "provider: self-bucket\nconfig: { kind: s3, bucket: files, endpoint: «\"https://x.test/?a=b\" }\n", "error endpoint config.endpoint" + bad},
	{"region", "STORAGE", "provider: self-bucket\nconfig: { kind: s3, bucket: files, region: «\"eu west\" }\n", "error region config.region" + bad},
	{"credentials_ref", "STORAGE", "provider: self-bucket\nconfig: { kind: s3, bucket: files, credentials_ref: «Org/A }\n", "error secret-slug config.credentials_ref" + bad},
	{"mastra without region", "STORAGE", "provider: mastra-s3\nconfig: «{ bucket: files }\n", "error missing-key config" + bad},
	{"mastra azure bucket", "STORAGE", "provider: mastra-azure\nconfig: { container: files, «bucket: x }\n", "error unknown-key config.bucket" + bad},
	{"github without owner", "STORAGE", "provider: github\nconfig: «{ repo: r }\nsync: { mode: pull-push }\n", "error missing-key config" + bad},
	{"github owners disagree", "STORAGE", "provider: github\nconfig: { owner: «a, repo: b/r }\nsync: { mode: pull-push }\n", "error repository config.owner" + bad},
	{"github clone URL", "STORAGE", "provider: github\nconfig: { owner: a, repo: «r.git }\nsync: { mode: pull-push }\n", "error repository config.repo" + bad},
	{"github repo of three", "STORAGE", "provider: github\nconfig: { repo: «a/b/c }\nsync: { mode: pull-push }\n", "error repository config.repo" + bad},
	{"branch", "STORAGE", "provider: github\nconfig: { owner: a, repo: r, branch: «\"--upload-pack\" }\nsync: { mode: pull-push }\n", "error branch-name config.branch" + bad},
	{"installation", "STORAGE", "provider: github\nconfig: { owner: a, repo: r, installation_id: «abc }\nsync: { mode: pull-push }\n", "error installation-id config.installation_id" + bad},
	{"commit e-mail", "STORAGE", "provider: github\nconfig: { owner: a, repo: r, default_commit_email: «me }\nsync: { mode: pull-push }\n", "error email config.default_commit_email" + bad},
	{"sparse_checkout", "STORAGE", "provider: github\nconfig: { owner: a, repo: r, «sparse_checkout: [x] }\nsync: { mode: pull-push }\n", "error unknown-key config.sparse_checkout" + bad},
	{"agent beside a directory", "STORAGE", "provider: local-fs\nconfig: { mount_path: /a, agent_id: «x }\n", "warning agent-ignored config.agent_id -"},
	{"the machine's login", "STORAGE", "provider: mastra-azure\nconfig: { container: files, accountName: acme, useDefaultCredential: «true }\n", "warning default-credential config.useDefaultCredential -"},
	{"two local paths", "STORAGE", "provider: local-fs\nconfig: { mount_path: /a, path: «/b }\n", "error local-path config.path" + bad},
	{"local path that climbs", "STORAGE", "provider: local-fs\nconfig: { mount_path: «/a/../b }\n", "error local-path config.mount_path" + bad},
	{"vault without path", "STORAGE", "provider: vault\nconfig: «{}\n", "error missing-key config" + bad},
	{"vault path that climbs", "STORAGE", "provider: vault\nconfig: { vault_path: «../x }\n", "error local-path config.vault_path" + bad},
	{"vault in watch mode", "STORAGE", "provider: vault\nconfig: { vault_path: /x }\nsync: { mode: «watch }\n", "error sync-mode sync.mode" + bad},
	{"local home", "STORAGE", "provider: dev-local\nconfig: { root: «~/x }\n", "error local-path config.root" + bad},
	{"relative local path", "STORAGE", "provider: dev-local\nconfig: { root: «x }\n", "warning local-path-relative config.root -"},
	{"github in canonical mode", "STORAGE", github + "sync: { mode: «canonical }\n", "error sync-mode sync.mode" + bad},
	{"local-fs in pull-push mode", "STORAGE", local + "sync: { mode: «pull-push }\n", "error sync-mode sync.mode" + bad},
	{"dev-local in watch mode", "STORAGE", "provider: dev-local\nconfig: {}\nsync: { mode: «watch }\n", "error sync-mode sync.mode" + bad},
	{"unknown mode", "STORAGE", "sync: { mode: «mirror }\n", "error not-allowed sync.mode" + bad},
	{"bucket rebases", "STORAGE", "sync: { conflict: { policy: «rebase } }\n", "error conflict-policy sync.conflict.policy" + bad},
	{"local merges", "STORAGE", local + "sync: { conflict: { policy: «merge } }\n", "error conflict-policy sync.conflict.policy" + bad},
	{"local aborts", "STORAGE", local + "sync: { conflict: { policy: «abort } }\n", "warning sync-ignored sync.conflict.policy -"},
	{"unknown conflict policy", "STORAGE", github + "sync: { conflict: { policy: «theirs } }\n", "error not-allowed sync.conflict.policy" + bad},
	{"conflict as text", "STORAGE", github + "sync: { conflict: «rebase }\n", "error wrong-type sync.conflict" + bad},
	{"ttl of zero", "STORAGE", github + "sync: { pull: { ttl_seconds: «0 } }\n", "error range sync.pull.ttl_seconds" + bad},
	{"ttl with a fraction", "STORAGE", github + "sync: { pull: { ttl_seconds: «1.5 } }\n", "error wrong-type sync.pull.ttl_seconds" + bad},
	{"ttl in octal", "STORAGE", github + "sync: { pull: { ttl_seconds: «010 } }\n", "error wrong-type sync.pull.ttl_seconds" + bad},
	{"ttl beyond time", "STORAGE", github + "sync: { pull: { ttl_seconds: «9223372036854775807 } }\n", "error range sync.pull.ttl_seconds" + bad},
	{"negative window", "STORAGE", github + "sync: { commit: { batch_window_ms: «-1 } }\n", "error range sync.commit.batch_window_ms" + bad},
	{"unknown token", "STORAGE", github + "sync: { commit: { message_template: «\"{{user}}\" } }\n", "error message-template sync.commit.message_template" + bad},
	{"branch policy", "STORAGE", github + "sync: { push: { branch_policy: «trunk } }\n", "error not-allowed sync.push.branch_policy" + bad},
	{"pr policy", "STORAGE", github + "sync: { push: { pr_policy: «always } }\n", "error not-allowed sync.push.pr_policy" + bad},
	{"pull key", "STORAGE", github + "sync: { pull: { on: manual, «ttl: 5 } }\n", "error unknown-key sync.pull.ttl" + bad},
	{"commit key", "STORAGE", github + "sync: { commit: { on: manual, «message: x } }\n", "error unknown-key sync.commit.message" + bad},
	{"conflict key", "STORAGE", github + "sync: { conflict: { policy: abort, «on: x } }\n", "error unknown-key sync.conflict.on" + bad},
	{"sync key", "STORAGE", github + "sync: { mode: pull-push, «merge: {} }\n", "error unknown-key sync.merge" + bad},
	{"push key", "STORAGE", github + "sync: { push: { on: manual, «branch: x } }\n", "error unknown-key sync.push.branch" + bad},
	{"empty event", "STORAGE", github + "sync: { pull: { on: «\"\" } }\n", "error empty-value sync.pull.on" + bad},
	{"event with a space", "STORAGE", github + "sync: { pull: { on: «\"turn start\" } }\n", "error event-name sync.pull.on" + bad},
	{"unknown event", "STORAGE", github + "sync: { pull: { on: «turn-begin } }\n", "warning unknown-event sync.pull.on -"},
	{"github without sync", "STORAGE", "«" + github, "warning sync-absent - -"},
	{"pull in canonical mode", "STORAGE", "sync: { pull: { ttl_seconds: «5 } }\n", "warning sync-ignored sync.pull.ttl_seconds -"},
	{"auth key", "STORAGE", "auth: { «file: x }\n", "error unknown-key auth.file" + bad},
	{"auth ref", "STORAGE", "auth: { ref: «/etc/SECRETS.md }\n", "error ref-shape auth.ref storage_auth_unresolvable"},
	{"auth state key", "STORAGE", "auth: { state: { «envs: [A] } }\n", "error unknown-key auth.state.envs" + bad},
	{"env with a value", "STORAGE", "auth: { state: { env: [«A=b] } }\n", "error env-name auth.state.env[0]" + bad},
	{"exclude by negation", "STORAGE", "exclude: [«\"!x\"]\n", "error exclude-pattern exclude[0]" + bad},
	{"exclude of a directory", "STORAGE", local + "exclude: «[.runs/]\n", "warning exclude-local exclude -"},
	{"exclude of what is made anywhere", "STORAGE", "exclude: [«node_modules/]\n", "warning exclude-anchored exclude[0] -"},
	{"exclude that is anchored", "STORAGE", "exclude: [«\"*.log\"]\n", "warning exclude-anchored exclude[0] -"},
	{"readOnly", "STORAGE", "«readOnly: true\n", "error unknown-key readOnly" + bad},
	{"a key as plain text", "STORAGE", "config: { bucket: files, secret_access_key: «x }\n", "error plaintext-credential config.secret_access_key" + bad},
	{"a token in an extension", "STORAGE", "metadata: { note: [«ghp_" + strings.Repeat("a", 36) + "] }\n", "error plaintext-credential metadata.note[0]" + bad},
	{"storage schema", "STORAGE", "schema: «storage/v2\n", "error not-allowed schema" + bad},
	{"storage id", "STORAGE", "id: «files\n", "error address id" + bad},
}

var otherRules = []ruleCase{
	{"no secrets", "SECRETS", "secrets: «[]\n", "error empty-value secrets -"},
	{"inventory key", "SECRETS", "«schema: secrets/v1\n", "error unknown-key schema -"},
	{"value by shape", "SECRETS", "secrets: [{ slug: one, name: O, description: «AKIAABCDEFGHIJKLMNOP }]\n", "error plaintext-credential secrets[0].description -"},
	{"slug", "SECRETS", "secrets: [{ slug: «One, name: O, description: d }]\n", "error secret-slug secrets[0].slug -"},
	{"slug with two dashes", "SECRETS", "secrets: [{ slug: «a--b, name: O, description: d }]\n", "error secret-slug secrets[0].slug -"},
	{"slug of depth", "SECRETS", "secrets: [{ slug: «org/acme/a1, name: O, description: d }]\n", "warning secret-slug-depth secrets[0].slug -"},
	{"slug twice", "SECRETS", "secrets: [{ slug: one, name: O, description: d }, «{ slug: one, name: P, description: d }]\n", "error duplicate-slug secrets[1] -"},
	{"description of another type", "SECRETS", "secrets: [{ slug: one, name: O, description: «{} }]\n", "error wrong-type secrets[0].description -"},
	{"long description", "SECRETS", "secrets: [{ slug: one, name: O, description: «" + strings.Repeat("x", 2001) + " }]\n", "error length secrets[0].description -"},
	{"no description", "SECRETS", "secrets: [{ slug: one, name: O, description: «\"\" }]\n", "error empty-value secrets[0].description -"},
	{"kind", "SECRETS", "secrets: [{ slug: one, name: O, description: d, kind: «text }]\n", "error not-allowed secrets[0].kind -"},
	{"backend", "SECRETS", "secrets: [{ slug: one, name: O, description: d, backend: «vault }]\n", "error vault-uri secrets[0].backend -"},
	{"access of two", "SECRETS", "secrets: [{ slug: one, name: O, description: d, access: { bind: [«{ role: a, tool: b }] } }]\n", "error access-form secrets[0].access.bind[0] -"},
	{"access cap", "SECRETS", "secrets: [{ slug: one, name: O, description: d, access: { bind: [{ cap: «x }] } }]\n", "error access-cap secrets[0].access.bind[0].cap -"},
	{"retention", "SECRETS", "secrets: [{ slug: one, name: O, description: d, audit: { retention: «forever } }]\n", "error retention secrets[0].audit.retention -"},
	{"secret tag", "SECRETS", "secrets: [{ slug: one, name: O, description: d, tags: [«A] }]\n", "error tag secrets[0].tags[0] -"},
	{"exposure name", "SECRETS", "secrets: [{ slug: one, name: O, description: d, exposures: [{ kind: env, name: «a, field: f }] }]\n", "error env-name secrets[0].exposures[0].name -"},
	{"exposure mode", "SECRETS", "secrets: [{ slug: one, name: O, description: d, exposures: [{ kind: file, path: p, mode: «512 }] }]\n", "error range secrets[0].exposures[0].mode -"},
	{"exposure key", "SECRETS", "secrets: [{ slug: one, name: O, description: d, exposures: [{ kind: file, path: p, «owner: x }] }]\n", "error unknown-key secrets[0].exposures[0].owner -"},
	{"unknown exposure", "SECRETS", "secrets: [{ slug: one, name: O, description: d, exposures: [{ kind: «socket }] }]\n", "warning exposure-kind secrets[0].exposures[0].kind -"},
	{"binding", "SECRETS", "secrets: [{ slug: one, name: O, description: d, metadata: { bindings: { env: [«A-B] } } }]\n", "error env-name secrets[0].metadata.bindings.env[0] -"},
	{"sandbox limit", "SANDBOX", "limits: { timeout_ms: «0 }\n", "error range limits.timeout_ms -"},
	{"sandbox credential", "SANDBOX", "config: { api_key: «x }\n", "error plaintext-credential config.api_key -"},
	{"sandbox mount", "SANDBOX", "mounts: [{ source: «home, at: / }]\n", "error not-allowed mounts[0].source -"},
	{"sandbox mount point", "SANDBOX", "mounts: [{ source: workspace, at: «x }]\n", "error mount-point mounts[0].at -"},
	{"sandbox mount storage", "SANDBOX", "mounts: [{ source: { ref: «/x }, at: /x }]\n", "error ref-shape mounts[0].source.ref storage_ref_unresolvable"},
	{"sandbox passthrough", "SANDBOX", "env: { passthrough: [«A=b] }\n", "error env-name env.passthrough[0] -"},
	{"policy default", "POLICY", "default: «ask\n", "error not-allowed default -"},
	{"policy allows", "POLICY", "default: «allow\n", "warning policy-default-allow default -"},
	{"grant of nothing", "POLICY", "grants: [{ principal: \"*\", actions: «[] }]\n", "error empty-value grants[0].actions -"},
	{"grant to nobody", "POLICY", "grants: [«{ actions: [{ action: a }] }]\n", "error missing-key grants[0] -"},
	{"grant without end", "POLICY", "grants: [{ principal: \"*\", actions: [{ action: a }], ttl_seconds: «0 }]\n", "error range grants[0].ttl_seconds -"},
	{"grant that is revoked by text", "POLICY", "grants: [{ principal: \"*\", actions: [{ action: a }], revoked: «yes }]\n", "error wrong-type grants[0].revoked -"},
	{"action key", "POLICY", "grants: [{ principal: \"*\", actions: [{ action: a, «on: b }] }]\n", "error unknown-key grants[0].actions[0].on -"},
	{"condition without kind", "POLICY", "grants: [{ principal: \"*\", actions: [{ action: a }], conditions: [«{ x: 1 }] }]\n", "error missing-key grants[0].conditions[0] -"},
	{"limit", "POLICY", "limits: [{ kind: k, value: «-1 }]\n", "error range limits[0].value -"},
	{"limit as text", "POLICY", "limits: [{ kind: k, value: «ten }]\n", "error wrong-type limits[0].value -"},
	{"requirement", "POLICY", "requirements: [«{}]\n", "error missing-key requirements[0] -"},
	{"policy defaults", "POLICY", "defaults: { storage: «1 }\n", "error wrong-type defaults.storage -"},
	{"policy read-only", "POLICY", "defaults: { storage: { read_only: «yes } }\n", "error wrong-type defaults.storage.read_only -"},
	{"policy readOnly", "POLICY", "defaults: { storage: { «readOnly: true } }\n", "error unknown-key defaults.storage.readOnly -"},
	{"grant key", "POLICY", "grants: [{ principal: \"*\", actions: [{ action: a }], «until: x }]\n", "error unknown-key grants[0].until -"},
	{"policy key", "POLICY", "«grant: []\n", "error unknown-key grant -"},
	{"secret key", "SECRETS", "secrets: [{ slug: one, name: O, description: d, «owner: x }]\n", "error unknown-key secrets[0].owner -"},
	{"access key", "SECRETS", "secrets: [{ slug: one, name: O, description: d, access: { «read: [] } }]\n", "error unknown-key secrets[0].access.read -"},
	{"access entry key", "SECRETS", "secrets: [{ slug: one, name: O, description: d, access: { bind: [{ role: a, «user: b }] } }]\n", "error unknown-key secrets[0].access.bind[0].user -"},
	{"audit key", "SECRETS", "secrets: [{ slug: one, name: O, description: d, audit: { «keep: 1d } }]\n", "error unknown-key secrets[0].audit.keep -"},
	{"sandbox key", "SANDBOX", "«image: x\n", "error unknown-key image -"},
	{"sandbox limit key", "SANDBOX", "limits: { «memory: 1 }\n", "error unknown-key limits.memory -"},
	{"sandbox env key", "SANDBOX", "env: { «set: {} }\n", "error unknown-key env.set -"},
	{"sandbox network key", "SANDBOX", "network: { «ingress: [] }\n", "error unknown-key network.ingress -"},
	{"sandbox mount key", "SANDBOX", "mounts: [{ source: workspace, at: /, «to: x }]\n", "error unknown-key mounts[0].to -"},
	{"code key", "CODE", "«source: x\n", "error unknown-key source -"},
	{"rich code key", "CODE", "sources: x\nkind: code-workspace\nname: n\ncode: { sources: [{ ref: ./x }], «run: y }\n", "error unknown-key code.run -"},
	{"code of another kind", "CODE", "sources: x\nkind: «tool\nname: n\ncode: ./x\n", "error not-allowed kind -"},
	{"code outside", "CODE", "sources: x\nkind: code-workspace\nname: n\ncode: «/x\n", "error code-path code -"},
	{"lean code id", "CODE", "sources: x\nschema: code/v2\nid: «search\n", "error address id -"},
	{"source body key", "CODE", "sources: [{ github: { repo: a/r, ref: main, «glob: x } }]\n", "error unknown-key sources[0].github.glob -"},
	{"run key", "CODE", "sources: x\nschema: code/v2\nrun: { file: a, «cwd: b }\n", "warning unknown-key run.cwd -"},
	{"no sources", "CODE", "sources: «[]\n", "error empty-value sources -"},
	{"source key", "CODE", "sources: [{ ref: ./x, «as: y }]\n", "error unknown-key sources[0].as -"},
	{"source that climbs", "CODE", "sources: [{ local: «../x }]\n", "error code-path sources[0].local -"},
	{"inline source outside", "CODE", "sources: [{ inline: { path: «/x, content: c } }]\n", "error code-path sources[0].inline.path -"},
	{"github source", "CODE", "sources: [{ github: { repo: «r, ref: main } }]\n", "error repository sources[0].github.repo -"},
	{"run", "CODE", "schema: code/v2\nsources: x\nrun: «{ file: a, shell: b }\n", "error run-form run -"},
	{"run of nothing", "CODE", "schema: code/v2\nsources: x\nrun: «[]\n", "error empty-value run -"},
	{"identity e-mail", "IDENTITY", "email: «nobody\n", "error email email -"},
}

func TestRules(t *testing.T) { checkRules(t, allRules) }

var allRules = slices.Concat(yamlRules, workspaceRules, storageRules, otherRules)
