package host

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// secretValue is what no error, log or record may show.
const secretValue = "hunter2-7Qx"

// A world is a machine in a directory: a home, a configuration, workspaces.
type world struct {
	t      *testing.T
	dir    string // real, private
	home   string
	env    map[string]string
	config string // text of the configuration
	places string // Options.Places
	audit  *audit.Log
	now    time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()                                 // most of the time goes into waiting for the disk
	tmp, err := os.MkdirTemp("", "wsmount-host") // a plain name: it is written into YAML
	assert.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	dir := assert.Of(filepath.EvalSymlinks(tmp)).OK(t)
	w := &world{t: t, dir: dir, home: dir + "/home", now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		env: map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": secretValue, "ACME_KEY": "AK", "ACME_SECRET": secretValue, "ACME_TOKEN": secretValue}}
	w.mkdir("home/.config/wsmount")
	w.audit, err = audit.Open(dir+"/audit.log", audit.Options{})
	assert.OK(t, err)
	t.Cleanup(func() {
		w.audit.Close()
		assert.False(t, strings.Contains(w.log(), secretValue), "the audit log holds a secret")
	})
	return w
}

func (w *world) log() string {
	b := assert.Of(os.ReadFile(w.dir + "/audit.log")).OK(w.t)
	return string(b)
}

func (w *world) path(rel string) string { return filepath.Join(w.dir, rel) }

func (w *world) mkdir(rel string) string {
	w.t.Helper()
	assert.OK(w.t, os.MkdirAll(w.path(rel), 0o700))
	return w.path(rel)
}

func (w *world) write(rel, text string) string {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	assert.OK(w.t, os.WriteFile(w.path(rel), []byte(text), 0o600))
	return w.path(rel)
}

// manifest writes a WORKSPACE.md; storage is the block's YAML, on one line,
// more is further frontmatter.
func (w *world) manifest(rel, id, storage string, more ...string) string {
	w.t.Helper()
	owner, _, _ := strings.Cut(strings.TrimPrefix(id, "@"), "/")
	text := "---\nschema: workspace/v1\nid: \"" + id + "\"\nversion: 1.0.0\nname: A test\nowner: { type: org, id: ID-" + owner + ", slug: " + owner +
		" }\nstorage: " + storage + "\n" + strings.Join(append(more, ""), "\n") + "---\n"
	return w.write(rel+"/WORKSPACE.md", text)
}

const (
	here    = `{ inline: { provider: local-fs, config: { mount_path: ./data } } }`
	scratch = `{ inline: { provider: dev-local, config: {} } }`
)

func at(path string) string {
	return `{ inline: { provider: local-fs, config: { mount_path: "` + path + `" } } }`
}

func s3(endpoint, bucket, prefix, more string) string {
	return `{ inline: { provider: self-bucket, config: { kind: s3, endpoint: "` + endpoint + `", region: eu-west-1, bucket: ` + bucket + `, prefix: "` + prefix + `"` + more + ` } } }`
}

// workspace makes a local workspace with its data directory.
func (w *world) workspace(rel, id string, more ...string) string {
	w.t.Helper()
	w.mkdir(rel + "/data")
	return w.manifest(rel, id, here, more...)
}

func (w *world) lookup(n string) (string, bool) { v, ok := w.env[n]; return v, ok }

func (w *world) resolver() *Resolver {
	w.t.Helper()
	return assert.Of(w.tryResolver()).OK(w.t)
}

func (w *world) tryResolver() (*Resolver, error) {
	w.t.Helper()
	c, findings := ParseConfig([]byte(w.config), ParseOptions{Name: w.home + "/.config/wsmount/config.yaml", Home: w.home, Lookup: w.lookup})
	assert.OK(w.t, findings.Err())
	return NewResolver(Options{Config: c, Places: w.places, Home: w.home, Temp: w.mkdir("tmp"), Lookup: w.lookup, Audit: w.audit, Now: func() time.Time { return w.now }})
}

func (w *world) add(rel string) {
	w.t.Helper()
	assert.OK(w.t, assert.ErrOf(w.resolver().Add(context.Background(), w.path(rel), AddOptions{})))
}

func (w *world) resolve(target string, o ResolveOptions) (*Resolved, error) {
	w.t.Helper()
	if !strings.HasPrefix(target, "@") {
		target = w.path(target)
	}
	got, err := w.resolver().Resolve(context.Background(), target, o)
	assert.False(w.t, err != nil && (got == nil) != (err != nil), "both a result and", err)
	return got, err
}

func (w *world) ok(target string, o ResolveOptions) *Resolved {
	w.t.Helper()
	return assert.Of(w.resolve(target, o)).OK(w.t)
}

// refused checks that a target is refused with a class and with words.
func (w *world) refused(target string, o ResolveOptions, class Class, words ...string) *Error {
	w.t.Helper()
	_, err := w.resolve(target, o)
	return checkError(w.t, err, class, words...)
}

func checkError(t *testing.T, err error, class Class, words ...string) *Error {
	t.Helper()
	var e *Error
	assert.Must(t, errors.As(err, &e), "want an *Error", err)
	assert.True(t, e.Class == class && e.Hint != "", "class", e.Class, "hint", e.Hint, "of", e, class, "and a hint")
	for _, w := range words {
		assert.Contains(t, err.Error(), w, err, "does not say")
	}
	assert.False(t, strings.Contains(err.Error()+e.Hint, secretValue), "the error shows a secret:", err)
	return e
}

var acmeOps = mountspec.Address{Owner: "acme", Slug: "ops"}

func (w *world) symlink(target, rel string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	assert.OK(w.t, os.Symlink(target, w.path(rel)))
}

// row makes the configuration one with an entry of @acme/row; DIR is the world's.
func (w *world) row(entry string) {
	w.config = "workspaces: { \"@acme/row\": { " + strings.ReplaceAll(entry, "DIR", w.dir) + " } }\n"
}

// explained are the steps that led to it, a line each.
func explained(r *Resolved) (text string) {
	for _, s := range r.Explain {
		text += s.String() + "\n"
	}
	return text
}

// checkReach checks which URLs a workspace may reach.
func checkReach(t *testing.T, r *Resolved, reached map[string]bool) {
	t.Helper()
	guard := assert.Of(netguard.New(netguard.Options{Allow: r.Grants.Endpoints})).OK(t)
	for to, want := range reached {
		u := assert.Of(url.Parse(to)).OK(t)
		assert.Equal(t, guard.Check(u) == nil, want, to, "is reached, with", r.Grants.Endpoints)
	}
}
