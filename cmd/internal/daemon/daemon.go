package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/inforce"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/logging"
	"github.com/wsmount/wsmount/cmd/internal/metrics"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/notify"
	"github.com/wsmount/wsmount/cmd/internal/nudge"
	"github.com/wsmount/wsmount/cmd/internal/process"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// A signal wakes a goroutine that has work to do; raising it twice before that wakes it once.
type signal chan struct{}

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// DefaultStopTimeout is the time that programs have to finish with the mount after a signal.
const DefaultStopTimeout = 30 * time.Second

// Options are the settings of a mount, besides its tree.
type Options struct {
	Log           logging.Options
	AllowOther    bool
	NoPassthrough bool
	DebugFUSE     bool
	MountOptions  []string      // for the kernel: nosuid, noexec, ...
	Source        string        // the source in the mount table; empty: the workspace
	ControlDir    string        // name of the control directory; empty: .wsmount
	StopTimeout   time.Duration // 0: DefaultStopTimeout
	Tied          bool          // the mount ends with the last of its users: see Hold
	MetricsAddr   string        // loopback address for metrics; empty: only on the socket
	Copy          CopyOptions
	Self          string // this program, which runs nudge.Run when called nudge.ProcessName; empty: watchers learn of no pull
	Version       string
	Now           func() time.Time // nil: time.Now
}

// Daemon is a running mount. Its methods may be called from many goroutines;
// Run is called once.
type Daemon struct {
	tree    *Tree
	opts    Options
	log     *slog.Logger
	logFile string
	dir     *state.Dir
	room    *room.Room
	parts   []*part
	byName  map[string]*part
	places  []string // paths of the host, which programs in the mount must not learn
	bus     *lifecycle.Bus
	server  *fs.Server
	api     *control.Server
	record  state.Record
	saved   []byte        // the last status written; used only by Run's goroutine
	kick    signal        // the status file is out of date
	force   chan struct{} // end now, even if programs use the tree
	closers []func() error
	audit   *audit.Log
	syncers []*syncer
	nudger  *nudge.Nudger
	hooks   *notify.Notifier
	uploads bool            // there is no mount: see Upload
	drain   context.Context // ends when the time to send unsent changes is over
	giveUp  context.CancelFunc
	users   users

	outdated inforce.Outdated

	mu      sync.Mutex // guards the fields below
	state   control.State
	sending bool   // the tree is unmounted, and unsaved changes are being sent
	unsafe  string // why some changes were not safe at the end
}

