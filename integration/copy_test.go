package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A copyFlavour is a way to mount a working copy of a service that runs apart
// from the mount.
type copyFlavour struct {
	name    string
	service []string // flags of memoryd
	config  string   // further YAML of the storage's config
	sync    string   // YAML of its sync block
	flags   []string // of the mount
	user    bool     // mounted and used by an ordinary user
}

const (
	canonicalSync = "mode: canonical"
	// Whatever is changed is committed and pushed a moment later; what others
	// changed comes with the event turn-start.
	pullPushSync = "mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 50}, push: {on: per-commit}"
)

var (
	canonicalStore = copyFlavour{name: "canonical store", sync: canonicalSync}
	bucket         = copyFlavour{name: "bucket", service: []string{"-without", "empty-dirs,unique-versions,mode,owner,mtime,move,attr,commit"}, sync: canonicalSync}
	writeBack      = copyFlavour{name: "write-back", sync: canonicalSync + ", commit: {on: write, batch_window_ms: 50}", flags: []string{"--write-back"}}
	repository     = copyFlavour{name: "repository", service: []string{"-repository"}, config: "clone: a, branch: main", sync: pullPushSync}
)

// as is the flavour for an ordinary user.
func (f copyFlavour) asUser() copyFlavour {
	f.name += ", ordinary user"
	f.user = true
	return f
}

// with is the flavour with further flags of the mount.
func (f copyFlavour) with(flags ...string) copyFlavour {
	f.flags = append(slices.Clone(f.flags), flags...)
	return f
}

// A workingCopy is one that is mounted, and the service behind it.
type workingCopy struct {
	*harness.Mount
	t       testing.TB
	w       *harness.World
	s       *harness.Service
	control *memory.Control
	socket  string // of the mount's control API, once it was asked for
}

func (f copyFlavour) mount(t testing.TB) *workingCopy {
	t.Helper()
	var o harness.Options
	if f.user {
		harness.RequireRoot(t)
		o.UID = userID
	}
	w := harness.New(t, o)
	s := w.Service(f.service...)
	config := "socket: " + s.Socket
	if f.config != "" {
		config += ", " + f.config
	}
	dir := w.Mkdir("ws", 0o755)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(s.Socket)+" ]\nallow_write_back: [ \"@acme/*\" ]\n", 0o600)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/copy", "storage: {inline: {provider: memory, config: {"+config+"}, sync: {"+f.sync+"}}}\n"), 0o644)
	w.MustRun("registry", "add", dir)
	c := &workingCopy{t: t, w: w, s: s}
	var err error
	if strings.Contains(f.config, "clone") {
		c.control, err = memory.DialCloneControl(t.Context(), "unix", s.Socket, "a", "main")
	} else {
		c.control, err = memory.DialControl(t.Context(), "unix", s.Socket)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.control.Close() })
	flags := f.flags
	if os.Geteuid() == 0 && !f.user {
		flags = append(slices.Clone(flags), "--allow-other")
	}
	c.Mount = w.Mount("@acme/copy", flags...)
	return c
}

// tamper lets another writer give a file content; nil removes it.
func (c *workingCopy) tamper(path string, content []byte) {
	c.t.Helper()
	if err := c.control.Tamper(c.t.Context(), providers.MustLocator(path), content); err != nil {
		c.t.Fatal(err)
	}
}
