package daemon

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

const (
	statusEvery = 5 * time.Second        // how old the status file may be
	retryEvery  = 200 * time.Millisecond // between two attempts to unmount a busy tree
	abortLimit  = 3 * time.Second        // for requests to end after an abort
)

// Run serves until the tree is unmounted or a signal ends it, and cleans up.
// The error is Unsafe when a volume could not be closed, and Failed when
// programs had to be cut off; the first wins.
func (d *Daemon) Run(signals <-chan os.Signal) error {
	sd.SdNotify(false, sd.SdNotifyReady)
	ended := make(chan struct{})
	var unsafe error // written before ended is closed
	go func() { unsafe = d.server.Wait(); close(ended) }()
	err := d.serveUntil(ended, signals)
	select {
	case <-ended:
		err = errors.Join(d.notSafe(unsafe), err)
	default: // the end of the process ends open requests: see cutOff
	}
	d.bus.Emit(d.hostEvent("workspace-close"))
	d.setState(control.Stopped)
	d.saveStatus()
	d.log.Info("unmounted", "mountpoint", d.tree.Mountpoint)
	return errors.Join(err, d.shut())
}

// notSafe turns a volume's failure to close into an error: changes that policy
// wanted sent, or on disk, are not. The last status keeps it, for callers that wait
// for the end and do not see the exit code of this process.
func (d *Daemon) notSafe(err error) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	d.unsafe = err.Error()
	d.mu.Unlock()
	return control.NotSafe(err.Error(), d.tree.Name)
}

func (d *Daemon) serveUntil(ended <-chan struct{}, signals <-chan os.Signal) error {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	use := time.NewTicker(time.Second)
	defer use.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-use.C:
			d.freshen()
		case s := <-signals:
			return d.stop("signal "+s.String(), ended, signals)
		case <-d.users.none:
			return d.stop("no command uses it any more", ended, signals)
		case <-d.force:
			return d.cutOff("it was asked for", ended)
		case <-tick.C:
			d.saveStatus()
		case <-d.kick:
			d.saveStatus()
		}
	}
}

// stop unmounts, on a signal for one. While programs use the tree it tries again;
// after the time limit, or at once on a further signal, it cuts them off.
func (d *Daemon) stop(why string, ended <-chan struct{}, signals <-chan os.Signal) error {
	sd.SdNotify(false, sd.SdNotifyStopping)
	d.log.Info("stopping", "because", why, "timeout", d.opts.StopTimeout)
	d.setState(control.Stopping)
	d.saveStatus()
	limit := time.NewTimer(d.opts.StopTimeout)
	defer limit.Stop()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		err := d.unmount()
		if err != nil && !mountpoint.IsBusy(err) && d.place().IsVisible() {
			d.log.Error("cannot unmount", "err", err)
		}
		select {
		case <-ended:
			return nil
		case <-limit.C:
			return d.cutOff("the time limit is over", ended)
		case again := <-signals:
			return d.cutOff("a further signal: "+again.String(), ended)
		case <-d.force:
			return d.cutOff("it was asked for", ended)
		case <-retry.C:
		}
	}
}

// unmount tries to unmount the tree. It first ends the daemon's own use of it.
func (d *Daemon) unmount() error {
	d.nudger.Stop()
	return d.place().Unmount()
}

// cutOff takes the tree from programs that still use it, by name or, after a
// lazy unmount, only by open files. Where the connection cannot be aborted, as
// in a container without fusectl, and where requests do not end all the same,
// the end of the process closes it.
func (d *Daemon) cutOff(why string, ended <-chan struct{}) error {
	_, holders, _ := d.place().Holders()
	d.giveUp()
	for _, h := range holders {
		d.log.Warn("cutting off a program", "because", why, "program", h.String())
	}
	unmounted := d.place().Detach()
	limit := abortLimit
	if err := d.server.Abort(); err != nil {
		limit = abortLimit / 10
		d.log.Debug("the connection cannot be aborted", "err", err)
	}
	select {
	case <-ended:
	case <-time.After(limit):
		d.log.Warn("requests are still under way; the end of the process ends them")
	}
	e := exit.New(exit.Failed, "programs still used the mount and were cut off (%d seen)", len(holders)).Hint("end them before it, or give them more time with --stop-timeout")
	if unmounted != nil && d.place().IsVisible() {
		e.Details = append(e.Details, "it is still there: "+unmounted.Error())
		return e.Hint("`wsmount umount --force %s` takes it away", d.tree.Mountpoint)
	}
	return e
}

// Unmount takes the tree away for the control API. The daemon ends by itself
// once the last request is answered.
func (d *Daemon) Unmount(r control.UnmountRequest) (control.UnmountResult, error) {
	out := control.UnmountResult{Schema: control.UnmountSchema, Mountpoint: d.tree.Mountpoint}
	switch {
	case r.Force:
		_, out.Holders, _ = d.place().Holders()
		err := d.place().Detach()
		if errors.Is(err, mountpoint.ErrNotMounted) { // after a lazy unmount only open files are left
			err = nil
		}
		out.Unmounted = err == nil
		select {
		case d.force <- struct{}{}: // Run ends the requests under way
		default:
		}
		return out, err
	case r.Lazy:
		err := d.place().Detach()
		out.Unmounted = err == nil
		if err == nil {
			d.setState(control.Draining)
		}
		return out, err
	}
	if d.isSending() || len(d.place().Elsewhere()) > 0 {
		out.Unmounted = true
		return out, nil
	}
	if d.getState() == control.Draining {
		return out, exit.New(exit.Failed, "it is unmounted already, and waits for programs that have files open").
			Hint("close them, or `wsmount umount --force %s` ends it", d.tree.Mountpoint)
	}
	var inside []mountpoint.Mount
	waited, err := mountpoint.UntilFree(time.Duration(r.Timeout*float64(time.Second)), d.unmount, func() []mountpoint.Holder {
		_, out.Holders, inside = d.place().Holders()
		return out.Holders
	})
	out.WaitedFor = waited
	if mountpoint.IsBusy(err) {
		out.Busy = true
		open, _ := d.server.OpenFiles(countedFiles)
		out.OpenFiles = len(open)
		for _, m := range inside {
			out.Inside = append(out.Inside, m.Path)
		}
		return out, nil
	}
	out.Holders = nil
	out.Unmounted = err == nil
	return out, err
}

func (d *Daemon) isSending() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sending
}

// mountError gives advice on a mount that the machine refused. said is the output
// of the mount helper, which is the reason if there is any.
func mountError(err error, said string) error {
	e := exit.New(exit.Failed, "%w", err)
	if said != "" {
		return exit.New(exit.Failed, "%w: %s", err, strings.Join(strings.Fields(said), " ")).
			Hint("`wsmount doctor` tells what this machine lacks; root mounts without fusermount3")
	}
	switch {
	case errors.Is(err, os.ErrNotExist) && !exists("/dev/fuse"):
		return e.Hint("load the fuse module, or give the container /dev/fuse")
	case os.Geteuid() != 0 && errors.Is(err, exec.ErrNotFound), strings.Contains(err.Error(), "executable file not found"):
		return e.Hint("install fusermount3 (package fuse3), or mount as root")
	}
	return e.Hint("`wsmount doctor` tells what this machine lacks")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
