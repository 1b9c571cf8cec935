package secrets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
)

// counting is a source that says whether it was asked.
type counting struct {
	Source
	asked *int
}

func (c counting) Fetch(ctx context.Context) (Secret, error) { *c.asked++; return c.Source.Fetch(ctx) }

var acme = mountspec.Address{Owner: "acme", Slug: "ops"}

type fixture struct {
	v     *Vault
	asked int
	log   string
}

func newFixture(t *testing.T, change func(*VaultOptions)) *fixture {
	t.Helper()
	f := &fixture{log: filepath.Join(t.TempDir(), "audit.log")}
	l, err := audit.Open(f.log, audit.Options{})
	assert.OK(t, err)
	t.Cleanup(func() { l.Close() })
	env := lookup(map[string]string{
		"ACME_KEY": "key-" + hidden, "ACME_SECRET": "sec-" + hidden, "AWS_ACCESS_KEY_ID": "host-" + hidden,
		"AWS_SECRET_ACCESS_KEY": "hostsec-" + hidden, "GITHUB_TOKEN": "gh-" + hidden, "DATABASE_URL": "db-" + hidden, "ACME_TOKEN": "tok-" + hidden,
	})
	src := func(fields map[string]string) Source { return counting{Env{Fields: fields, Lookup: env}, &f.asked} }
	o := VaultOptions{Lookup: env, Audit: l,
		AllowEnv: []EnvGrant{{Name: "ACME_TOKEN", Allow: []string{"@acme/*"}}},
		Entries: []Entry{
			{Slug: "org/acme/s3-rw", Source: src(map[string]string{"access_key_id": "ACME_KEY", "secret_access_key": "ACME_SECRET"})},
			{Slug: "org/evil/s3-rw", Source: src(map[string]string{Single: "ACME_KEY"})},
			{Slug: "shared-token", Source: src(map[string]string{Single: "ACME_KEY"}), Allow: []string{"@acme/ops"}},
			{Slug: "github-app-key", Source: src(map[string]string{Single: "ACME_KEY"})},
			{Slug: "bound-elsewhere", Source: Env{Name: "BOUND_ENV", Lookup: env}, Allow: []string{"@other/*"}},
		}}
	if change != nil {
		change(&o)
	}
	if f.v, err = NewVault(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func inv(entries ...mountspec.SecretEntry) *mountspec.Secrets {
	return &mountspec.Secrets{Entries: entries}
}

// Each row is somebody who asks for what is, or is not, theirs.
func TestGrants(t *testing.T) {
	bind := func(kind, value string) mountspec.Access {
		return mountspec.Access{Bind: []mountspec.AccessEntry{{Kind: kind, Value: value}}}
	}
	for _, c := range []struct {
		name   string
		vault  func(*VaultOptions)
		r      Request
		fields string // names of what is revealed, or empty: refused
		denied bool   // and written to the audit log
	}{
		{name: "own secret", r: Request{CredentialsRef: "org/acme/s3-rw"}, fields: "access_key_id secret_access_key"},
		{name: "secret of another owner", r: Request{CredentialsRef: "org/evil/s3-rw"}, denied: true},
		{name: "listed", r: Request{CredentialsRef: "shared-token"}, fields: "value"},
		{name: "listed for another workspace of the owner", r: Request{Workspace: mountspec.Address{Owner: "acme", Slug: "other"}, CredentialsRef: "shared-token"}, denied: true},
		{name: "the host's own key", r: Request{CredentialsRef: "github-app-key"}, denied: true},
		{name: "owner that begins alike", r: Request{Workspace: mountspec.Address{Owner: "acme-evil", Slug: "ops"}, CredentialsRef: "org/acme/s3-rw"}, denied: true},
		{name: "not kept", r: Request{CredentialsRef: "org/acme/none"}},
		{name: "path as a slug", r: Request{CredentialsRef: "../../etc/shadow"}},

		{name: "usual name", r: Request{Protocol: S3, Usual: "rule", Env: []string{"AWS_ACCESS_KEY_ID"}}, fields: "access_key_id"},
		{name: "usual name, the host's credentials of another owner", r: Request{Workspace: mountspec.Address{Owner: "evil", Slug: "x"}, Protocol: S3, Env: []string{"AWS_SECRET_ACCESS_KEY"}}, denied: true},
		{name: "usual name of another protocol", r: Request{Protocol: GitHub, Usual: "rule", Env: []string{"AWS_SECRET_ACCESS_KEY"}}, denied: true},
		{name: "any variable", r: Request{Protocol: S3, Usual: "rule", Env: []string{"DATABASE_URL"}}, denied: true},
		{name: "allow_env", r: Request{Env: []string{"ACME_TOKEN"}}, fields: "acme_token"},
		{name: "allow_env of another owner", r: Request{Workspace: mountspec.Address{Owner: "evil", Slug: "x"}, Env: []string{"ACME_TOKEN"}}, denied: true},
		{name: "a variable that is a secret of another", r: Request{Env: []string{"BOUND_ENV"}}, denied: true},
		{name: "a usual name that is the secret of another", vault: func(o *VaultOptions) {
			o.Entries = append(o.Entries, Entry{Slug: "org/other/s3", Source: Env{Name: "AWS_SECRET_ACCESS_KEY", Lookup: o.Lookup}})
		}, r: Request{Protocol: S3, Usual: "rule", Env: []string{"AWS_SECRET_ACCESS_KEY"}}, denied: true},
		{name: "no name at all", r: Request{Env: []string{"PATH=x; rm"}}, denied: true},
		{name: "slug made of the name", r: Request{Env: []string{"SHARED_TOKEN"}}, fields: "shared_token"},
		{name: "entry claims the name", r: Request{Env: []string{"MY_TOKEN"}, Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", BindEnv: []string{"MY_TOKEN"}})}, fields: "my_token"},
		{name: "entry claims a name for the secret of another", r: Request{Env: []string{"MY_TOKEN"}, Inventory: inv(mountspec.SecretEntry{Slug: "org/evil/s3-rw", BindEnv: []string{"MY_TOKEN"}})}, denied: true},
		{name: "exposure names a field", r: Request{Env: []string{"K"}, Inventory: inv(mountspec.SecretEntry{Slug: "org/acme/s3-rw",
			Exposures: []mountspec.Exposure{{Kind: "env", Params: map[string]any{"name": "K", "field": "access_key_id"}}}})}, fields: "k"},
		{name: "several fields and none named", r: Request{Env: []string{"K"}, Inventory: inv(mountspec.SecretEntry{Slug: "org/acme/s3-rw", BindEnv: []string{"K"}})}},

		{name: "unregistered", r: Request{CredentialsRef: "org/acme/s3-rw", Purpose: "unregistered"}, denied: true},
		{name: "unregistered, variable", r: Request{Protocol: S3, Usual: "rule", Env: []string{"AWS_ACCESS_KEY_ID"}, Purpose: "unregistered"}, denied: true},
		{name: "unregistered, named", r: Request{CredentialsRef: "org/acme/s3-rw", Named: []string{"org/acme/s3-rw"}, Purpose: "unregistered"}, fields: "access_key_id secret_access_key"},

		{name: "access: tool", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: bind("tool", "wsmount")})}, fields: "value"},
		{name: "access: user", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: bind("userId", "bob")})}, fields: "value"},
		{name: "access: another user", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: bind("userId", "eve")})}, denied: true},
		{name: "access: role", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: bind("role", "editor")})}, fields: "value"},
		{name: "access: unknown kind", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: bind("moon", "full")})}, denied: true},
		{name: "access: empty list is nobody", r: Request{CredentialsRef: "shared-token", Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", Access: mountspec.Access{Bind: []mountspec.AccessEntry{}}})}, denied: true},
		{name: "access: an inventory cannot grant what the host does not", r: Request{CredentialsRef: "org/evil/s3-rw", Inventory: inv(mountspec.SecretEntry{Slug: "org/evil/s3-rw", Access: bind("tool", "wsmount")})}, denied: true},

		{name: "two sources that agree", r: Request{CredentialsRef: "org/acme/s3-rw", Env: []string{"ACCESS_KEY_ID"},
			Inventory: inv(mountspec.SecretEntry{Slug: "shared-token", BindEnv: []string{"ACCESS_KEY_ID"}})}, fields: "access_key_id secret_access_key"},
		{name: "two sources that differ", r: Request{Protocol: S3, Usual: "rule", CredentialsRef: "org/acme/s3-rw", Env: []string{"AWS_ACCESS_KEY_ID"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.vault)
			r := c.r
			if r.Workspace == (mountspec.Address{}) {
				r.Workspace = acme
			}
			r.Registered = r.Purpose != "unregistered"
			r.Subject = Subject{UserID: "user://bob", Roles: []string{"editor"}}
			creds, planned, err := run(f, r)
			got := ""
			if err == nil {
				got = strings.Join(creds.Names(), " ")
			}
			assert.Must(t, got == c.fields, got, c.fields, err)
			var e *Error
			assert.False(t, err != nil && (!errors.As(err, &e) || e.Hint == "" || e.Denied != c.denied), c.denied, err)
			assert.False(t, planned != nil && f.asked != 0, "a refusal asked the source", f.asked)
			f.checkLog(t, c.fields != "", c.denied, err)
		})
	}
}

