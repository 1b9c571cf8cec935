package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
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
