package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/nudge"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// unsent is a volume that cannot send everything when it is closed.
type unsent struct {
	fs.Volume
	err error
}

func (u unsent) Close() error { return u.err }

// What a volume could not bring to safety is the exit code of the daemon, and
// stands in its last status for whoever waits for the end.
func TestWhatIsNotSafeAtTheEnd(t *testing.T) {
	tier.RequireFUSE(t)
	for _, tt := range []struct {
		name string
		err  error
		want exit.Code
	}{{"all is safe", nil, exit.Done}, {"two files are not sent", fs.ErrUnavailable, exit.Unsafe}} {
		t.Run(tt.name, func(t *testing.T) {
			d := running(t, tt.err)
			assert.OK(t, d.server.Unmount())
			err := d.Run(nil)
			assert.True(t, (err == nil) == (tt.want == exit.Done) && (err == nil || exit.From(err).Code == tt.want), "got", err, "want the code", tt.want)
			var last control.Status
			r := state.Record{Dir: d.dir.Path()}
			b, _, err := r.Status()
			assert.Must(t, err == nil && json.Unmarshal(b, &last) == nil, err)
			got := last.NotSafe
			assert.True(t, (got == "") == (tt.err == nil) && (tt.err == nil || strings.Contains(got, tt.err.Error())), "the last status says", got, "want", tt.err)
		})
	}
}

// running is a daemon that serves one volume, whose Close returns err, as Start
// leaves it; but this process keeps its environment and working directory.
func running(t *testing.T, err error) *Daemon {
	t.Helper()
	root := t.TempDir()
	serr := os.Chmod(root, 0o700) // whatever the umask is here
	dir, oerr := state.Open(root, "acme", "a", "f", nil)
	serr = errors.Join(serr, oerr)
	assert.Must(t, serr == nil, serr)
	v, verr := direct.Open(context.Background(), t.TempDir(), direct.Options{})
	assert.OK(t, verr)
	t.Cleanup(func() { v.Close() })
	log := slog.New(slog.DiscardHandler)
	d := &Daemon{nudger: nudge.New("", "", log), tree: &Tree{Name: "@acme/a", Mountpoint: t.TempDir()}, opts: Options{Now: time.Now}, log: log, dir: dir,
		bus: lifecycle.New(lifecycle.Options{Log: log}), kick: make(chan struct{}, 1), force: make(chan struct{}, 1)}
	d.onClose(dir.Close)
	p := &part{Source: Source{Name: "@acme/a"}, name: "@acme/a", volume: unsent{v, err}}
	d.parts = append(d.parts, p)
	assert.OK(t, d.mount(context.Background()))
	return d
}

// Credentials that cannot be had fail in the status, until they can be had again; so
// does what a store does by itself. Before there is a working copy nothing is kept.
func TestWorkOfAStoreIsInTheStatus(t *testing.T) {
	w := &workingCopy{}
	var fails error
	kept := answers.New(time.Now, nil)
	credentials := noting(&atomic.Bool{}, Env{Ended: w.ended, Answers: kept}, func(context.Context) (map[string]string, error) {
		return map[string]string{"expiration": "2030-01-02T03:04:05Z"}, fails
	})
	ask := func(err error) {
		t.Helper()
		fails = err
		_, got := credentials(t.Context())
		assert.Is(t, got, err, got, err)
	}
	failing := func() (all []cache.Activity) {
		for _, f := range w.opened.Load().Status().Failing {
			all = append(all, f.Activity)
		}
		return all
	}
	away := errors.New("the vault is away")
	ask(away)
	v := assert.Of(cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory"})).OK(t)
	defer v.Close()
	w.opened.Store(v)
	got := failing()
	assert.True(t, len(got) == 0, "at first:", got)
	ask(away)
	w.ended("attribute index", away)
	missing := &secrets.Error{Name: "TOKEN", Reason: "it is not set", Hint: "set TOKEN"}
	ask(missing)
	w.Volume = v
	w.ended("pull", providers.Kinded(missing, providers.ErrUnauthenticated))
	var says []string
	for _, f := range w.failing() {
		says = append(says, f.Activity+": "+f.Error)
	}
	w.ended("pull", nil)
	assert.Slice(t, says, []string{"attribute index: the vault is away", "get credentials: secret TOKEN: it is not set; set TOKEN", "pull: secret TOKEN is not available"})
	got = failing()
	assert.True(t, len(got) == 2 && got[0] == "attribute index" && got[1] == cache.ActivityCredentials, "while both fail:", got)
	ask(nil)
	w.ended("attribute index", nil)
	got = failing()
	assert.True(t, len(got) == 0, "after both have succeeded:", got)
	assert.Equal(t, kept.Summary().CredentialFailures, 3, "failures of credentials")
	assert.Equal(t, kept.Summary().CredentialsExpire, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), "they expire")
}

// A working copy that is closed, or just being closed, gives up nothing, and whoever
// asks for room does not wait for that.
func TestClosedWorkingCopyMakesNoRoom(t *testing.T) {
	v := assert.Of(cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory"})).OK(t)
	w := &workingCopy{Volume: v}
	w.mu.Lock()
	assert.True(t, !w.MakeRoom(1) && w.ContentUsage() == (cache.ContentUsage{}), "one that is being closed makes room")
	w.closed = true
	w.mu.Unlock()
	assert.OK(t, v.Close())
	assert.True(t, !w.MakeRoom(1) && w.ContentUsage() == (cache.ContentUsage{}), "a closed one makes room")
}