// run plans and reveals; planErr is set when the plan already refused.
func run(f *fixture, r Request) (*Credentials, error, error) {
	plan, err := f.v.Plan(r)
	if err != nil {
		return nil, err, err
	}
	c, err := plan.Reveal(context.Background())
	return c, nil, err
}

func (f *fixture) checkLog(t *testing.T, revealed, denied bool, err error) {
	t.Helper()
	b, rerr := os.ReadFile(f.log)
	assert.OK(t, rerr)
	log := string(b)
	assert.False(t, revealed && !strings.Contains(log, `"event":"secret.reveal"`), "no reveal in the audit log", log)
	assert.Equal(t, denied, strings.Contains(log, `"event":"secret.reveal.denied"`), "denied in the audit log:", log)
	if err != nil {
		log += err.Error()
	}
	assert.False(t, strings.Contains(log, hidden), "the audit log or the error shows a value:", log)
}

func TestDuplicateSlugsAreRefused(t *testing.T) {
	_, err := NewVault(VaultOptions{Entries: []Entry{{Slug: "a", Source: File{Path: "/x"}}, {Slug: "a", Source: File{Path: "/y"}}}})
	assert.True(t, err != nil, "two entries of one slug")
	a, b := inv(mountspec.SecretEntry{Slug: "a"}), inv(mountspec.SecretEntry{Slug: "b"})
	assert.Equal(t, len(assert.Of(Merge(a, b)).OK(t).Entries), 2, "Merge")
	assert.True(t, assert.ErrOf(Merge(a, b, a)) != nil, "two inventories with one slug")
}

