package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

func TestFailuresAreKeptAndBounded(t *testing.T) {
	p := &part{Source: Source{Name: "@acme/a"}}
	for i := range maxFailures + 5 {
		p.fail(fs.Failure{Time: time.Unix(int64(i), 0), Op: "open", Path: fmt.Sprint("file\n", i), Errno: syscall.EIO, Err: errors.New("broken\x1b")})
	}
	assert.Equal(t, len(p.failures), maxFailures, "failures are kept")
	s := p.status(nil, 0)
	if s.Errors != maxFailures+5 || len(s.Recent) != recentFailures || !strings.HasSuffix(s.Recent[recentFailures-1].Path, "204") {
		t.Errorf("got %d errors, recent %+v", s.Errors, s.Recent)
	}
	log := strings.Split(strings.TrimSpace(string(p.errorLog())), "\n")
	if len(log) != maxFailures+1 || log[0] != "# the last 200 of 205 failures" {
		t.Fatalf("got %d lines, first %q", len(log), log[0])
	}
	assert.Equal(t, log[1], `1970-01-01T00:00:05Z open "file\n5": input/output error: "broken\x1b"`)
}

// A status counts what all parts have.
func TestSumOfParts(t *testing.T) {
	s := control.Status{Parts: []control.Part{
		{Unsaved: control.Unsaved{Bytes: 3}, Conflicts: 1}, {}, {Unsaved: control.Unsaved{Bytes: 4}, Conflicts: 2}, {},
	}}
	sum(&s)
	assert.Equal(t, s.UnsavedBytes, 7, "bytes unsaved")
	assert.Equal(t, s.ConflictsTotal, 3, "conflicts")
}

func TestFailureKinds(t *testing.T) {
	for want, f := range map[string]fs.Failure{
		"unavailable": {Errno: syscall.EIO, Err: fmt.Errorf("put: %w", fs.ErrUnavailable)},
		"conflict":    {Errno: syscall.EIO, Err: fs.ErrConflict},
		"space":       {Errno: syscall.ENOSPC},
		"descriptors": {Errno: syscall.EMFILE},
		"denied":      {Errno: syscall.EACCES},
		"io":          {Errno: syscall.EIO},
	} {
		assert.Equal(t, failureKind(f), want, f)
	}
}

func TestGoverningFilesAreFoundInEveryPart(t *testing.T) {
	tree := &Tree{Sources: []Source{{Path: "/w/app"}, {At: "lib", Path: "/w/lib"}, {At: "mem"}, {At: "all", Path: "/w"}}}
	b := builder{tree: tree, governing: []string{"/w/app/WORKSPACE.md", "/w/app/conf/STORAGE.md", "/w/lib-evil/X.md", "/w/app/WORKSPACE.md"}}
	assert.OK(t, b.govern())
	want := [][]string{{"WORKSPACE.md", "conf/STORAGE.md"}, nil, nil, {"app/WORKSPACE.md", "app/conf/STORAGE.md", "lib-evil/X.md"}}
	for i, s := range tree.Sources {
		assert.Slice(t, s.Governing, want[i], "part", s.At)
	}
}

