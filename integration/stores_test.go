package integration

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

// Two workspaces whose storage is one policy keep their bytes apart in its bucket (AIP-35),
// also when one of them is mounted inside the other.
func TestSharedPolicy(t *testing.T) {
	t.Parallel()
	s, w := gcsserver.Start(t), harness.New(t, harness.Options{})
	s.Token = "one-that-the-host-was-given"
	w.Write("config/token.json", `{"token": "one-that-the-host-was-given"}`, 0o600)
	w.Write("config/wsmount/bucket.STORAGE.md", fmt.Sprintf("---\nschema: storage/v1\nid: \"@acme/bucket\"\nversion: \"1.0.0\"\n"+
		"provider: cloud-bucket\nconfig: {bucket: %s, prefix: team}\n---\n", gcsserver.Bucket), 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("storages: { \"@acme/bucket\": %q }\nallow_endpoints: [ \"%s 127.0.0.1\" ]\n"+
		"secrets: { gcs-of-the-host: { file: %q, format: json } }\n"+
		"providers: { cloud-bucket: { kind: gcs, endpoint: %q, credentials: gcs-of-the-host, grants: [ { owner: acme, bucket: %s, prefix: team } ] } }\n",
		w.Path("config/wsmount/bucket.STORAGE.md"), s.Endpoint, w.Path("config/token.json"), s.Endpoint, gcsserver.Bucket), 0o600)
	for slug, more := range map[string]string{"b-c": "", "b": "metadata: { wsmount: { mounts: [ { at: /inside, source: \"@acme/b-c\" } ] } }\n"} {
		w.Mkdir(slug, 0o755)
		w.Write(slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, "storage: { ref: \"@acme/bucket\" }\n"+more), 0o644)
	}
	for _, slug := range []string{"b-c", "b"} {
		w.MustRun("registry", "add", w.Path(slug))
	}
	assert.Contains(t, w.MustRun("resolve", "--explain", "@acme/b"), "team/acme/b/")

	m := w.Mount("@acme/b")
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "plan"), []byte("of b"), 0o644))
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "inside/plan"), []byte("of b-c"), 0o644))
	m.Stop()
	keys := slices.DeleteFunc(s.Keys(), func(key string) bool { return !strings.HasSuffix(key, "/plan") })
	slices.Sort(keys)
	assert.Slice(t, keys, []string{"team/acme/b-c/plan", "team/acme/b/plan"}, "objects")

	alone := w.Mount("@acme/b-c")
	checkContent(t, filepath.Join(alone.Dir, "plan"), "of b-c")
	alone.Stop()
	m.Start()
	checkContent(t, filepath.Join(m.Dir, "plan"), "of b")
}

// A bucketBlock is how a provider's manifest names a bucket.
type bucketBlock struct {
	config string            // beside the prefix
	env    map[string]string // fields of its secret by the variables that the manifest names; nil: it names none
	shown  string            // more of the config, for who only reads; "": the storage block says it
}

// bucketBlocks are those of all providers of a service, by their names.
func bucketBlocks(b harness.Bucket) map[string]bucketBlock {
	endpoint := fmt.Sprintf("endpoint: %q", b.Endpoint+b.Path)
	all := map[string]bucketBlock{
		"self-bucket":  {config: fmt.Sprintf("kind: %s, %s, %s, credentials_ref: org/acme/bucket", b.Kind, endpoint, b.Config)},
		"cloud-bucket": {config: "bucket: " + b.Name()},
	}
	switch b.Kind {
	case "s3":
		all["mastra-s3"] = bucketBlock{b.Config + ", " + endpoint, map[string]string{"AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key"}, "readOnly: true"}
	case "azure":
		all["mastra-azure"] = bucketBlock{fmt.Sprintf("container: %s, accountName: %s, %s", b.Name(), azureserver.Account, endpoint), map[string]string{"AZURE_STORAGE_KEY": "account_key"}, "readOnly: true"}
	}
	return all
}

// Whichever provider names a bucket, and of whichever service, what is written is there when it
// is mounted again, but for what is excluded, which is in the mount alone; what others write
// is seen; and where the manifest says so, nothing is written.
func TestEveryBucket(t *testing.T) {
	t.Parallel()
	start := map[string]func(t testing.TB) harness.Bucket{"s3": func(t testing.TB) harness.Bucket { return harness.S3(s3server.Start(t, s3server.Default())) }}
	maps.Copy(start, others)
	for kind, start := range start {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			for provider, block := range bucketBlocks(b) {
				t.Run(provider, func(t *testing.T) { everyBucket(t, b, provider, block) })
			}
		})
	}
}

