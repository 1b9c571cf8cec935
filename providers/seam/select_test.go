package seam_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// machine is a home, a vault that is there, and a registry with counters of what was opened.
type machine struct {
	home, vault                string
	registry                   seam.Registry
	deviceLocal, vaults, other int
	given                      seam.Settings // what the vault's class was given
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	home := t.TempDir()
	m := &machine{home: home, vault: filepath.Join(home, "vault")}
	assert.OK(t, os.Mkdir(m.vault, 0o700))
	vault := opens(&m.vaults, seam.Capabilities{Sync: true, ConflictFiles: true})
	vault.Dir = func(s seam.Settings) string { return s.Vault }
	vault.Look = func(_ context.Context, s seam.Settings) providers.Finding {
		m.given = s
		return providers.Finding{Says: "a vault"}
	}
	assert.OK(t, m.registry.Register(seam.DeviceLocal, opens(&m.deviceLocal, seam.Capabilities{})))
	assert.OK(t, m.registry.Register(seam.Vault, vault))
	diary := opens(&m.other, seam.Capabilities{})
	diary.Dir = func(s seam.Settings) string { return filepath.Join(s.Home, "diary") }
	assert.OK(t, m.registry.Register("diary", diary))
	assert.OK(t, m.registry.Register("other", opens(&m.other, seam.Capabilities{Encryption: true})))
	return m
}

// settings are those of a configuration, or of none for "".
func (m *machine) settings(config, vault string) seam.Settings {
	s := seam.Settings{Home: m.home, Vault: vault, Config: seam.Config{Name: "agentm.json", Text: []byte(config)},
		Personal: func() ([]seam.Space, error) {
			return []seam.Space{{Dir: m.home, Memory: filepath.Join(m.home, "vault")}, {Dir: filepath.Join(m.home, "nowhere")}}, nil
		}}
	if config == "" {
		s.Config.Text, s.Config.Err = nil, fs.ErrNotExist
	}
	return s
}

// silent is Settings.Answers of a machine where a directory of its home hangs.
func (m *machine) silent(place, dir string) error {
	if dir = filepath.Join(m.home, dir); strings.HasPrefix(place, dir+"/") {
		return fmt.Errorf("%s hangs", dir)
	}
	return nil
}

// TestSelect is the order of the three steps.
func TestSelect(t *testing.T) {
	for _, c := range []struct {
		name, config, vault string
		want, origin        string
	}{
		{"a new machine", "", "", "device-local", "nothing else is configured"},
		{"a configuration about other things", `{"vault_path": "HOME/vault", "state_mode": "vault"}`, "", "device-local", "nothing else is configured"},
		{"the environment", "", "HOME/vault", "vault", "$MEMORY_VAULT_PATH"},
		{"the configuration goes first", `{"storage.backend": "other"}`, "HOME/vault", "other", "storage.backend in agentm.json"},
		{"a name with spaces around", `{"storage.backend": " device-local\n"}`, "HOME/vault", "device-local", "storage.backend in agentm.json"},
		{"an object", `{"storage": {"backend": "other"}}`, "", "other", "storage.backend in agentm.json"},
		{"a vault of the configuration", `{"storage.backend": "vault", "vault_path": "~/vault"}`, "", "vault", "storage.backend in agentm.json"},
		{"a vault of this session", `{"storage.backend": "vault", "vault_path": "HOME/nowhere"}`, "HOME/vault", "vault", "storage.backend in agentm.json"},
	} {
		m := newMachine(t)
		s := m.settings(strings.ReplaceAll(c.config, "HOME", m.home), strings.ReplaceAll(c.vault, "HOME", m.home))
		p := m.registry.Preview(t.Context(), s, seam.Capabilities{})
		assert.Equal(t, p.Protocol, c.want, c.name)
		assert.Equal(t, p.Grade, providers.Good, c.name, p.Text)
		assert.Contains(t, p.Text, `memory lies in "`+c.want+`" (`+c.origin+`)`, c.name)
		assert.Equal(t, m.deviceLocal+m.vaults+m.other, 0, c.name, "opened by the preview")
		b := assert.Of(m.registry.Select(t.Context(), s, seam.Capabilities{})).OK(t, c.name)
		opened := map[string]int{"device-local": m.deviceLocal, "vault": m.vaults, "other": m.other}
		assert.Equal(t, opened[c.want], 1, c.name)
		assert.Equal(t, m.deviceLocal+m.vaults+m.other, 1, c.name, "opened")
		assert.OK(t, b.Close())
		if c.want == "vault" {
			assert.Equal(t, m.given.Vault, m.vault, c.name)
		}
	}
}

