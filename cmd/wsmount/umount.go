package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
)

func umountCommand() *cli.Command {
	return &cli.Command{
		Name:      "umount",
		Aliases:   []string{"unmount"},
		Usage:     "unmount, and wait until all is safe",
		ArgsUsage: "MOUNTPOINT",
		Description: "Sends what the policy wants sent, unmounts, and returns when the daemon has " +
			"ended. It waits for programs that are ending; when others use the mount it says which ones, and fails. Also takes away " +
			"a mount whose daemon is gone.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "lazy", Aliases: []string{"l"}, Usage: "take it out of sight now; it ends with the last open file"},
			&cli.BoolFlag{Name: "force", Usage: "fail what is under way in it, and end"},
			&cli.DurationFlag{Name: "timeout", Usage: "`TIME` to wait for the daemon to end, else as long as it tries to send and 10s; and for programs that are ending, else 5s"},
		},
		Action: umountAction,
	}
}

func umountAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	if c.Bool("lazy") && c.Bool("force") {
		return exit.New(exit.Usage, "--lazy and --force contradict each other").Hint("give one of them")
	}
	req := control.UnmountRequest{Lazy: c.Bool("lazy"), Force: c.Bool("force")}
	if c.IsSet("timeout") {
		req.Timeout = c.Duration("timeout").Seconds()
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return umountUnknown(c, args[0], req, err)
	}
	dirs := copyDirs(r)
	res, err := umountRecord(c, r, req)
	if req.Force && (err == nil || exit.From(err).Code == exit.Unsafe) {
		err = exportLeft(c.Context, r, dirs)
	}
	if err != nil {
		return err
	}
	if res.Busy || req.Lazy || r.Alive() {
		return reportUmount(c.App.Writer, c.Bool("json"), res)
	}
	unread := whatStays(c.Context, r, dirs, &res)
	err = reportUmount(c.App.Writer, c.Bool("json"), res)
	if s, _ := lastStatus(r); err != nil || s.State == control.Stopped {
		return err
	}
	// The daemon was gone, or its disk full: no status says that all was sent as policy wants.
	switch {
	case staysText(res) != "":
		return silent(exit.Unsafe)
	case unread != nil:
		return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be read: %w", r.Mountpoint, unread).
			Hint("`wsmount recover` tells more")
	}
	return nil
}

// umountRecord asks the daemon to unmount, or unmounts itself if no daemon answers.
func umountRecord(c *cli.Context, r *state.Record, req control.UnmountRequest) (control.UnmountResult, error) {
	ctx, cancel := context.WithTimeout(c.Context, max(c.Duration("timeout"), mountpoint.EndingLimit)+control.AnswerLimit)
	defer cancel()
	if !r.Alive() {
		return umountDead(r)
	}
	res, err := askToUnmount(ctx, r, req)
	dies := deathLimit
	if req.Force {
		dies = forceLimit
	}
	if control.HungUp(err) && endsWithin(ctx, r, dies) == nil {
		if res, err = umountDead(r); err == nil {
			err = lastWord(r)
		}
		return res, err
	}
	hangs := err != nil && exit.From(err).Code == exit.Unreachable && c.Context.Err() == nil && r.Alive()
	switch {
	case hangs && req.Force:
		return umountHung(c.Context, r)
	case hangs && req.Lazy:
		return umountShown(r, req)
	}
	if err != nil || res.Busy || req.Lazy {
		return res, err
	}
	waits, restore := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer restore()
	stop := progress.Show(waits, r.SocketPath())
	limit := asLongAsItTries
	if c.IsSet("timeout") {
		limit = c.Duration("timeout")
	}
	res.HeldBy, err = waitUntilSent(waits, r, limit)
	stop()
	if err != nil || len(res.HeldBy) > 0 {
		return res, err
	}
	return res, lastWord(r)
}

// lastWord returns an error if not all was safe when the daemon of a record ended.
func lastWord(r *state.Record) error {
	if what := notSafe(r); what != "" {
		return control.NotSafe(what, r.Workspace)
	}
	return nil
}