// everyBucket is TestEveryBucket of one provider.
func everyBucket(t *testing.T, b harness.Bucket, provider string, block bucketBlock) {
	w := harness.New(t, harness.Options{})
	w.Login(b.Secrets)
	secrets, auth := fmt.Sprintf("org/acme/bucket: { file: %q, format: json }", w.Path("config/login.json")), ""
	for variable, field := range block.env {
		slug := strings.ReplaceAll(strings.ToLower(variable), "_", "-")
		secrets += fmt.Sprintf(", %s: { file: %q, allow: [\"@acme/*\"] }", slug, w.Write("config/"+slug, b.Secrets[field], 0o600))
		auth = fmt.Sprintf(", auth: {state: {env: [%s]}}", strings.Join(slices.Sorted(maps.Keys(block.env)), ", "))
	}
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%s 127.0.0.1\" ]\nsecrets: { %s }\n"+
		"providers: { cloud-bucket: { kind: %s, endpoint: %q, region: us-east-1, credentials: org/acme/bucket, grants: [ { owner: acme, bucket: %s, prefix: team } ] } }\n",
		b.Endpoint, secrets, b.Kind, b.Endpoint+b.Path, b.Name()), 0o600)
	workspace := func(slug, config, more string) {
		w.Mkdir(slug, 0o755)
		w.Write(slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, fmt.Sprintf("storage: {inline: {provider: %s, config: {%s, prefix: team/%s-%s}%s%s, exclude: [\"**/*.local\"]}}\n",
			provider, config, provider, slug, auth, more)), 0o644)
		w.MustRun("registry", "add", w.Path(slug))
	}
	workspace("mine", block.config, "")
	if block.shown != "" {
		workspace("shown", block.config+", "+block.shown, "")
	} else {
		workspace("shown", block.config, ", read_only: true")
	}
	put := func(slug, content string) {
		t.Helper()
		assert.OK(t, b.Put(t.Context(), "team/"+provider+"-"+slug+"/theirs", []byte(content), nil))
	}

	m := w.Mount("@acme/mine")
	for name, content := range map[string]string{"plan": "ours", "only.local": "excluded"} {
		assert.OK(t, os.WriteFile(filepath.Join(m.Dir, name), []byte(content), 0o644))
	}
	m.Stop()
	objects := assert.Of(b.ETags(t.Context(), "team/"+provider+"-mine/")).OK(t)
	assert.Slice(t, slices.Sorted(maps.Keys(objects)), []string{"plan"}, "objects")
	m.Start()
	for name, content := range map[string]string{"plan": "ours", "only.local": "excluded"} {
		checkContent(t, filepath.Join(m.Dir, name), content)
	}
	for _, what := range []string{"theirs", "theirs, changed"} {
		put("mine", what)
		harness.Eventually(t, "what another wrote", func() bool {
			content, err := os.ReadFile(filepath.Join(m.Dir, "theirs"))
			return err == nil && string(content) == what
		})
	}
	packed := gzipped(t, "theirs")
	assert.OK(t, b.PutPacked(t.Context(), "team/"+provider+"-mine/packed", packed))
	harness.Eventually(t, "what is stored packed, as it is stored", func() bool {
		content, err := os.ReadFile(filepath.Join(m.Dir, "packed"))
		return err == nil && bytes.Equal(content, packed)
	})

	put("shown", "theirs")
	shown := w.Mount("@acme/shown")
	checkContent(t, filepath.Join(shown.Dir, "theirs"), "theirs")
	assert.Is(t, os.WriteFile(filepath.Join(shown.Dir, "theirs"), []byte("ours"), 0o644), syscall.EROFS, "write")
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	assert.OK(t, errors.Join(err, w.Close()))
	return packed.Bytes()
}

// mountVault mounts a workspace that lies in a vault.
func mountVault(t *testing.T) (w *harness.World, m *harness.Mount, vault string) {
	t.Helper()
	w = harness.New(t, harness.Options{})
	vault = w.Mkdir("vault", 0o755)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ \""+vault+"\" ]\n", 0o600)
	dir := w.Mkdir("ws", 0o755)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/memory", "storage: {inline: {provider: vault, config: {vault_path: \""+vault+"\"}}}\n"), 0o644)
	w.MustRun("registry", "add", dir)
	return w, w.Mount("@acme/memory"), vault
}

// What is written in the mount is in the vault when close returns, and what another
// program writes there is in the mount.
func TestVault(t *testing.T) {
	t.Parallel()
	_, m, vault := mountVault(t)
	assert.OK(t, os.Mkdir(m.Dir+"/projects", 0o755))
	assert.OK(t, os.WriteFile(m.Dir+"/projects/plan.md", []byte("ours\n"), 0o644))
	checkContent(t, vault+"/projects/plan.md", "ours\n")
	assert.OK(t, os.WriteFile(vault+"/note.md", []byte("theirs\n"), 0o644))
	harness.Eventually(t, "another program's file is in the mount", func() bool {
		text, err := os.ReadFile(m.Dir + "/note.md")
		return err == nil && string(text) == "theirs\n"
	})
	assert.OK(t, os.Rename(m.Dir+"/note.md", m.Dir+"/projects/note.md"))
	harness.Eventually(t, "the new name is in the vault", func() bool {
		_, err := os.Stat(vault + "/projects/note.md")
		return err == nil
	})
}

// Copies that a replication left of conflicts are told and listed, wherever they are, and
// hold nothing up.
func TestVaultConflictCopies(t *testing.T) {
	t.Parallel()
	w, m, vault := mountVault(t)
	assert.False(t, strings.Contains(w.MustRun("status", m.Dir), "replication"), "status tells of copies that are not there")
	assert.OK(t, os.MkdirAll(vault+"/projects/a", 0o755))
	for _, name := range []string{"note (Ann's conflicted copy 2026-01-31).md", "projects/a/plan.sync-conflict-20260131-120000-ABCDEFG.md", "projects/plan.md"} {
		assert.OK(t, os.WriteFile(vault+"/"+name, []byte("x"), 0o644))
	}
	assert.Contains(t, w.MustRun("status", m.Dir), "2 copies that a replication kept")
	list := w.MustRun("conflicts", "list", m.Dir, "--json")
	assert.Contains(t, list, "note (Ann's conflicted copy 2026-01-31).md")
	assert.Contains(t, list, "projects/a/plan.sync-conflict-20260131-120000-ABCDEFG.md")
	assert.False(t, strings.Contains(list, "projects/plan.md"), "listed:", list)
	m.Stop()
}