// refusals are settings that Select refuses, with what the refusal names: what is missing
// and what there is instead.
var refusals = []struct {
	name, config, vault string
	required            seam.Capabilities
	reason              seam.Reason
	kind                error
	says                []string
}{
	{"not registered", `{"storage.backend": "redis"}`, "", seam.Capabilities{}, seam.NotRegistered, providers.ErrUnknown,
		[]string{`"redis"`, "storage.backend in agentm.json", "device-local, diary, other, vault"}},
	{"not registered, with a vault at hand", `{"storage.backend": "redis"}`, "HOME/vault", seam.Capabilities{}, seam.NotRegistered, providers.ErrUnknown, []string{`"redis"`}},
	{"no vault_path", `{"storage.backend": "vault"}`, "", seam.Capabilities{}, seam.NoVaultPath, providers.ErrInvalid, []string{`"vault"`, "vault_path"}},
	{"vault_path is no string", `{"storage.backend": "vault", "vault_path": ["hunter2"]}`, "", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid, []string{"vault_path", "a list"}},
	{"vault not there", `{"storage.backend": "vault", "vault_path": "HOME/nowhere"}`, "", seam.Capabilities{}, seam.VaultAbsent, providers.ErrUnavailable,
		[]string{"HOME/nowhere", "vault_path"}},
	{"vault of the session not there", "", "HOME/nowhere", seam.Capabilities{}, seam.VaultAbsent, providers.ErrUnavailable, []string{"HOME/nowhere", "$MEMORY_VAULT_PATH"}},
	{"vault is a file", "", "HOME/file", seam.Capabilities{}, seam.VaultAbsent, providers.ErrNotDir, []string{"HOME/file"}},
	{"vault that nothing is heard of", "", "HOME/silent/vault", seam.Capabilities{}, seam.Silent, providers.ErrUnavailable, []string{"HOME/silent/vault does not answer: HOME/silent hangs"}},
	{"vault with the operator's space in it", "", "HOME", seam.Capabilities{}, seam.PersonalSpace, providers.ErrPermission, []string{"HOME", "allow_personal"}},
	{"vault that is another part of the operator's space", "", "HOME/diary", seam.Capabilities{}, seam.PersonalSpace, providers.ErrPermission, []string{"HOME/diary", "HOME/vault alone", "allow_personal"}},
	{"vault that a link has lead there", `{"storage.backend": "vault", "vault_path": "~/vault/out"}`, "", seam.Capabilities{}, seam.PersonalSpace, providers.ErrPermission, []string{"allow_personal"}},
	{"vault that is there by another way", "", "HOME/vault/../diary/.", seam.Capabilities{}, seam.PersonalSpace, providers.ErrPermission, []string{"allow_personal"}},
	{"vault with what rules the machine in it", "", "HOME/vault/rules", seam.Capabilities{}, seam.HostPlace, providers.ErrPermission, []string{"HOME/vault/rules has in it HOME/vault/rules/wsmount/config.yaml, which this machine is ruled by"}},
	{"vault that is a directory of state", "", "HOME/vault/state", seam.Capabilities{}, seam.HostPlace, providers.ErrPermission, []string{"HOME/vault/state is HOME/vault/state"}},
	{"vault in a directory of state", "", "HOME/vault/state/acme", seam.Capabilities{}, seam.HostPlace, providers.ErrPermission, []string{"HOME/vault/state/acme lies in HOME/vault/state"}},
	{"vault with the configuration in it", "", "HOME/vault/claude", seam.Capabilities{}, seam.HostPlace, providers.ErrPermission, []string{"HOME/vault/claude/.agentm-config.json"}},
	{"what always has its files there", `{"storage.backend": "diary"}`, "HOME/vault", seam.Capabilities{}, seam.PersonalSpace, providers.ErrPermission, []string{`"diary"`, "HOME/diary", "HOME/vault alone"}},
	{"vault from somewhere", "", "vault", seam.Capabilities{}, seam.VaultAbsent, providers.ErrInvalid, []string{`"vault"`, "$MEMORY_VAULT_PATH is no absolute path"}},
	{"vault at a service", `{"storage.backend": "vault", "vault_path": "https://ann:hunter2@dav.test/"}`, "", seam.Capabilities{}, seam.VaultAbsent, providers.ErrUnavailable, []string{"vault_path is no absolute path"}},
	{"a backend that is no name", `{"storage.backend": "https://ann:hunter2@dav.test/"}`, "", seam.Capabilities{}, seam.NotRegistered, providers.ErrUnknown, []string{"what is no name", "storage.backend"}},
	{"no JSON", `{"storage.backend": "vault"`, "HOME/vault", seam.Capabilities{}, seam.ConfigCorrupt, providers.ErrInvalid, []string{"agentm.json", "JSON"}},
	{"nothing", " ", "", seam.Capabilities{}, seam.ConfigCorrupt, providers.ErrInvalid, []string{"agentm.json"}},
	{"no object", `["vault"]`, "", seam.Capabilities{}, seam.ConfigCorrupt, providers.ErrInvalid, []string{"agentm.json", "object"}},
	{"null", `null`, "", seam.Capabilities{}, seam.ConfigCorrupt, providers.ErrInvalid, []string{"agentm.json", "object"}},
	{"a number", `{"storage.backend": 7}`, "", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid, []string{"storage.backend", "a number"}},
	{"an absent name", `{"storage.backend": null}`, "", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid, []string{"storage.backend", "null"}},
	{"an empty name", `{"storage.backend": " "}`, "HOME/vault", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid, []string{"storage.backend"}},
	{"a storage that is no object", `{"storage": "hunter2"}`, "", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid, []string{"storage", "a string"}},
	{"two names", `{"storage.backend": "vault", "storage": {"backend": "hunter2"}}`, "", seam.Capabilities{}, seam.ConfigNoString, providers.ErrInvalid,
		[]string{"storage.backend", "twice"}},
	{"promises that are missing", `{"storage.backend": "other"}`, "", seam.Capabilities{Sync: true, Encryption: true, ConcurrentWriters: true},
		seam.CapabilityMismatch, providers.ErrUnsupported, []string{`"other"`, "concurrent_writers, sync", "encryption"}},
	{"promises of the default", "", "", seam.Capabilities{Sync: true}, seam.CapabilityMismatch, providers.ErrUnsupported, []string{"device-local", "sync", "none"}},
}

