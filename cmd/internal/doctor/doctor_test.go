package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/mountspec/host"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// fake is a machine made of files.
func fake(t *testing.T, files map[string]string) system {
	t.Helper()
	s := system{root: t.TempDir(), uid: 1000, release: "6.18.1", files: 1 << 20,
		helper:  func() (string, error) { return "", errors.New("fusermount3 is not installed") },
		hasName: func(uid string) bool { return uid == "1000" }}
	for name, text := range files {
		assert.OK(t, os.MkdirAll(filepath.Dir(s.root+name), 0o755))
		assert.OK(t, os.WriteFile(s.root+name, []byte(text), 0o644))
	}
	return s
}

// setUserID makes a program that runs as its owner.
func setUserID(t *testing.T) func() (string, error) {
	t.Helper()
	name := t.TempDir() + "/fm"
	assert.OK(t, os.WriteFile(name, nil, 0o755))
	assert.OK(t, os.Chmod(name, 0o755|os.ModeSetuid))
	return func() (string, error) { return name, nil }
}

func TestMachine(t *testing.T) {
	const watches, clone = "/proc/sys/fs/inotify/max_user_watches", "/proc/sys/kernel/unprivileged_userns_clone"
	const instances = "/proc/sys/fs/inotify/max_user_instances"
	tests := []struct {
		name   string
		files  map[string]string
		change func(*system)
		check  func(system) Check
		want   Level
		says   string
	}{
		{"device", map[string]string{"/dev/fuse": ""}, nil, system.device, OK, "opened"},
		{"no device", nil, nil, system.device, Problem, "not there"},
		{"no helper", nil, nil, system.fusermount, Problem, "not installed"},
		{"root needs no helper", nil, func(s *system) { s.uid = 0 }, system.fusermount, OK, "without"},
		{"helper without the bit", map[string]string{"/fm": ""}, func(s *system) {
			root := s.root
			s.helper = func() (string, error) { return root + "/fm", nil }
		}, system.fusermount, Problem, "set-user-id"},
		{"helper", nil, func(s *system) { s.helper = setUserID(t) }, system.fusermount, OK, "fm"},
		{"a user without a name", nil, func(s *system) { s.uid, s.helper = 1001, setUserID(t) }, system.fusermount, Problem, "1001 has no name"},
		{"kernel", nil, nil, system.kernel, OK, "6.18.1"},
		{"old kernel", nil, func(s *system) { s.release = "4.19.0-26" }, system.kernel, Note, "older"},
		{"passthrough as user", nil, nil, system.passthrough, Note, "needs root"},
		{"passthrough as root", nil, func(s *system) { s.uid = 0 }, system.passthrough, OK, "itself"},
		{"passthrough on 6.8", nil, func(s *system) { s.uid, s.release = 0, "6.8.0" }, system.passthrough, Note, "none"},
		{"allow_other", map[string]string{"/etc/fuse.conf": "# x\n user_allow_other \n"}, nil, system.allowOther, OK, "fuse.conf"},
		{"allow_other commented out", map[string]string{"/etc/fuse.conf": "#user_allow_other\n"}, nil, system.allowOther, Note, "not allowed"},
		{"allow_other as root", nil, func(s *system) { s.uid = 0 }, system.allowOther, OK, "root"},
		{"few files", nil, func(s *system) { s.files = 1024 }, system.openFiles, Note, "1024"},
		{"many files", nil, nil, system.openFiles, OK, "1048576"},
		{"watches", map[string]string{watches: "524288\n"}, nil, system.watches, OK, "524288"},
		{"few watches", map[string]string{watches: "8192\n"}, nil, system.watches, Note, "8192"},
		{"no inotify", nil, nil, system.watches, Note, "not there"},
		{"instances", map[string]string{instances: "128\n"}, nil, system.instances, OK, "128"},
		{"few instances", map[string]string{instances: "16\n"}, nil, system.instances, Note, "16"},
		{"no instances", nil, nil, system.instances, Note, "not there"},
		{"namespaces", map[string]string{"/proc/sys/user/max_user_namespaces": "100\n"}, nil, system.namespaces, OK, "available"},
		{"no namespaces", map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, nil, system.namespaces, Note, "off"},
		{"restricted namespaces", map[string]string{"/proc/sys/user/max_user_namespaces": "9\n", clone: "0\n"}, nil, system.namespaces, Note, clone},
	}
	for _, tt := range tests {
		s := fake(t, tt.files)
		if tt.change != nil {
			tt.change(&s)
		}
		got := tt.check(s)
		assert.True(t, got.Level == tt.want && strings.Contains(got.Says, tt.says), tt.name, "got", got, "want", tt.want, "with", tt.says)
		assert.False(t, got.Level != OK && got.Do == "", tt.name, "does not say what to do")
	}
}

