package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/unmount"
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
	req, limit := control.UnmountRequest{Lazy: c.Bool("lazy"), Force: c.Bool("force")}, unmount.AsLongAsItTries
	if c.IsSet("timeout") {
		limit = c.Duration("timeout")
		req.Timeout = limit.Seconds()
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return umountUnknown(c, args[0], req, err)
	}
	dirs := unmount.CopyDirs(r)
	res, err := unmount.Mount(c.Context, r, req, limit)
	if req.Force && (err == nil || exit.From(err).Code == exit.Unsafe) {
		err = unmount.Export(c.Context, r, dirs)
	}
	if err != nil {
		return err
	}
	if res.Busy || req.Lazy || r.Alive() {
		return reportUmount(c.App.Writer, c.Bool("json"), res)
	}
	unread := unmount.Left(c.Context, r, dirs, &res)
	err = reportUmount(c.App.Writer, c.Bool("json"), res)
	if s, _ := unmount.LastStatus(r); err != nil || s.State == control.Stopped {
		return err
	}
	// The daemon was gone, or its disk full: no status says that all was sent as policy wants.
	switch {
	case unmount.StaysText(res) != "":
		return silent(exit.Unsafe)
	case unread != nil:
		return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be read: %w", r.Mountpoint, unread).
			Hint("`wsmount recover` tells more")
	}
	return nil
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
		dirs, _ := findCopies(c, "")
		return cmp.Or(unmount.LeftAt(c.Context, dirs, resolved), unknown)
	}
	res, err := unmount.Path(resolved, req)
	if err != nil {
		return err
	}
	return reportUmount(c.App.Writer, c.Bool("json"), res)
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
		if text := unmount.StaysText(res); text != "" {
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