// notSafe is NotSafe of the daemon's last status.
func notSafe(r *state.Record) string {
	s, _ := lastStatus(r)
	return s.NotSafe
}

// lastStatus is the last status that the daemon of a record wrote. Another daemon
// may have written there since: its status is not about this mount.
func lastStatus(r *state.Record) (s control.Status, ok bool) {
	b, _, err := r.Status()
	if err == nil {
		err = exactjson.Unmarshal(b, &s)
	}
	if err != nil || s.PID != r.PID {
		return control.Status{}, false
	}
	return s, true
}

// deathLimit is how long a daemon that has hung up, was killed or ends by force may take
// to be gone and release its locks.
var deathLimit = control.AnswerLimit

// forceLimit is how long --force waits for the daemon's answer, and again for its end,
// also if it has hung up. It is short: the steps after it do no more to a daemon that is
// only slow than it would do itself.
const forceLimit = 2 * time.Second

func askToUnmount(ctx context.Context, r *state.Record, req control.UnmountRequest) (control.UnmountResult, error) {
	defer waiting.For(fmt.Sprintf("waiting for the daemon of %s (pid %d) to unmount", r.Mountpoint, r.PID))()
	client := control.NewClient(r.SocketPath())
	ctx, hung := client.Answering(ctx)
	defer hung()
	if req.Force {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, forceLimit)
		defer cancel()
	}
	return client.Unmount(ctx, req)
}

// umountHung unmounts for a daemon that does not answer, and ends it. One that was
// only slow ends by itself once its connection is gone.
func umountHung(ctx context.Context, r *state.Record) (control.UnmountResult, error) {
	res, err := umountShown(r, control.UnmountRequest{Force: true})
	if errors.Is(err, mountpoint.ErrNotMounted) {
		res.Unmounted, err = true, nil
	}
	if err != nil || endsWithin(ctx, r, forceLimit) == nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	if err := r.Kill(); err != nil {
		return res, err
	}
	if err := endsWithin(ctx, r, deathLimit); err != nil {
		return res, err
	}
	_ = state.Forget(r) // a new daemon may have the directory already
	return res, nil
}

func endsWithin(ctx context.Context, r *state.Record, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return waitForEnd(ctx, r)
}

// umountDead removes the mount and the record that a killed daemon left.
func umountDead(r *state.Record) (control.UnmountResult, error) {
	res, err := umountShown(r, control.UnmountRequest{Lazy: true})
	if errors.Is(err, mountpoint.ErrNotMounted) {
		res.Unmounted, err = true, nil
	}
	if err == nil {
		err = state.Forget(r)
		if errors.Is(err, fs.ErrNotExist) { // it ended by itself after all
			err = nil
		}
	}
	return res, err
}

// umountUnknown unmounts a wsmount mount that the state directory does not know:
// another user's, or one with another --state-dir.
func umountUnknown(c *cli.Context, path string, req control.UnmountRequest, unknown error) error {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return err
	}
	resolved, err := table.Resolve(path)
	if err != nil {
		return err
	}
	if m, ok := table.At(resolved); !ok || !m.Ours() {
		return cmp.Or(leftBy(c, resolved), unknown)
	}
	res, err := umountPath(resolved, req)
	if err != nil {
		return err
	}
	return reportUmount(c.App.Writer, c.Bool("json"), res)
}

// umountShown unmounts the mount of a record without its daemon's help, but no
// other mount in its place.
func umountShown(r *state.Record, req control.UnmountRequest) (control.UnmountResult, error) {
	if table, err := mountpoint.ReadTable(); err == nil && !table.Shows(r.Mountpoint, r.Device) {
		return control.UnmountResult{Schema: control.UnmountSchema, Mountpoint: r.Mountpoint},
			fmt.Errorf("unmount %s: %w", r.Mountpoint, mountpoint.ErrNotMounted)
	}
	return umountPath(r.Mountpoint, req)
}

