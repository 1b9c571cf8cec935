package host

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

const byPolicy = `{ ref: "@acme/bucket" }`

// sharing is a world with a policy that @acme/bucket leads to, and what else the host
// says of it.
func sharing(t *testing.T, config, more string) *world {
	w := newWorld(t)
	p := w.write("lib/bucket.STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/bucket\"\nversion: 1.0.0\n"+config+"\n---\n")
	w.config = "storages: { \"@acme/bucket\": { path: " + p + more + " } }\n" + cloudConfig
	return w
}

const selfBucket = `provider: self-bucket
config: { kind: KIND, region: eu-west-1, bucket: data, prefix: PREFIX }`

// A policy in a bucket keeps each workspace below a prefix of its own, whichever service
// it is, and what asks for the place afterwards is told that prefix.
func TestSharedPolicy(t *testing.T) {
	for name, config := range map[string]string{
		"s3":           strings.NewReplacer("KIND", "s3", "PREFIX", "all").Replace(selfBucket),
		"azure":        "provider: self-bucket\nconfig: { kind: azure, bucket: data, prefix: all, endpoint: \"https://acme.blob.core.windows.net\" }",
		"gcs":          strings.NewReplacer("KIND", "gcs", "PREFIX", "all").Replace(selfBucket),
		"mastra-s3":    "provider: mastra-s3\nconfig: { bucket: data, region: eu-west-1, prefix: all }",
		"mastra-azure": "provider: mastra-azure\nconfig: { container: data, accountName: acme, prefix: all }",
		"cloud-bucket": "provider: cloud-bucket\nconfig: { bucket: guilde, prefix: guilds/acme }",
	} {
		t.Run(name, func(t *testing.T) {
			w := sharing(t, config, "")
			prefix := "all/"
			if name == "cloud-bucket" {
				prefix = "guilds/acme/"
			}
			prints := map[string]bool{}
			for _, slug := range []string{"b", "b-c"} { // one name begins the other
				w.manifest(slug, "@acme/"+slug, byPolicy)
				w.add(slug)
				got := w.ok("@acme/"+slug, ResolveOptions{})
				want := prefix + "acme/" + slug + "/"
				assert.Equal(t, got.Location.Prefix, want, "prefix")
				assert.Contains(t, fmt.Sprint(got.Storage.Config), want, "what the provider gets")
				assert.Contains(t, fmt.Sprint(got.Explain), want, "what is explained")
				prints[got.Fingerprint] = true
			}
			assert.Equal(t, len(prints), 2, "fingerprints")
		})
	}
}

// What is written in the workspace itself stays as it is written.
func TestOwnPolicy(t *testing.T) {
	config := strings.NewReplacer("KIND", "s3", "PREFIX", "all").Replace(selfBucket)
	for _, storage := range []string{
		s3("https://s3.eu-west-1.amazonaws.com", "data", "all", ""), `{ ref: ./x.STORAGE.md }`, `{ file: x.STORAGE.md }`, `{ ref: ../ws/x.STORAGE.md }`,
	} {
		t.Run(storage, func(t *testing.T) {
			w := newWorld(t)
			w.write("ws/x.STORAGE.md", "---\nschema: storage/v1\n"+config+"\n---\n")
			w.manifest("ws", "@acme/ops", storage)
			assert.Equal(t, w.ok("ws", ResolveOptions{Trust: true}).Location.Prefix, "all/")
		})
	}
}

// The policy of a sibling is one of others, too.
func TestPolicyOfASibling(t *testing.T) {
	w := newWorld(t)
	w.workspace("other", "@acme/other")
	w.write("other/x.STORAGE.md", "---\nschema: storage/v1\n"+strings.NewReplacer("KIND", "s3", "PREFIX", `""`).Replace(selfBucket)+"\n---\n")
	w.add("other")
	w.manifest("ws", "@acme/ops", `{ ref: ../other/x.STORAGE.md }`)
	assert.Equal(t, w.ok("ws", ResolveOptions{Trust: true}).Location.Prefix, "acme/ops/")
}