// Each is a SelectionError of its own kind, nothing is opened in its place, and the preview says
// the same byte for byte.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		m := newMachine(t)
		assert.OK(t, os.WriteFile(filepath.Join(m.home, "file"), nil, 0o600))
		assert.OK(t, os.Mkdir(filepath.Join(m.home, "diary"), 0o700))
		assert.OK(t, os.Symlink("../diary", filepath.Join(m.vault, "out")))
		for _, dir := range []string{"rules", "state/acme", "claude"} {
			assert.OK(t, os.MkdirAll(filepath.Join(m.vault, dir), 0o700))
		}
		here := strings.NewReplacer("HOME", m.home)
		s := m.settings(here.Replace(c.config), here.Replace(c.vault))
		s.Config.Believed = []string{filepath.Join(m.vault, "claude", ".agentm-config.json")}
		s.Answers = func(place string) error { return m.silent(place, "silent") }
		s.Host = func() ([]string, error) {
			return []string{filepath.Join(m.vault, "rules/wsmount/config.yaml"), filepath.Join(m.vault, "state")}, nil
		}
		b, err := m.registry.Select(t.Context(), s, c.required)
		var refusal *seam.SelectionError
		if b != nil || !errors.As(err, &refusal) || refusal.Reason != c.reason || !errors.Is(err, c.kind) || refusal.Do == "" {
			t.Errorf("%s: backend %v, error %#v", c.name, b, err)
			continue
		}
		for _, part := range c.says {
			assert.Contains(t, err.Error(), here.Replace(part), c.name)
		}
		assert.False(t, strings.Contains(err.Error(), "hunter2"), c.name, "tells a secret:", err)
		assert.Equal(t, m.deviceLocal+m.vaults+m.other, 0, c.name, "opened")
		p := m.registry.Preview(t.Context(), s, c.required)
		assert.Equal(t, p.Text, err.Error(), c.name)
		assert.Equal(t, p.Grade, providers.Bad, c.name)
		assert.Equal(t, p.Do, refusal.Do, c.name)
		assert.Equal(t, p.Protocol, refusal.Protocol, c.name)
		assert.False(t, exists(filepath.Join(m.home, "nowhere")), c.name, "a vault was made")
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// TestMissingPromises are all named, to a program too.
func TestMissingPromises(t *testing.T) {
	m := newMachine(t)
	s := m.settings("", m.vault)
	_, err := m.registry.Select(t.Context(), s, seam.Capabilities{Sync: true, Encryption: true, ConcurrentWriters: true})
	var mismatch *seam.CapabilityMismatchError
	assert.Must(t, errors.As(err, &mismatch), err)
	assert.Slice(t, mismatch.Missing, []string{"concurrent_writers", "encryption"})
	b := assert.Of(m.registry.Select(t.Context(), s, seam.Capabilities{Sync: true, ConflictFiles: true})).OK(t)
	assert.OK(t, b.Close())
}

