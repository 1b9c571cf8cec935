package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/launch"
	"github.com/wsmount/wsmount/cmd/internal/logging"
	"github.com/wsmount/wsmount/cmd/internal/mountarg"
	"github.com/wsmount/wsmount/cmd/internal/progress"
)

func mountCommand() *cli.Command {
	return &cli.Command{
		Name:      "mount",
		Usage:     "mount a workspace; also: wsmount WORKSPACE MOUNTPOINT",
		ArgsUsage: "WORKSPACE MOUNTPOINT",
		Description: "WORKSPACE is an address (@owner/slug) that the host configuration, the registry or " +
			"the search path knows, or the path of a WORKSPACE.md or of its directory. Returns when the " +
			"mount is ready, and leaves a daemon in the background.\n\n" +
			"  wsmount @acme/marketing-ops /mnt/ws\n" +
			"  wsmount ./my-workspace /mnt/ws --read-only\n" +
			"  wsmount @acme/app /mnt/ws --mount at=/lib,source=@acme/lib,mode=read-only",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Usage: "refuse every change"},
			&cli.StringSliceFlag{Name: "mount", Usage: "mount another workspace inside; `SPEC` is at=PATH,source=WORKSPACE (an address or a directory) and optionally mode=read-only and optional, with commas; may be given several times"},
			&cli.StringSliceFlag{Name: "options", Aliases: []string{"o"}, Usage: "`LIST` as in fstab: ro, allow_other, suid, dev, noexec, noatime, and NAME=VALUE for the flags below"},
			operatorFlag(),
			&cli.BoolFlag{Name: "trust", Usage: "a WORKSPACE given by path counts as registered for this mount"},
			&cli.BoolFlag{Name: "if-not-mounted", Usage: "succeed when this workspace is mounted there already"},
			&cli.BoolFlag{Name: "foreground", Aliases: []string{"f"}, Usage: "stay in the foreground"},
			&cli.DurationFlag{Name: "stop-timeout", Value: daemon.DefaultStopTimeout, Usage: "`TIME` that programs get to leave when a signal stops the mount"},
			&cli.BoolFlag{Name: "require-durable", Usage: "refuse a state directory that does not outlive the machine"},
			&cli.BoolFlag{Name: "write-back", Usage: "closes in canonical workspaces return before the store has the bytes; the host must grant it (allow_write_back)"},
			&cli.StringFlag{Name: "working-copy", Usage: "use another working copy than the usual one, of this `NAME`"},
		}, tuningFlags()...),
		Action: mountAction,
	}
}

// tuningFlags are the flags that few users need.
func tuningFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "allow-other", Usage: "let other users in; permissions are checked as on any disk"},
		&cli.StringFlag{Name: "cache-size", Usage: "keep at most this `SIZE` of content that the store has too, such as 20GiB (default: what the disk has room for)"},
		&cli.StringFlag{Name: "total-cache-size", Usage: "the same for all mounts of the state directory that were given one: together they keep at most this `SIZE`, and who has most gives most; what is not mounted now comes on top"},
		&cli.StringFlag{Name: "keep-free", Usage: "leave this `SIZE` of the disk of the state directory free: what would go below it is not kept, or fails with ENOSPC where a program writes it (default 256MiB, or 2 percent of a small disk)"},
		&cli.DurationFlag{Name: "patience", Usage: "`TIME` that a close waits for a store that does not answer, before it fails and the bytes stay local; a look at a tree whose TTL is over waits as long, a read half of it", DefaultText: "1m0s"},
		&cli.UintFlag{Name: "uid", Usage: "`USER` number that owns what the store names no owner of", DefaultText: "who mounts"},
		&cli.UintFlag{Name: "gid", Usage: "`GROUP` number, likewise", DefaultText: "who mounts"},
		&cli.StringFlag{Name: "umask", Usage: "octal `MASK` for the modes of what the store names no mode of (default 022)"},
		&cli.BoolFlag{Name: "map-ids", Usage: "owners are those of the store, both ways; only for root"},
		&cli.BoolFlag{Name: "no-passthrough", Usage: "the kernel asks the daemon for every read and write"},
		&cli.StringFlag{Name: "sandbox-mount", Usage: "mount what the workspace's sandbox block mounts at this `PATH`, rather than the workspace"},
		&cli.StringFlag{Name: "control-dir", Usage: "`NAME` of the directory that shows the mount's state (default .wsmount)"},
		&cli.StringFlag{Name: "metrics-addr", Usage: "serve Prometheus metrics at this loopback `HOST:PORT`"},
		&cli.StringFlag{Name: "log-file", Usage: "log to this `FILE`"},
		&cli.StringFlag{Name: "log-level", Usage: "`LEVEL`: debug, info, warn or error (default info)"},
		&cli.StringFlag{Name: "log-format", Usage: "`FORMAT`: text or json (default text)"},
		&cli.BoolFlag{Name: "debug-fuse", Usage: "log every request of the kernel"},
	}
}