// The host may have all of them in one place; then they overlap. What was registered
// there is in another place when it takes that back, and has to be accepted.
func TestPolicyOfOnePlace(t *testing.T) {
	config := strings.NewReplacer("KIND", "s3", "PREFIX", "all").Replace(selfBucket)
	w := sharing(t, config, ", per_workspace: false")
	w.manifest("ws", "@acme/ops", byPolicy)
	w.manifest("second", "@acme/second", byPolicy)
	w.add("ws")
	assert.Equal(t, w.ok("@acme/ops", ResolveOptions{}).Location.Prefix, "all/")
	w.refused("second", ResolveOptions{Trust: true}, Denied, "overlaps", "@acme/ops")

	w.config = strings.Replace(w.config, ", per_workspace: false", "", 1)
	e := w.refused("@acme/ops", ResolveOptions{}, Denied, "data/all/acme/ops/, and was ")
	assert.Contains(t, e.Hint, "registry accept @acme/ops")
	change, err := w.resolver().Accept(context.Background(), mountspec.Address{Owner: "acme", Slug: "ops"}, func(Change) bool { return true })
	assert.OK(t, err)
	assert.Contains(t, fmt.Sprint(change), "all/acme/ops/")
	assert.Equal(t, w.ok("@acme/ops", ResolveOptions{}).Location.Prefix, "all/acme/ops/")
}

// A storage that a sandbox mounts by its slug has the prefix of the workspace, too.
func TestSharedPolicyOfASandbox(t *testing.T) {
	w := sharing(t, strings.NewReplacer("KIND", "s3", "PREFIX", "all").Replace(selfBucket), "")
	w.workspace("ws", "@acme/ops", `sandbox: { inline: { provider: local, config: {}, mounts: [ { at: /data, source: { ref: "@acme/bucket" } } ] } }`)
	w.add("ws")
	assert.Equal(t, w.ok("@acme/ops", ResolveOptions{SandboxMount: "/data"}).Location.Prefix, "all/acme/ops/")
}

// AIP-34's example of a workspace and AIP-35's of the policy that it refers to, as they are
// written, are valid and resolve to a place of its own in the bucket.
func TestAIP34Example(t *testing.T) {
	w := newWorld(t)
	w.write("acme-corp/SECRETS.md", "---\nsecrets:\n  - { slug: aws-access-key-id, name: Key, description: For the bucket. }\n  - { slug: aws-secret-access-key, name: Secret, description: For the bucket. }\n---\n")
	for _, name := range []string{"marketing-ops/WORKSPACE.md", "shared-s3-policy.STORAGE.md"} {
		text, err := os.ReadFile("testdata/acme-corp/" + name)
		assert.OK(t, err)
		w.write("acme-corp/"+name, string(text))
	}
	w.config = "storages: { \"@acme-corp/shared-s3-policy\": " + w.path("acme-corp/shared-s3-policy.STORAGE.md") + " }\n" +
		"secrets: { org/acme/s3-rw: { env: { access_key_id: ACME_KEY, secret_access_key: ACME_SECRET }, allow: [ \"@acme-corp/*\" ] } }\n"
	w.add("acme-corp/marketing-ops")
	got := w.ok("@acme-corp/marketing-ops", ResolveOptions{Strict: true})
	assert.Equal(t, got.Location.String(), "https://s3.eu-west-1.amazonaws.com/acme-agentik/workspaces/acme-corp/marketing-ops/")
	assert.Equal(t, got.Workspace.Name+" "+strings.Join(got.Workspace.Tags, " ")+" "+strings.Join(got.Storage.Exclude, " "), "Acme Marketing Ops marketing content brand .runs/ .cache/")
	assert.False(t, got.ReadOnly.On(), "it is read-only", got.ReadOnly)
	creds, err := got.Grants.Secrets.Reveal(t.Context())
	assert.OK(t, err)
	assert.Equal(t, strings.Join(creds.Names(), " "), "access_key_id secret_access_key")
}