// What the host itself believes is kept from programs in every part: unchangeable
// where that is enough, else the part is refused, unless it only reads.
func TestHostsOwnPlaces(t *testing.T) {
	own := host.Own{Files: []string{"/w/conf/config.yaml"}, Dirs: []string{"/w/conf"}, Searched: []string{"/w/sp"}}
	registered := &host.Resolved{Trust: host.Registered}
	for _, tt := range []struct {
		name, path, readOnly string
		resolved             *host.Resolved
		want                 []string
		refused              string
	}{
		{name: "beside", path: "/w/x"},
		{name: "the configuration lies in it", path: "/w", readOnly: "flag", want: []string{"conf", "conf/config.yaml"}},
		{name: "it is the configuration's directory", path: "/w/conf", refused: "host configuration"},
		{name: "read-only it may be", path: "/w/conf", readOnly: "flag", want: []string{"config.yaml"}},
		{name: "it holds the search path", path: "/w", refused: "search path"},
		{name: "it is the search path", path: "/w/sp", refused: "search path"},
		{name: "in the search path, not registered", path: "/w/sp/acme", refused: "search path"},
		{name: "in the search path", path: "/w/sp/acme", resolved: registered, want: []string{"WORKSPACE.md"}},
		{name: "deeper in the search path", path: "/w/sp/acme/ops", want: []string{"WORKSPACE.md"}},
		{name: "deeper than is searched", path: "/w/sp/acme/ops/data"},
	} {
		b := builder{tree: &Tree{Sources: []Source{{Name: "@acme/x", Path: tt.path, Stays: tt.readOnly, resolved: tt.resolved}}}, own: own}
		err := b.govern()
		if (err != nil) != (tt.refused != "") || err != nil && (!strings.Contains(err.Error(), tt.refused) || exit.From(err).Code != exit.Denied || exit.From(err).Advice == "") {
			t.Errorf("%s: refused: %v, want %q", tt.name, err, tt.refused)
		}
		assert.Slice(t, b.tree.Sources[0].Governing, tt.want, tt.name, "governed")
	}
}

// Of a whole tree that goes back, what governs the mount stays, and so does the
// directory that it is in.
func TestWhatGovernsIsRefused(t *testing.T) {
	p := &part{Source: Source{Governing: []string{"app/WORKSPACE.md"}}}
	for name, want := range map[string]bool{"app/WORKSPACE.md": true, "app": true, "app/WORKSPACE.md.orig": false, "ap": false, "lib/a": false} {
		assert.Equal(t, p.governs(name) != nil, want, name)
	}
}

// A command that an error names can be run as it is.
func TestRestoreCommand(t *testing.T) {
	c := &copies{layout: layout{mountpoint: "/mnt/my ws"}}
	p := &part{Source: Source{At: "lib"}}
	got := c.restoreCommand(p, "it's", cache.State{Turn: "7", Before: true})
	assert.Equal(t, got, `wsmount restore '/mnt/my ws' 'lib/it'\''s' --to turn:7 --before`)
}

// What lies in a read-only part cannot be more than it, in whatever order the
// parts were named; what only begins with its name can.
func TestReadOnlyReachesWhatLiesInside(t *testing.T) {
	tree := &Tree{Sources: []Source{{}, {At: "lib/a/b"}, {At: "lib/a", ReadOnly: "policy"}, {At: "lib", ReadOnly: "mount", Stays: "mount"}, {At: "library", ReadOnly: "policy"}, {At: "library/b"}}}
	(&builder{tree: tree}).inherit()
	for _, s := range tree.Sources {
		assert.Equal(t, s.ReadOnly != "", strings.HasPrefix(s.At, "lib"), s.At, "read-only")
		assert.Equal(t, s.Stays != "", strings.HasPrefix(s.At+"/", "lib/"), s.At, "read-only for good")
	}
}

func TestTreeIsReadOnlyWhenAllOfItIs(t *testing.T) {
	ro, rw, gone := Source{ReadOnly: "flag", Stays: "flag"}, Source{ReadOnly: "policy"}, Source{Unavailable: "gone"}
	for _, tt := range []struct {
		sources []Source
		want    bool
	}{{[]Source{ro, ro}, true}, {[]Source{ro, rw}, false}, {[]Source{rw}, false}, {[]Source{ro, gone}, true}} {
		assert.Equal(t, (&Tree{Sources: tt.sources}).ReadOnly(), tt.want, tt.sources)
	}
}