// mounted is the output of `wsmount mount --json`.
type mounted struct {
	Schema     string   `json:"schema"` // wsmount.mounted/v1
	Workspace  string   `json:"workspace"`
	Mountpoint string   `json:"mountpoint"`
	ReadOnly   bool     `json:"readOnly"`
	PID        int      `json:"pid,omitempty"`
	Already    bool     `json:"already,omitempty"` // it was mounted before
	Notes      []string `json:"notes,omitempty"`
}

func mountAction(c *cli.Context) error {
	child, isChild := launch.Child()
	kernel, err := checkMountFlags(c)
	if err != nil {
		if isChild {
			child.Failed(err)
		}
		return err
	}
	switch {
	case isChild:
		signals := stopSignals() // before anything is mounted that would be left behind
		if child.ParentGone() != nil {
			defer os.Remove(c.Args().Get(1)) // it was made for this mount
		}
		return withMount(c, signals, kernel, child.ParentGone() != nil, func(d *daemon.Daemon, already *daemon.Tree, err error) error {
			return serveChild(child, signals, d, already, err)
		})
	case c.Bool("foreground"):
		signals := stopSignals()
		return withMount(c, signals, kernel, false, func(d *daemon.Daemon, already *daemon.Tree, err error) error {
			return serveForeground(c, signals, d, already, err)
		})
	}
	background := launch.Background
	if forAutomounter(c.Args().Get(1)) {
		background = launch.BackgroundInGroup
	}
	report, err := background(context.WithoutCancel(c.Context), os.Args[1:])
	if err != nil {
		return err
	}
	return printMounted(c, mounted{Schema: "wsmount.mounted/v1", Workspace: report.Workspace, Mountpoint: report.Mountpoint,
		ReadOnly: report.ReadOnly, PID: report.PID, Already: report.Already, Notes: report.Notes})
}

func printMounted(c *cli.Context, m mounted) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, m)
	}
	printNotes(c, m.Notes)
	return nil
}

func printNotes(c *cli.Context, notes []string) {
	printEach(c.App.ErrWriter, "note: ", notes)
}

// checkMountFlags checks the flags before anything is started, and returns the
// options for the kernel.
func checkMountFlags(c *cli.Context) (kernel []string, err error) {
	if _, err := wantArgs(c, 2, 2); err != nil {
		return nil, err
	}
	if kernel, err = applyOptions(c); err != nil {
		return nil, err
	}
	if c.Duration("stop-timeout") < 0 {
		return nil, exit.New(exit.Usage, "--stop-timeout cannot be negative").Hint("for example --stop-timeout 30s")
	}
	if name := c.String("control-dir"); strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return nil, exit.New(exit.Usage, "--control-dir %q is not a plain name", oneLine(name)).Hint("for example --control-dir .ws")
	}
	if err = checkCopyName(c.String("working-copy")); err != nil {
		return nil, err
	}
	if _, err = copyOptions(c); err != nil {
		return nil, err
	}
	_, err = mountarg.Parse(c.StringSlice("mount"))
	return kernel, err
}

// serveChild mounts in the background process and reports to the waiting parent.
func serveChild(child *launch.Process, signals <-chan os.Signal, d *daemon.Daemon, already *daemon.Tree, err error) error {
	if err != nil {
		child.Failed(err)
		return silent(exit.From(err).Code)
	}
	report := launch.Report{}
	if already != nil {
		report.Workspace, report.Mountpoint, report.Already, report.Notes = already.Name, already.Mountpoint, true, already.Notes
		report.ReadOnly = already.MountedReadOnly
		return child.Done(report)
	}
	if len(signals) > 0 {
		err := errors.Join(launch.Interrupted(), d.Run(signals))
		child.Failed(err)
		return silent(exit.Failed)
	}
	tie(child, d)
	s := d.Status()
	report.Workspace, report.Mountpoint, report.ReadOnly, report.Notes = s.Workspace, s.Mountpoint, s.ReadOnly, d.Notes()
	crash, err := d.CrashFile()
	if err == nil {
		err = child.Ready(report, crash)
		crash.Close()
	}
	if err != nil { // the parent is gone: no process waits for the mount
		stop := make(chan os.Signal, 1)
		stop <- syscall.SIGTERM
		return errors.Join(err, d.Run(stop))
	}
	return silent(exit.From(orDone(d.Run(signals))).Code)
}

// tie makes the process that started a tied mount the first of its users.
func tie(child *launch.Process, d *daemon.Daemon) {
	gone := child.ParentGone()
	if gone == nil {
		return
	}
	release, err := d.Hold(os.Getppid())
	if err != nil { // it had users, and they have left
		return
	}
	go func() { <-gone; release() }()
}

// orDone makes an error of a success, so that it has a code.
func orDone(err error) error {
	if err == nil {
		return &exit.Error{Code: exit.Done}
	}
	return err
}

