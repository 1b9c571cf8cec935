package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/nudge"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
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
			if (err == nil) != (tt.want == exit.Done) || err != nil && exit.From(err).Code != tt.want {
				t.Errorf("got %v, want the code %s", err, tt.want)
			}
			var last control.Status
			r := state.Record{Dir: d.dir.Path()}
			if b, _, err := r.Status(); err != nil || json.Unmarshal(b, &last) != nil {
				t.Fatal(err)
			}
			if got := last.NotSafe; (got == "") != (tt.err == nil) || tt.err != nil && !strings.Contains(got, tt.err.Error()) {
				t.Errorf("the last status says %q, want %v", got, tt.err)
			}
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
	if serr = errors.Join(serr, oerr); serr != nil {
		t.Fatal(serr)
	}
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
