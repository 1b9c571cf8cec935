package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// stateRoot is the state directory that the command line and environment choose.
func stateRoot(c *cli.Context) (string, error) {
	return state.Root(c.String("state-dir"), os.Getenv)
}

// allMounts lists the mounts recorded in the state directory.
func allMounts(c *cli.Context) ([]*state.Record, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	return state.List(root)
}

// findMount returns the record of the mount that path lies in.
func findMount(c *cli.Context, path string) (*state.Record, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	return mounts.Find(root, path)
}

// absolute makes a path absolute without following symbolic links.
func absolute(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", exit.New(exit.Usage, "%w", err).Hint("change to a directory that exists, or give an absolute path")
	}
	return p, nil
}

// target finds the mount that the first argument lies in, and the path in it,
// without leading slash, that the two arguments together name. So `log /mnt/ws
// docs/a`, `log /mnt/ws/docs a` and `log /mnt/ws/docs/a` are one, and so is `log ws
// ws/docs/a`, as a shell completes it.
func target(c *cli.Context, args []string) (r *state.Record, rel string, err error) {
	if r, err = findMount(c, args[0]); err != nil {
		return nil, "", err
	}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil, "", err
	}
	place, err := table.Resolve(args[0])
	if err != nil {
		return nil, "", err
	}
	if len(args) > 1 {
		if place, err = second(table, r, place, args[1]); err != nil {
			return nil, "", err
		}
	}
	rel, outside := mounts.Relative(r.Mountpoint, place)
	if outside != nil {
		return nil, "", outside.Hint("give a path that is relative to the first argument, or one that leads into the mount")
	}
	return r, rel, nil
}

// second resolves a second argument if the first is a place in the mount. A
// relative path counts from that place, unless it leads into the mount from a
// working directory outside, and its first element does not exist at the place.
func second(table mountpoint.Table, r *state.Record, place, arg string) (string, error) {
	resolved, err := table.Resolve(arg)
	if err != nil || filepath.IsAbs(arg) {
		return resolved, err
	}
	below := filepath.Join(place, arg)
	here, err := table.Resolve(".")
	if err != nil || mountpoint.Within(here, r.Mountpoint) || !mountpoint.Within(resolved, r.Mountpoint) {
		return below, err
	}
	first, _, _ := strings.Cut(filepath.Clean(arg), "/")
	if _, err := os.Lstat(filepath.Join(place, first)); err == nil {
		return below, nil
	}
	return resolved, nil
}

// wanted is target for a command that needs a file or directory in the mount.
func wanted(c *cli.Context, args []string) (*state.Record, string, error) {
	r, rel, err := target(c, args)
	if err == nil && rel == "" {
		err = exit.New(exit.Usage, "a path in the mount is needed").Hint("wsmount %s", synopsis(c.Command))
	}
	return r, rel, err
}

// syncFlags are the flags of pull, commit and push.
func syncFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "at", Usage: "reach only the part of the mount at this `PATH`"},
		&cli.DurationFlag{Name: "timeout", Value: time.Minute, DefaultText: "1m", Usage: "`TIME` to wait while nothing comes further"},
	}
}

func confirmFlag() cli.Flag {
	return &cli.BoolFlag{Name: "confirm", Usage: "allow, once, what was stopped because too much would be deleted"}
}

// syncNow has the daemon pull, commit or push, and shows the progress.
func syncNow(c *cli.Context, verb string) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	if c.Duration("timeout") <= 0 {
		return exit.New(exit.Usage, "--timeout must be more than nothing").Hint("for example --timeout 5m")
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return err
	}
	client := control.NewClient(r.SocketPath())
	ctx, cancel := client.Patient(c.Context, c.Duration("timeout"))
	defer cancel()
	stop := progress.Show(ctx, r.SocketPath())
	res, err := client.Sync(ctx, control.SyncRequest{Verb: verb, At: c.String("at"),
		Message: c.String("message"), Confirm: c.Bool("confirm"), PR: c.Bool("pr"), NoWait: c.Bool("no-wait"), Timeout: c.Duration("timeout").Seconds()})
	stop()
	if err != nil {
		return err
	}
	if verb == control.VerbPull && len(res.PutOff) > 0 && res.Exit == 0 {
		res.Exit = int(exit.Failed)
	}
	return reportEvent(c, res)
}