func serveForeground(c *cli.Context, signals <-chan os.Signal, d *daemon.Daemon, already *daemon.Tree, err error) error {
	if err != nil {
		return err
	}
	if already != nil {
		return printMounted(c, mounted{Schema: "wsmount.mounted/v1", Workspace: already.Name, Mountpoint: already.Mountpoint,
			ReadOnly: already.MountedReadOnly, Already: true, Notes: already.Notes})
	}
	s := d.Status()
	if err := printMounted(c, mounted{Schema: "wsmount.mounted/v1", Workspace: s.Workspace, Mountpoint: s.Mountpoint,
		ReadOnly: s.ReadOnly, PID: s.PID, Notes: d.Notes()}); err != nil {
		return err
	}
	return d.Run(signals)
}

func stopSignals() chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	return signals
}

// withMount calls use with a mount that was resolved and started. already is set
// instead of d if it was mounted before. Meanwhile the host side stays open: a
// mount asks it for credentials again when the old ones end.
func withMount(c *cli.Context, signals chan os.Signal, kernel []string, tied bool, use func(d *daemon.Daemon, already *daemon.Tree, err error) error) error {
	req, closeRequest, err := mountRequest(c, true)
	if err != nil {
		return use(nil, nil, err)
	}
	defer closeRequest()
	return use(start(c, signals, req, kernel, tied))
}

// untilSignal returns a context that ends with the first signal before stop is called; stop
// reports whether there was one. The signal stays in the channel for its next reader.
func untilSignal(ctx context.Context, signals chan os.Signal) (started context.Context, stop func() (was bool)) {
	ctx, cancel := context.WithCancel(ctx)
	over, ended, was := make(chan struct{}), make(chan struct{}), false
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			was = true
			cancel()
			select {
			case signals <- s:
			default: // the channel is full
			}
		case <-over:
		}
	}()
	return ctx, func() bool { close(over); <-ended; return was }
}

func start(c *cli.Context, signals chan os.Signal, req daemon.Request, kernel []string, tied bool) (d *daemon.Daemon, already *daemon.Tree, err error) {
	ctx, stop := untilSignal(context.WithoutCancel(c.Context), signals)
	d, already, err = startUntil(ctx, c, req, kernel, tied)
	if stop() && err != nil {
		return nil, nil, launch.Interrupted()
	}
	return d, already, err
}

// startUntil is start, until ctx ends.
func startUntil(ctx context.Context, c *cli.Context, req daemon.Request, kernel []string, tied bool) (d *daemon.Daemon, already *daemon.Tree, err error) {
	tree, err := daemon.Resolve(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if tree.Mounted {
		return nil, tree, nil
	}
	o, err := daemonOptions(c)
	if err != nil {
		return nil, nil, err
	}
	o.MountOptions, o.Tied = kernel, tied
	if !tied { // else the command that it serves shows progress
		o.Copy.Received = new(progress.Received)
		defer progress.Receiving("mounting "+tree.Name, o.Copy.Received)()
	}
	for again := true; again && err == nil; {
		if d, err = daemon.Start(ctx, tree, o); err == nil || !req.IfNotMounted {
			return d, nil, err
		}
		again, err = tree.StartedByOther(ctx, err)
	}
	return nil, tree, err
}

// mountRequest turns arguments and flags into a request for package daemon. create
// lets resolving make missing directories, and records grants.
func mountRequest(c *cli.Context, create bool) (daemon.Request, func(), error) {
	mounts, err := mountarg.Parse(c.StringSlice("mount"))
	if err != nil {
		return daemon.Request{}, nil, err
	}
	h, err := openHost(c, create)
	if err != nil {
		return daemon.Request{}, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		h.close()
		return daemon.Request{}, nil, exit.New(exit.Failed, "working directory: %w", err).Hint("change to a directory that exists")
	}
	args := c.Args().Slice()
	r := daemon.Request{Dir: dir, Workspace: args[0], StateDir: c.String("state-dir"), Resolver: h.resolver, Trust: c.Bool("trust"),
		Create: create, ReadOnly: c.Bool("read-only"), Mounts: mounts, IfNotMounted: c.Bool("if-not-mounted"),
		SandboxMount: c.String("sandbox-mount"), RequireDurable: c.Bool("require-durable"), WriteBack: c.Bool("write-back"), WorkingCopy: c.String("working-copy"), Getenv: os.Getenv}
	if len(args) > 1 {
		r.Mountpoint = args[1]
	}
	return r, h.close, nil
}

func daemonOptions(c *cli.Context) (daemon.Options, error) {
	o := daemon.Options{AllowOther: c.Bool("allow-other"), NoPassthrough: c.Bool("no-passthrough"),
		DebugFUSE: c.Bool("debug-fuse"), ControlDir: c.String("control-dir"), StopTimeout: c.Duration("stop-timeout"),
		MetricsAddr: c.String("metrics-addr"), Self: "/proc/self/exe", Version: readVersion().Version, Now: time.Now,
		Log: logging.Options{Foreground: c.Bool("foreground"), Level: c.String("log-level"), Format: c.String("log-format")}}
	var err error
	if o.Copy, err = copyOptions(c); err != nil {
		return o, err
	}
	if o.Source, err = shownSource(c.Args().First()); err != nil {
		return o, err
	}
	if name := c.String("log-file"); name != "" {
		path, err := absolute(name)
		if err != nil {
			return o, err
		}
		o.Log.File = path
	}
	return o, nil
}
