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
	// PutPacked is Put of what is stored packed (Content-Encoding: gzip).
	PutPacked(ctx context.Context, key string, content []byte) error
	// Replace is Put in the place of the object that has an ETag, or of none for "". It
	// reports false if there is another.
	Replace(ctx context.Context, key, etag string, content []byte) (bool, error)
	Delete(ctx context.Context, key string) error
	// Look reads an object. What is not there has no ETag.
	Look(ctx context.Context, key string) (s3server.Object, error)
	// ETags are those of the objects below a prefix but wsmount's own, by their keys without
	// it.
	ETags(ctx context.Context, prefix string) (map[string]string, error)
}

// Name is the bucket's, which its Config ends with.
func (b Bucket) Name() string {
	_, name, _ := strings.Cut(b.Config, "bucket: ")
	return name
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
		PutPacked(key, content string)
		Replace(key, etag, content string) bool
		Remove(key string)
		Get(key string) (content string, metadata map[string]string)
		ETags() map[string]string
	}
}

func (p inProcess) Put(_ context.Context, key string, content []byte, metadata map[string]string) error {
	p.server.Put(key, string(content), metadata)
	return nil
}

func (p inProcess) PutPacked(_ context.Context, key string, content []byte) error {
	p.server.PutPacked(key, string(content))
	return nil
}

func (p inProcess) Replace(_ context.Context, key, etag string, content []byte) (bool, error) {
	return p.server.Replace(key, etag, string(content)), nil
}

func (p inProcess) Delete(_ context.Context, key string) error {
	p.server.Remove(key)
	return nil
}

// Look looks again where another changes the object meanwhile: no ETag comes twice.
func (p inProcess) Look(ctx context.Context, key string) (s3server.Object, error) {
	etag := p.server.ETags()[key]
	content, metadata := p.server.Get(key)
	if p.server.ETags()[key] != etag {
		return p.Look(ctx, key)
	}
	return s3server.Object{Content: []byte(content), ETag: etag, Metadata: metadata}, nil
}

func (p inProcess) ETags(_ context.Context, prefix string) (map[string]string, error) {
	found := map[string]string{}
	for key, etag := range p.server.ETags() {
		if rest, ok := strings.CutPrefix(key, prefix); ok && !strings.HasPrefix(rest, ".wsmount/") {
			found[rest] = etag
		}
	}
	return found, nil
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