func TestRefusal(t *testing.T) {
	findings := mountspec.Findings{
		{File: "W.md", Line: 3, Column: 5, Rule: "unknown-key", Message: "unknown key prefx", Hint: "did you mean prefix?"},
		{File: "W.md", Line: 9, Column: 1, Rule: "r", Message: "second"}}
	ofConfig := mountspec.Findings{{File: "/etc/c.yaml", Line: 3}, {File: "/etc/c.yaml", Line: 3}, {File: "/etc/c.yaml", Line: 9}}
	tests := []struct {
		name         string
		err          error
		code         exit.Code
		what, advice string
	}{
		{"one finding", &host.Error{Class: host.Invalid, Err: findings[:1]}, exit.Manifest, "W.md:3:5: error: unknown key prefx [unknown-key]", "did you mean prefix?"},
		{"several", &host.Error{Class: host.Invalid, Err: findings}, exit.Manifest, "(and 1 more)", "`wsmount validate W.md` shows all of them"},
		{"several of a configuration", &host.Error{Class: host.Invalid, Err: ofConfig}, exit.Manifest, "(and 2 more)", "`wsmount validate /etc/c.yaml` shows all of them"},
		{"denied", fmt.Errorf("x: %w", &host.Error{Class: host.Denied, What: "not granted", Hint: "grant it"}), exit.Denied, "not granted", "grant it"},
		{"unresolvable", &host.Error{Class: host.Unresolvable, What: "not found"}, exit.Unresolvable, "not found", ""},
		{"another", errors.New("other"), exit.Failed, "other", ""},
	}
	for _, tt := range tests {
		e := Refusal(tt.err)
		assert.True(t, e.Code == tt.code && strings.Contains(e.What, tt.what) && e.Advice == tt.advice, tt.name, "got", e.Code, e.What, "hint", e.Advice)
	}
	lacks := errors.Join(&secrets.Error{Name: "A", Reason: "not set", Hint: "set it"}, errors.Join(&secrets.Error{Name: "B", Reason: "not granted", Hint: "grant it"}))
	e := Refusal(&host.Error{Class: host.Denied, Where: "STORAGE.md:3", What: "its credentials are not available", Err: lacks, Hint: "set it"})
	assert.Equal(t, e.What, "STORAGE.md:3: its credentials are not available")
	assert.Slice(t, e.Details, []string{"secret A: not set; set it", "secret B: not granted; grant it"})
}

func TestMountable(t *testing.T) {
	for _, name := range MountableProviders() {
		_, cached, err := opener(&host.Resolved{Storage: &mountspec.Storage{Provider: name}})
		assert.Is(t, err, nil, name)
		assert.Equal(t, cached, !slices.Contains(directories, name), name, "has a working copy")
	}
	for _, name := range append(slices.Clone(directories), "memory") {
		assert.True(t, Mountable(name), name, "cannot be mounted")
	}
	_, _, err := opener(&host.Resolved{Storage: &mountspec.Storage{Provider: "no-such"}})
	e := exit.From(err)
	assert.True(t, e != nil && e.Code == exit.Unresolvable && strings.Contains(e.What, "storage_provider_unknown"), "got", err)
}

func TestReach(t *testing.T) {
	l := layout{"/mnt", []*part{{Source: Source{Name: "root"}}, {Source: Source{Name: "lib", At: "lib"}},
		{Source: Source{Name: "deep", At: "lib/deep"}}}}
	for _, tt := range []struct {
		at   string
		want string
	}{{"", "deep lib root"}, {"/", "deep lib root"}, {"/lib", "lib"}, {"lib/deep/", "deep"}, {"/li", ""}} {
		parts, err := l.reach(tt.at)
		var names []string
		for _, p := range parts {
			names = append(names, p.Name)
		}
		got := strings.Join(names, " ")
		assert.True(t, got == tt.want && (tt.want == "") == (err != nil), tt.at, got, tt.want, err)
	}
}

func TestIOMode(t *testing.T) {
	assert.Equal(t, ioMode([]fs.OpenFile{{Mode: "passthrough"}, {Mode: "cached"}}), "mixed")
}

