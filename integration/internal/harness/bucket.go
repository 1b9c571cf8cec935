package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/s3server"
)

// A Bucket is one of an object store, in which workspaces can lie. Tests that are the same
// of every service know no more of it.
type Bucket struct {
	Kind     string            // of the service, as configurations call it
	Endpoint string            // where it listens
	Path     string            // behind that in a configuration's endpoint
	Config   string            // which bucket it is, as YAML
	Secrets  map[string]string // that wsmount is given
	Objects                    // nil: nobody asks but programs
}

// Objects are what a bucket has, for who does not go through a mount.
type Objects interface {
	Put(ctx context.Context, key string, content []byte, metadata map[string]string) error
	// Read is an object's content and metadata.
	Read(ctx context.Context, key string) (content []byte, metadata map[string]string, err error)
	// Keys are those below a prefix but wsmount's own, without it.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// S3 is the bucket of an S3 server.
func S3(s *s3server.Server) Bucket {
	return Bucket{Kind: "s3", Endpoint: s.Endpoint, Config: "region: us-east-1, bucket: " + s.Bucket, Objects: s,
		Secrets: map[string]string{"access_key_id": s.AccessKey, "secret_access_key": s.SecretKey}}
}

// Azure is a container of a blob service at an endpoint, whose account is the servers'.
func Azure(endpoint string) Bucket {
	path := "/" + azureserver.Account
	return Bucket{Kind: "azure", Endpoint: strings.TrimSuffix(endpoint, path), Path: path, Config: "bucket: " + azureserver.Container,
		Secrets: map[string]string{"account_name": azureserver.Account, "account_key": azureserver.AccountKey}}
}

// GCS is a bucket of Google Cloud Storage at an endpoint that takes any token.
func GCS(endpoint, name string) Bucket {
	return Bucket{Kind: "gcs", Endpoint: endpoint, Config: "bucket: " + name, Secrets: map[string]string{"token": "of-nobody"}}
}

// OfAzure is the container of a server in this process.
func OfAzure(s *azureserver.Server) Bucket {
	b := Azure(s.Endpoint)
	b.Objects = inProcess{s}
	return b
}

// OfGCS is the bucket of a server in this process.
func OfGCS(s *gcsserver.Server) Bucket {
	b := GCS(s.Endpoint, gcsserver.Bucket)
	b.Objects = inProcess{s}
	return b
}

// inProcess are objects that nobody has to be asked for.
type inProcess struct {
	server interface {
		Put(key, content string, metadata map[string]string)
		Get(key string) (content string, metadata map[string]string)
		Keys() []string
	}
}

func (p inProcess) Put(_ context.Context, key string, content []byte, metadata map[string]string) error {
	p.server.Put(key, string(content), metadata)
	return nil
}

func (p inProcess) Read(_ context.Context, key string) ([]byte, map[string]string, error) {
	content, metadata := p.server.Get(key)
	return []byte(content), metadata, nil
}

func (p inProcess) Keys(_ context.Context, prefix string) (keys []string, err error) {
	for _, key := range p.server.Keys() {
		if rest, ok := strings.CutPrefix(key, prefix); ok && !strings.HasPrefix(rest, ".wsmount/") {
			keys = append(keys, rest)
		}
	}
	return keys, nil
}

// Grant lets the world's workspaces reach a bucket at some endpoints, with write-back, and
// hands out its secrets.
func (w *World) Grant(b Bucket, endpoints ...string) {
	w.t.Helper()
	w.Login(b.Secrets)
	endpoints = slices.Clone(endpoints)
	for i, e := range endpoints {
		endpoints[i] = fmt.Sprintf("\"%s 127.0.0.1\"", e)
	}
	w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ %s ]\nallow_write_back: [ \"@acme/*\" ]\nsecrets: { org/acme/bucket: { file: %q, format: json } }\n",
		strings.Join(endpoints, ", "), w.Path("config/login.json")), 0o600)
}

// Login writes the secrets that wsmount is given.
func (w *World) Login(secrets map[string]string) {
	w.t.Helper()
	text, err := json.Marshal(secrets)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Write("config/login.json", string(text), 0o600)
}

// BucketWorkspace registers @acme/slug below a prefix of a bucket that is reached at an
// endpoint; sync is YAML of its sync block, if any.
func (w *World) BucketWorkspace(b Bucket, slug, endpoint, prefix, sync string) {
	w.t.Helper()
	if sync != "" {
		sync = ", sync: {" + sync + "}"
	}
	dir := w.Mkdir("ws-"+slug, 0o755)
	w.Write("ws-"+slug+"/WORKSPACE.md", Manifest("@acme/"+slug, fmt.Sprintf("storage: {inline: {provider: self-bucket, config: "+
		"{kind: %s, endpoint: %q, %s, prefix: %q, credentials_ref: org/acme/bucket}%s}}\n", b.Kind, endpoint+b.Path, b.Config, prefix, sync)), 0o644)
	w.MustRun("registry", "add", dir)
}
