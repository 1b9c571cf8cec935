package sandbox

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// What would show more than it should is refused, with what to do.
func TestCheck(t *testing.T) {
	dir := assert.Of(os.Open(t.TempDir())).OK(t)
	defer dir.Close()
	at := func(paths ...string) (mounts []Mount) {
		for _, p := range paths {
			mounts = append(mounts, Mount{At: p})
		}
		return mounts
	}
	for _, tt := range []struct {
		name  string
		spec  Spec
		check func(*Spec) error
		code  exit.Code
		says  string
	}{
		{"side by side", Spec{Mounts: at("/workspace", "/workspace2", "/tmp/x")}, (*Spec).checkPlaces, exit.Done, ""},
		{"over the root", Spec{Mounts: at("/")}, (*Spec).checkPlaces, exit.Manifest, "the system's"},
		{"in the system", Spec{Mounts: at("/lib64/x")}, (*Spec).checkPlaces, exit.Manifest, "the system's"},
		{"in another", Spec{Mounts: at("/a/b", "/a")}, (*Spec).checkPlaces, exit.Manifest, "lie in each other"},
		{"one place twice", Spec{Mounts: at("/a", "/a")}, (*Spec).checkPlaces, exit.Manifest, "lie in each other"},
		{"a state directory elsewhere", Spec{Hidden: []string{"/var/lib/wsmount", ""}}, (*Spec).checkHidden, exit.Done, ""},
		{"a state directory among the programs", Spec{Hidden: []string{"/usr/local/state"}}, (*Spec).checkHidden, exit.Denied, "/usr/local/state lies in /usr, which every sandbox shows"},
		{"another processor", Spec{}, func(*Spec) error { return supports("riscv64") }, exit.Failed, "sandboxes are not made for riscv64 yet"},
		{"a file", Spec{Stdin: os.Stdin}, (*Spec).checkFiles, exit.Done, ""},
		{"a directory", Spec{Stdin: dir}, (*Spec).checkFiles, exit.Usage, ""},
	} {
		e := exit.From(tt.check(&tt.spec))
		if tt.code == exit.Done {
			assert.True(t, e == nil, tt.name, e)
			continue
		}
		assert.True(t, e != nil && e.Code == tt.code && e.Advice != "" && strings.Contains(e.What, tt.says), tt.name, e, tt.code)
	}
}

// Limits are set before the command, in the units of the shell, and rounded up.
func TestLimitsScript(t *testing.T) {
	got := Limits{CPU: 1500 * time.Millisecond, Memory: 64 << 20}.script()
	for _, want := range []string{"ulimit -v 65536 ", "ulimit -t 2 "} {
		assert.Contains(t, got, want, "is not in")
	}
	assert.True(t, strings.HasSuffix(got, `; exec "$@"`) && (Limits{Time: time.Second}).script() == `exec "$@"`, "the command does not come last:", got)
}