// An optional part that cannot be opened is left out and says why; any other
// refuses the mount.
func TestOpenPart(t *testing.T) {
	broken := func(context.Context, Env) (fs.Volume, error) { return nil, errors.New("no such disk") }
	d := &Daemon{tree: &Tree{StateRoot: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	place := [3]string{"acme", "part", "1"}
	p := &part{Source: Source{Optional: true, Open: broken, Place: place}}
	err := d.openPart(context.Background(), p)
	assert.True(t, err == nil && p.Unavailable == "no such disk", "optional: got", err, p.Unavailable)
	assert.True(t, d.openPart(context.Background(), &part{Source: Source{Open: broken, Place: place}}) != nil, "a part that is needed was left out")
}

// A program in the mount must not be able to make the manifest that the next
// mount would read, where this one found none.
func TestWhereAManifestWouldBeReadIsGoverned(t *testing.T) {
	b := builder{tree: &Tree{}}
	err := b.add(&host.Resolved{
		Address:   mountspec.Address{Owner: "acme", Slug: "app"},
		Storage:   &mountspec.Storage{Provider: mountspec.ProviderLocalFS},
		Local:     &host.Local{Path: "/w/app"},
		Governing: []string{"/w/app/WORKSPACE.md"},
		Reserved:  []string{"/w/app/SECRETS.md", "/w/app/.secrets/SECRETS.md"},
	}, "")
	assert.OK(t, err)
	assert.OK(t, b.govern())
	want := []string{".secrets/SECRETS.md", "SECRETS.md", "WORKSPACE.md"}
	assert.Slice(t, b.tree.Sources[0].Governing, want, "governed")
}

// Whoever can write into the state directory has the control socket and the
// audit log.
func TestStateDirectoryInAWorkspace(t *testing.T) {
	dir := t.TempDir()
	for place, want := range map[string]bool{"/": true, dir: true, dir + "/ws": true, dir + "/w": false, dir + "/ws/state/deeper": false} {
		tree := &Tree{StateRoot: dir + "/ws/state", Sources: []Source{{Path: "/elsewhere"}, {}, {Path: place}}}
		assert.Equal(t, tree.checkDirectories() != nil, want, "a workspace at", place, "is refused")
	}
}

func TestMountErrorSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct{ err, said, what, hint string }{
		{"fs: mount /x: fusermount exited with code 256", "fusermount3: no\nluck\n", "256: fusermount3: no luck", "root mounts without fusermount3"},
		{`exec: "fusermount3": executable file not found in $PATH`, "", "not found", "install fusermount3"},
		{"invalid argument", "", "invalid argument", "wsmount doctor"},
	} {
		e := exit.From(mountError(errors.New(tt.err), tt.said))
		if e.Code != exit.Failed || !strings.Contains(e.What, tt.what) || !strings.Contains(e.Advice, tt.hint) {
			t.Errorf("%s: got %s %q, hint %q, want %q, %q", tt.err, e.Code, e.What, e.Advice, tt.what, tt.hint)
		}
	}
}

// What the policy takes away from a part shows in its status, and the control API gives
// nothing of a part that is closed.
func TestRestrictedPart(t *testing.T) {
	p := &part{Source: Source{Name: "@acme/a"}, name: "@acme/a", volume: &workingCopy{}, syncer: &syncer{}}
	l := layout{"/mnt", []*part{p}}
	_, _, _, err := l.locate("f")
	assert.OK(t, err)
	assert.Equal(t, p.readOnly()+p.closed(), "", "at the beginning")
	p.access.Store(&fs.Access{ReadOnly: "policy (ttl-expired)", Closed: "policy (no-grant)"})
	assert.Equal(t, p.readOnly(), "policy (ttl-expired)")
	assert.Equal(t, p.tellWriting()[0], "CLOSED: policy (no-grant).")
	_, _, _, err = l.locate("f")
	assert.True(t, err != nil && exit.From(err).Code == exit.Denied, "a file of a closed part", err)
	for what, err := range map[string]error{"the names of its history": assert.ErrOf((&copies{layout: l}).Log(t.Context(), control.LogRequest{})),
		"those of its conflicts": assert.ErrOf((&copies{layout: l}).Conflicts(t.Context()))} {
		assert.True(t, err != nil && exit.From(err).Code == exit.Denied, what, err)
	}
	p.ReadOnly = "flag (--read-only)"
	assert.Equal(t, p.readOnly(), "flag (--read-only)", "whoever made it so first says why")
	p.access.Store(&fs.Access{})
	assert.Equal(t, p.tellWriting()[0], "READ-ONLY: flag (--read-only).")
}
