package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

// examples are all blocks of AIP-34 and AIP-35 that are examples, and not the grammar of a block,
// as they are written, with local servers in place of the public ones. Each is validated,
// resolved and mounted.
var examples = map[string]func(*testing.T){
	"AIP-34: workspace as repo":              codespaceFromItsServer,
	"AIP-34: example, with that of AIP-35":   sharedS3Policy,
	"AIP-35: embedding in a parent manifest": embeddedBucket,
}

// TestExamplesOfTheSpecifications mounts them.
func TestExamplesOfTheSpecifications(t *testing.T) {
	t.Parallel()
	for name, mount := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mount(t)
		})
	}
}

// used validates, resolves and mounts a workspace that lies in a directory, and checks that what
// is written there lies below a prefix of a bucket, less what is excluded.
func used(t *testing.T, w *harness.World, s *s3server.Server, dir, address, prefix string, excluded ...string) {
	t.Helper()
	w.MustRun("validate", w.Path(dir)+"/WORKSPACE.md")
	w.MustRun("registry", "add", w.Path(dir))
	assert.Contains(t, w.MustRun("resolve", "--explain", address), s.Bucket+"/"+prefix)
	m := w.Mount(address)
	for _, d := range append(excluded, "plan") {
		assert.OK(t, os.MkdirAll(m.Dir+"/"+d, 0o755))
		assert.OK(t, os.WriteFile(m.Dir+"/"+d+"/f", []byte(d), 0o644))
	}
	m.Stop()
	assert.Equal(t, string(assert.Of(s.Get(t.Context(), prefix+"plan/f")).OK(t)), "plan")
	keys := strings.Join(assert.Of(s.Keys(t.Context(), prefix)).OK(t), " ")
	for _, d := range excluded {
		assert.False(t, strings.Contains(keys, d), "excluded and sent:", keys)
	}
}

// sharedS3Policy is a workspace by the policy that its owner keeps in the registry of storages.
func sharedS3Policy(t *testing.T) {
	const public = "https://s3.eu-west-1.amazonaws.com"
	s, w := s3server.StartAs(t, "acme-agentik", "eu-west-1"), harness.New(t, harness.Options{})
	w.Login(map[string]string{"access_key_id": s.AccessKey, "secret_access_key": s.SecretKey})
	for _, name := range []string{"marketing-ops/WORKSPACE.md", "shared-s3-policy.STORAGE.md"} {
		text := readFile(t, "../mountspec/host/testdata/acme-corp/"+name)
		w.Mkdir("acme-corp/marketing-ops", 0o755)
		w.Write("acme-corp/"+name, strings.Replace(text, public, s.Endpoint, 1), 0o644)
	}
	w.Write("acme-corp/SECRETS.md", "---\nsecrets:\n  - { slug: aws-access-key-id, name: Key, description: For the bucket. }\n"+
		"  - { slug: aws-secret-access-key, name: Secret, description: For the bucket. }\n---\n", 0o644)
	// The example names its credentials twice, which the host may keep apart.
	w.Write("config/id", s.AccessKey, 0o600)
	w.Write("config/key", s.SecretKey, 0o600)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("storages: { \"@acme-corp/shared-s3-policy\": %q }\nallow_endpoints: [ \"%s 127.0.0.1\" ]\n"+
		"secrets: { org/acme/s3-rw: { file: %q, format: json, allow: [ \"@acme-corp/*\" ] }, aws-access-key-id: { file: %q, allow: [ \"@acme-corp/*\" ] }, aws-secret-access-key: { file: %q, allow: [ \"@acme-corp/*\" ] } }\n",
		w.Path("acme-corp/shared-s3-policy.STORAGE.md"), s.Endpoint, w.Path("config/login.json"), w.Path("config/id"), w.Path("config/key")), 0o600)
	w.MustRun("validate", w.Path("acme-corp/shared-s3-policy.STORAGE.md"))
	used(t, w, s, "acme-corp/marketing-ops", "@acme-corp/marketing-ops", "workspaces/acme-corp/marketing-ops/", ".runs", ".cache")
}

// embeddedBucket is a workspace in the bucket of the host.
func embeddedBucket(t *testing.T) {
	const block = `storage:
  inline:                                 # exclusive with ref
    provider: cloud-bucket
    config: { bucket: "guilde-workspace", prefix: "guilds/abc/workspace" }
  # OR
  # ref: ./storage/main.STORAGE.md        # workspace-local file
  # OR
  # ref: "@acme-corp/shared-s3-policy"    # registry slug
`
	s, w := s3server.StartAs(t, "guilde-workspace", "us-east-1"), harness.New(t, harness.Options{})
	w.Login(map[string]string{"access_key_id": s.AccessKey, "secret_access_key": s.SecretKey})
	w.Mkdir("ws", 0o755)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@guilde/abc", block), 0o644)
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\nsecrets: { of-the-host: { file: %[2]q, format: json } }\n"+
		"providers: { cloud-bucket: { kind: s3, endpoint: %[1]q, region: us-east-1, credentials: of-the-host, grants: [ { owner: guilde, bucket: guilde-workspace, prefix: guilds/abc } ] } }\n",
		s.Endpoint, w.Path("config/login.json")), 0o600)
	used(t, w, s, "ws", "@guilde/abc", "guilds/abc/workspace/")
}