// What the class finds out keeps the backend from being opened.
func TestUnusable(t *testing.T) {
	m := newMachine(t)
	class := *m.registry.Get(seam.DeviceLocal)
	class.Look = func(context.Context, seam.Settings) providers.Finding {
		return providers.Finding{Grade: providers.Bad, Says: "no disk", Do: "buy one"}
	}
	assert.OK(t, m.registry.Clobber(seam.DeviceLocal, class))
	s := m.settings("", "")
	_, err := m.registry.Select(t.Context(), s, seam.Capabilities{})
	var refusal *seam.SelectionError
	assert.True(t, errors.As(err, &refusal) && refusal.Reason == seam.Unusable && refusal.Do == "buy one" && m.deviceLocal == 0, "select:", err)
	assert.Contains(t, err.Error(), "no disk")
	assert.Equal(t, m.registry.Preview(t.Context(), s, seam.Capabilities{}).Text, err.Error())
}

// A backend that promises less than its class is closed again.
func TestPromisesAreKept(t *testing.T) {
	m := newMachine(t)
	b := &keeps{Store: seam.New(memory.New(memory.Options{}))}
	class := seam.Class{Promises: seam.Capabilities{Sync: true}, Open: func(context.Context, seam.Settings) (seam.Backend, error) { return b, nil }}
	assert.OK(t, m.registry.Clobber(seam.DeviceLocal, class))
	_, err := m.registry.Select(t.Context(), m.settings("", ""), seam.Capabilities{Sync: true})
	var mismatch *seam.CapabilityMismatchError
	assert.True(t, errors.As(err, &mismatch) && b.closed, "select:", err)
}

// That is no refusal, and keeps its cause.
func TestOpenFails(t *testing.T) {
	m := newMachine(t)
	class := seam.Class{Open: func(context.Context, seam.Settings) (seam.Backend, error) { return nil, providers.ErrQuota }}
	assert.OK(t, m.registry.Clobber(seam.DeviceLocal, class))
	b, err := m.registry.Select(t.Context(), m.settings("", ""), seam.Capabilities{})
	assert.True(t, b == nil && errors.Is(err, providers.ErrQuota) && !errors.As(err, new(*seam.SelectionError)), "select:", err)
}