// Start mounts a resolved tree and returns when it is served. On an error
// nothing is left behind.
func Start(ctx context.Context, tree *Tree, o Options) (_ *Daemon, err error) {
	if o.StopTimeout <= 0 {
		o.StopTimeout = DefaultStopTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Copy.Fetches, o.Copy.Secrets = cache.NewFetchBudget(0), &cache.Secrets{}
	d := &Daemon{tree: tree, opts: o, room: room.New(tree.StateRoot), byName: map[string]*part{}, kick: make(chan struct{}, 1),
		force: make(chan struct{}, 1), state: control.Starting, users: users{none: make(chan struct{})}}
	d.drain, d.giveUp = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			d.setState(control.Starting)
			err = errors.Join(err, d.abandon())
		}
	}()
	for _, step := range []func(context.Context) error{
		d.prepare, d.lock, d.openLog, d.clean, d.openParts, d.serveControl, d.mount, d.announce,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// prepare makes the process fit to serve. Its working directory must not keep
// another file system busy.
func (d *Daemon) prepare(context.Context) error {
	if err := process.Harden(); err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	return os.Chdir("/")
}

// lockLimit is how long a dying daemon may hold its lock, in lockTries tries: counting
// tries rather than time, a suspended machine uses up none.
const (
	lockLimit = 2 * time.Second
	lockTries = 100
)

func (d *Daemon) openLog(context.Context) error {
	o := d.opts.Log
	o.StateFile, o.Fields = d.dir.LogPath(), map[string]string{"workspace": d.tree.Name, "mountpoint": d.tree.Mountpoint}
	var log *slog.Logger
	var name string
	var closer io.Closer
	err := d.dir.WhileFull(func() (err error) {
		log, name, closer, err = logging.Open(o)
		return err
	})
	if err != nil {
		return err
	}
	d.log, d.logFile = log, name
	d.onClose(closer.Close)
	d.bus = lifecycle.New(lifecycle.Options{Log: d.log})
	d.nudger = nudge.New(d.opts.Self, d.tree.Mountpoint, d.log)
	d.onClose(func() error { d.nudger.Stop(); return nil })
	d.startNotifier()
	return nil
}

// clean removes the mounts that killed daemons left at the mount point.
func (d *Daemon) clean(ctx context.Context) error {
	n, err := mountpoint.Clean(d.tree.Mountpoint)
	if n > 0 {
		d.log.Warn("took away a mount whose daemon was gone", "mountpoint", d.tree.Mountpoint, "count", n)
		d.tree.note("a mount at %s whose daemon was gone has been taken away", d.tree.Mountpoint)
	}
	if err != nil || n == 0 {
		return err
	}
	return d.tree.checkPlace(ctx, false) // now that the directory itself can be seen
}

// openAudit opens the audit log, once.
func (d *Daemon) openAudit() error {
	if d.audit != nil {
		return nil
	}
	log, err := OpenAudit(d.tree.StateRoot, d.room, d.opts.Now)
	if state.IsFull(err) {
		return err
	}
	if err != nil {
		return exit.New(exit.Denied, "%w", err).Hint("nothing is pushed or resolved, and no policy changes, without a record of it")
	}
	d.audit = log
	d.onClose(log.Close)
	return nil
}

// serveControl starts the bus and the control API, which answers from then on.
func (d *Daemon) serveControl(ctx context.Context) (err error) {
	m := metrics.New(d.tree.Name, d.Status, d.kernelStats)
	d.places = d.hostPlaces()
	api := &copies{layout: d.layout(), audit: d.audit, log: d.log, changed: d.kick, shown: d.shown}
	err = d.dir.WhileFull(func() (err error) {
		d.api, err = control.Listen(d.dir.SocketPath(), d, control.Options{Log: d.log, Metrics: m.Handler(), Copies: api})
		return err
	})
	if err != nil {
		return err
	}
	if d.opts.MetricsAddr == "" {
		return nil
	}
	stop, err := m.Listen(ctx, d.opts.MetricsAddr, d.log)
	if err != nil {
		return err
	}
	d.onClose(stop)
	return nil
}

func (d *Daemon) mount(context.Context) error {
	if d.opts.AllowOther && !mountpoint.AllowsOthers(os.Geteuid(), mountpoint.FuseConf) {
		return exit.New(exit.Denied, "this machine does not let users open their mounts to others").
			Hint("add the line user_allow_other to %s, or leave --allow-other out", mountpoint.FuseConf)
	}
	said, err := mountpoint.WithStderr(func() (err error) {
		d.server, err = fs.Serve(d.tree.Mountpoint, d.fsParts(), d.fsOptions())
		return err
	})
	if err != nil {
		return mountError(err, said)
	}
	if said != "" {
		d.log.Warn("the mount helper said something", "text", said)
	}
	d.nudger.Serve(d.server)
	return d.enforce()
}

func (d *Daemon) fsParts() []fs.Part {
	var out []fs.Part
	for _, p := range d.parts {
		out = append(out, fs.Part{Name: p.name, At: p.At, Volume: p.volume, Unavailable: p.Unavailable,
			ReadOnly: p.ReadOnly, Access: p.inForce(), Governing: p.Governing, Control: d.controlDir(p)})
	}
	return out
}

func (d *Daemon) fsOptions() fs.Options {
	return fs.Options{Log: d.log, FsName: cmp.Or(d.opts.Source, d.tree.Name), ControlName: d.opts.ControlDir,
		AllowOther: d.opts.AllowOther, ReadOnly: d.tree.ReadOnly(), MountOptions: d.opts.MountOptions,
		NoPassthrough: d.opts.NoPassthrough || inforce.Vary(d.underPolicy(), policy.Write), // the kernel keeps descriptors
		Debug:         d.opts.DebugFUSE, OnFailure: d.failed, OnEvent: d.changed, Now: d.opts.Now}
}

func (d *Daemon) failed(f fs.Failure) {
	if p := d.byName[f.Part]; p != nil {
		p.fail(f)
	}
	d.kick.raise()
}

// changed puts a change of content on the bus, with the envelope of AIP-37's
// ADAPTER for storage events.
func (d *Daemon) changed(e fs.Event) {
	at, id := "", e.Part
	if p := d.byName[e.Part]; p != nil {
		at, id = p.At, p.Name
	}
	d.bus.Emit(lifecycle.Event{Name: e.Name, Source: lifecycle.Source{Kind: lifecycle.SourceStorage, ID: id},
		Payload: map[string]string{"path": filepath.Join("/", at, e.Path), "workspaceId": id}})
}

// announce makes the mount known: to other commands, to systemd, on the bus.
func (d *Daemon) announce(context.Context) error {
	d.record = state.Record{Workspace: d.tree.Name, Mountpoint: d.tree.Mountpoint, Source: d.tree.Manifest,
		Device: d.server.Device(), Started: d.opts.Now(), Version: d.opts.Version, Log: d.logFile, Tied: d.opts.Tied}
	if err := d.record.Identify(); err != nil {
		return err
	}
	process.DropEnvironment(d.tree.Mountpoint)
	d.setState(control.Ready)
	d.saveStatus()
	if err := d.dir.SaveRecord(d.record); err != nil {
		return err
	}
	d.log.Info("mounted", "workspace", d.tree.Name, "mountpoint", d.tree.Mountpoint, "parts", len(d.parts),
		"readOnly", d.tree.ReadOnly(), "pid", os.Getpid(), "version", d.opts.Version)
	for _, n := range d.tree.Notes {
		d.log.Warn("a person should know", "note", n)
	}
	d.opened()
	return nil
}

func (d *Daemon) onClose(f func() error) { d.closers = append(d.closers, f) }

// abandon undoes a Start that failed.
func (d *Daemon) abandon() error {
	if d.server == nil {
		return errors.Join(d.closeVolumes(), d.shut())
	}
	err := d.unmount()
	if p := d.place(); err != nil && p.IsVisible() {
		err = p.Detach()
	}
	return errors.Join(err, d.shut())
}

// shut closes everything but the mount, in the opposite order of Start, and skips
// parts that were not opened.
func (d *Daemon) shut() error {
	var errs []error
	if d.bus != nil {
		d.bus.Close()
	}
	if d.api != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		errs = append(errs, d.api.Close(ctx))
	}
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	return errors.Join(errs...)
}

// closeVolumes closes the volumes when no front has taken them over.
func (d *Daemon) closeVolumes() error {
	var errs []error
	for _, p := range d.parts {
		if c, ok := p.volume.(fs.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (d *Daemon) setState(s control.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = s
}

// sends notes that the tree is unmounted and unsaved changes are being sent.
func (d *Daemon) sends() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sending = true
	if d.state == control.Ready {
		d.state = control.Draining
	}
}

func (d *Daemon) getState() control.State {
	s, _ := d.end()
	return s
}

// end returns the state, and why changes were not safe when the mount ended.
func (d *Daemon) end() (control.State, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.unsafe
}

// CrashFile opens the file that takes the output of a crash.
func (d *Daemon) CrashFile() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(d.dir.Path(), "crash.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	return f, nil
}