func TestThisMachine(t *testing.T) {
	for _, c := range Machine() {
		assert.True(t, c.Name != "" && c.Says != "" && (c.Level == OK || c.Do != ""), "incomplete:", c)
	}
}

func TestState(t *testing.T) {
	open := t.TempDir()
	assert.OK(t, os.Chmod(open, 0o777))
	tests := []struct {
		name string
		root string
		err  error
		want Level
	}{
		{"not there yet", filepath.Join(t.TempDir(), "a", "b"), nil, OK},
		{"others may write", open, nil, Problem},
		{"memory only", "/dev/shm/wsmount-none", nil, Note},
		{"no place", "", exit.New(exit.Usage, "HOME is not set").Hint("give --state-dir"), Problem},
	}
	for _, tt := range tests {
		got := State(tt.root, tt.err)[0]
		assert.True(t, got.Level == tt.want && (got.Level == OK || got.Do != ""), tt.name, "got", got, "want", tt.want)
	}
	_, err := os.Stat(tests[0].root)
	assert.True(t, os.IsNotExist(err), "the state directory was made")
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(dir+"/x", nil, 0o600))
	tree := &daemon.Tree{Name: "@acme/a", Mountpoint: dir, Explain: []host.Step{{Subject: "mode", Result: "watch", Default: true}},
		Sources: []daemon.Source{{Name: "@acme/a", Path: dir, ReadOnly: "flag (--read-only)", Unverified: true},
			{At: "gone", Unavailable: "no such workspace", Optional: true}, {At: "new", Path: dir + "/none"}}}
	all := Workspace(tree, nil)
	var text []string
	for _, c := range all {
		text = append(text, string(c.Level)+" "+c.Says)
		assert.True(t, c.Level != Problem && (c.Level != Note || c.Do != ""), "got", c)
	}
	for _, want := range []string{"ok mode: watch (default)", "note read-only: flag", "note unverified", "note optional, and not there: no such workspace",
		"does not exist yet", "MiB free", "note " + dir + " is not empty"} {
		assert.Contains(t, strings.Join(text, "\n"), want)
	}
	failed := Workspace(nil, exit.New(exit.Denied, "not granted").Hint("grant it"))
	assert.Equal(t, Worst(append(all, failed...)), exit.Denied, "worst")
	assert.Equal(t, Worst(all), exit.Done, "notes are no failure")
}

// Of a host configuration everything is said that is wrong.
func TestConfiguration(t *testing.T) {
	_, found := host.ParseConfig([]byte("allow_path: [ /srv ]\nprincipal: bob\n"), host.ParseOptions{Name: "/c.yaml"})
	checks := Configuration(nil, &exit.Error{Code: exit.Manifest, What: "the first", Err: found.Err()})
	assert.Equal(t, len(checks), 2, checks)
	for i, want := range []Check{{Says: "/c.yaml:1:1: error: unknown key \"allow_path\"", Do: "did you mean allow_paths?"}, {Says: "/c.yaml:2:12: error: principal:", Do: "write who it is"}} {
		c := checks[i]
		assert.True(t, strings.HasPrefix(c.Says, want.Says) && strings.HasPrefix(c.Do, want.Do) && !strings.Contains(c.Says, c.Do) && c.Level == Problem && c.Code == exit.Manifest, c)
	}
	assert.Equal(t, Configuration(nil, exit.New(exit.Denied, "written by others"))[0].Says, "written by others")
	assert.Equal(t, Configuration(&host.Config{Path: "/c.yaml"}, nil)[0].Level, OK)
}

// What is told with a refusal has a line, and what to do about it, of its own.
func TestDetails(t *testing.T) {
	var got []string
	for _, c := range Workspace(nil, &exit.Error{Code: exit.Denied, What: "no credentials", Advice: "grant them", Details: []string{"secret A: not set; set A", "skipped x"}}) {
		got = append(got, string(c.Level)+" "+c.Says+" | "+c.Do)
	}
	assert.Slice(t, got, []string{"note secret A: not set | set A", "note skipped x | correct it, if it is the one that is meant", "problem no credentials | grant them"})
}