// umountPath unmounts without the daemon's help.
func umountPath(path string, req control.UnmountRequest) (control.UnmountResult, error) {
	res := control.UnmountResult{Schema: control.UnmountSchema, Mountpoint: path}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return res, err
	}
	m, ok := table.At(path)
	if !ok || !m.Ours() { // another mount lies there now
		return res, fmt.Errorf("unmount %s: %w", path, mountpoint.ErrNotMounted)
	}
	var inside []mountpoint.Mount
	unmount := func() error { return mountpoint.Unmount(path, req.Lazy || req.Force) }
	res.WaitedFor, err = mountpoint.UntilFree(time.Duration(req.Timeout*float64(time.Second)), unmount, func() []mountpoint.Holder {
		res.Holders, inside, _ = mountpoint.Holders(m)
		return res.Holders
	})
	if mountpoint.IsBusy(err) {
		for _, i := range inside {
			res.Inside = append(res.Inside, i.Path)
		}
		res.Busy = true
		return res, nil
	}
	res.Holders = nil
	if errors.Is(err, mountpoint.ErrNotMounted) && os.Geteuid() != 0 {
		// It is in the table, so the helper means that it is not this user's.
		return res, exit.New(exit.Denied, "%s was mounted by another user", path).Hint("unmount it as that user, or as root")
	}
	if err == nil && req.Force {
		_ = mountpoint.Abort(m) // where it cannot, its requests end with the daemon
	}
	res.Unmounted = err == nil
	return res, err
}

func orNothing(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func reportUmount(w io.Writer, asJSON bool, res control.UnmountResult) error {
	if asJSON {
		if err := printJSON(w, res); err != nil {
			return err
		}
		if res.Busy {
			return silent(exit.Failed)
		}
		return nil
	}
	if !res.Busy {
		if len(res.WaitedFor) > 0 {
			fmt.Fprintf(w, "note: waited for a program that was ending: %s\n", oneLine(mountpoint.Names(res.WaitedFor)))
		}
		if text := staysText(res); text != "" {
			fmt.Fprintln(w, text)
		}
		if len(res.HeldBy) > 0 {
			fmt.Fprintf(w, "note: it lives on in another mount namespace, that of %s; nothing is unsent\n", oneLine(mountpoint.Names(res.HeldBy)))
		}
		return nil
	}
	var users []string
	lives := false
	for _, h := range res.Holders {
		fmt.Fprintf(w, "  %s\n", oneLine(h.String()))
		lives = lives || !h.Exiting
		users = append(users, fmt.Sprint(h.PID))
	}
	for _, path := range res.Inside {
		fmt.Fprintf(w, "  %s is mounted inside\n", oneLine(path))
	}
	e := exit.New(exit.Failed, "%s is in use%s", res.Mountpoint, openText(res.OpenFiles))
	if len(users) == 0 && len(res.Inside) == 0 {
		return e.Hint("%s", unseenUser(os.Geteuid() == 0, res.OpenFiles > 0))
	}
	if len(users) == 0 {
		return e.Hint("unmount what is inside first, or give --lazy")
	}
	if !lives {
		return e.Hint("%s ending: try again, or give --lazy or --force", plural(len(users), "this program is", "these programs are"))
	}
	return e.Hint("end %s, or give --lazy or --force", plural(len(users), "this program", "these programs")+" ("+strings.Join(users, ", ")+")")
}

func openText(files int) string {
	if files == 0 {
		return ""
	}
	return ": " + plural(files, "1 file is open", fmt.Sprintf("%d files are open", files))
}

// unseenUser is the advice for a mount in use of which no user is visible. With
// open files, a close may be under way, of which no descriptor is left.
func unseenUser(root, open bool) string {
	switch {
	case root && open:
		return "a close may still wait for the store, `wsmount status` shows it: try again, or give --force"
	case open:
		return "a close may still wait for the store, or it is a program of another user: try again; root can see which"
	}
	if root { // sees every process: it is one that ends, or the kernel
		return "no program seems to use it, perhaps one is just ending: try again, or give --force"
	}
	return "by a program of another user; root can see which"
}