// The environment says where the configuration is.
func TestReadSettings(t *testing.T) {
	home, prefix := t.TempDir(), t.TempDir()
	env := map[string]string{"HOME": home}
	getenv := func(key string) string { return env[key] }
	s := seam.ReadSettings(getenv, nil)
	assert.Equal(t, s.Home, home)
	assert.Is(t, s.Config.Err, fs.ErrNotExist, "no configuration")
	assert.OK(t, os.Mkdir(filepath.Join(home, ".claude"), 0o700))
	assert.OK(t, os.WriteFile(filepath.Join(home, ".claude", ".agentm-config.json"), []byte("{}"), 0o600))
	s = seam.ReadSettings(getenv, nil)
	assert.OK(t, s.Config.Err)
	assert.Equal(t, string(s.Config.Text), "{}")
	env["AGENTM_INSTALL_PREFIX"], env["MEMORY_VAULT_PATH"] = prefix, "/vault"
	s = seam.ReadSettings(getenv, nil)
	assert.Equal(t, s.Vault, "/vault")
	assert.Is(t, s.Config.Err, fs.ErrNotExist, "another configuration")
	assert.Slice(t, s.Config.Believed, []string{filepath.Join(prefix, ".agentm-config.json"), filepath.Join(home, ".claude", ".agentm-config.json")})

	// One that is there and cannot be read is no absence, nor is one that is to be where nothing is.
	assert.OK(t, os.Mkdir(filepath.Join(prefix, ".agentm-config.json"), 0o700))
	away := filepath.Join(prefix, "away")
	for _, at := range []string{"link/.agentm-config.json", "leads/.claude", "leads/home/.claude"} {
		assert.OK(t, os.MkdirAll(filepath.Join(prefix, filepath.Dir(at)), 0o700))
		assert.OK(t, os.Symlink(away, filepath.Join(prefix, at)))
	}
	m := newMachine(t)
	for _, c := range []struct{ home, prefix, says string }{
		{"", "", "is a directory"}, {"", "link", "is a symbolic link"}, {"", "leads/.claude", "is a symbolic link"},
		{"", "away", "$AGENTM_INSTALL_PREFIX is not there"}, {"leads/home", "none", "leads/home/.claude is a symbolic link"},
	} {
		env["HOME"], env["AGENTM_INSTALL_PREFIX"], env["MEMORY_VAULT_PATH"] = filepath.Join(prefix, c.home), filepath.Join(prefix, c.prefix), ""
		if c.prefix == "none" {
			env["AGENTM_INSTALL_PREFIX"] = ""
		}
		_, err := m.registry.Select(t.Context(), seam.ReadSettings(getenv, nil), seam.Capabilities{})
		var refusal *seam.SelectionError
		if !errors.As(err, &refusal) || refusal.Reason != seam.ConfigCorrupt || m.deviceLocal > 0 {
			t.Fatal("select:", err)
		}
		assert.Contains(t, err.Error(), prefix)
		assert.Contains(t, err.Error(), c.says)
		assert.Equal(t, m.registry.Preview(t.Context(), seam.ReadSettings(getenv, nil), seam.Capabilities{}).Text, err.Error())
	}
	env["HOME"] = home
	_, err := m.registry.Select(t.Context(), seam.ReadSettings(getenv, func(place string) error { return (&machine{home: home}).silent(place, ".claude") }), seam.Capabilities{})
	var refusal *seam.SelectionError
	assert.True(t, errors.As(err, &refusal) && refusal.Reason == seam.Silent, "select:", err)
	assert.Contains(t, err.Error(), filepath.Join(home, ".claude", ".agentm-config.json")+" cannot be read: "+filepath.Join(home, ".claude")+" hangs")
	env = nil
	assert.Is(t, seam.ReadSettings(getenv, nil).Config.Err, fs.ErrNotExist, "no home")
}