// The log says what was obtained, and what was not and why.
func TestFailedRevealIsOnRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pw")
	assert.OK(t, os.WriteFile(path, []byte(hidden), 0o644))
	f := newFixture(t, func(o *VaultOptions) {
		o.Entries = append(o.Entries, Entry{Slug: "org/acme/open", Source: File{Path: path}})
	})
	plan := assert.Of(f.v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/acme/open"})).OK(t)
	_, planned := plan.Reveal(t.Context())
	_, own := f.v.Host(t.Context(), "org/acme/open", acme, "app")
	b, err := os.ReadFile(f.log)
	assert.Must(t, err == nil && planned != nil && own != nil, "revealed", planned, own, "log", err)
	log := string(b)
	assert.Equal(t, strings.Count(planned.Error(), path), 1, "not said once:", planned)
	if strings.Contains(log, `"event":"secret.reveal"`) || strings.Count(log, `"event":"secret.reveal.asked"`) != 2 || strings.Count(log, "can be read by others") != 2 {
		t.Errorf("audit log:\n%s", log)
	}
}

// No record, no reveal.
func TestRevealNeedsTheAuditLog(t *testing.T) {
	f := newFixture(t, nil)
	plan := assert.Of(f.v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/acme/s3-rw"})).OK(t)
	f.v.o.Audit.Close()
	_, err := plan.Reveal(context.Background())
	assert.True(t, err != nil && f.asked == 0, "and the source was asked", f.asked, err)
}

func TestPlanShowsNeedsAndFetchesNothing(t *testing.T) {
	f := newFixture(t, nil)
	plan := assert.Of(f.v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/acme/s3-rw", Env: []string{"ACME_TOKEN"}})).OK(t)
	n := plan.Needs()
	if len(n) != 2 || n[0].Name != "org/acme/s3-rw" || n[0].GrantedBy != "secrets: allow @acme/*" || n[1].Source != "environment ACME_TOKEN" || f.asked != 0 {
		t.Errorf("needs %+v, asked %d", n, f.asked)
	}
}

func TestAllRefusalsAtOnce(t *testing.T) {
	f := newFixture(t, nil)
	_, err := f.v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/evil/s3-rw", Env: []string{"DATABASE_URL"}})
	assert.True(t, err != nil && strings.Contains(err.Error(), "org/evil/s3-rw") && strings.Contains(err.Error(), "DATABASE_URL"), "got", err)
}

func TestHostUseNeedsNoGrant(t *testing.T) {
	f := newFixture(t, nil)
	s, err := f.v.Host(context.Background(), "github-app-key", acme, "app")
	v, ok := s.Field(Single)
	assert.True(t, err == nil && ok && v.Reveal() == "key-"+hidden, "the host cannot use its own secret", err)
	f.checkLog(t, true, false, nil)
	_, err = f.v.Host(context.Background(), "none", acme, "app")
	assert.True(t, err != nil && !f.v.Has("none"), "a secret that is not there")
	f.v.o.Audit.Close()
	_, err = f.v.Host(context.Background(), "github-app-key", acme, "app")
	assert.True(t, err != nil && f.asked == 1, "got", err, "without a record, asked", f.asked, "times")
}

func TestPlanIsKeptLive(t *testing.T) {
	f := newFixture(t, nil)
	plan := assert.Of(f.v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/acme/s3-rw"})).OK(t)
	live := plan.Live(LiveOptions{})
	for range 3 {
		s, err := live.Get(context.Background())
		v, _ := s.Field("secret_access_key")
		assert.True(t, err == nil && v.Reveal() == "sec-"+hidden, err)
	}
	assert.Equal(t, f.asked, 1, "times asked")
}

func TestCredentialsEndWithTheFirst(t *testing.T) {
	soon, late := time.Unix(100, 0), time.Unix(200, 0)
	c := &Credentials{fields: map[string]Value{}}
	for _, e := range []time.Time{{}, late, soon, late} {
		assert.OK(t, c.take(Need{}, NewSecret(nil, e), map[string]string{}))
	}
	assert.True(t, c.Expires().Equal(soon), c.Expires())
}

// Everything that is not there is told at once.
func TestAllThatIsMissingIsTold(t *testing.T) {
	none := lookup(nil)
	v, err := NewVault(VaultOptions{Lookup: none, AllowEnv: []EnvGrant{{Name: "TOKEN"}},
		Entries: []Entry{{Slug: "org/acme/key", Source: Env{Fields: map[string]string{"a": "KEY_A", "b": "KEY_B"}, Lookup: none}}}})
	assert.OK(t, err)
	plan, err := v.Plan(Request{Workspace: acme, Registered: true, CredentialsRef: "org/acme/key", Env: []string{"TOKEN"}})
	assert.OK(t, err)
	var told []string
	for _, e := range All(assert.ErrOf(plan.Reveal(t.Context()))) {
		told = append(told, e.Name+": "+e.Reason+"; "+e.Hint)
	}
	assert.Slice(t, told, []string{"org/acme/key: the environment variables KEY_A, KEY_B are not set; set KEY_A, KEY_B where wsmount is started",
		"TOKEN: the environment variable TOKEN is not set; set TOKEN where wsmount is started"})
}
