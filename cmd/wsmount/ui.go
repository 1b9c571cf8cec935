package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/browser"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/ui"
)

func uiCommand() *cli.Command {
	return &cli.Command{
		Name:      "ui",
		Usage:     "show a mount in a browser: changes, conflicts, history, queue",
		ArgsUsage: "MOUNTPOINT",
		Description: "Serves a page on 127.0.0.1 until Ctrl-C, and prints its address, which lets one browser in, once. The page shows the changes of " +
			"each turn with diffs, conflicts with both sides and a button for each, the history of a file and its restore, what waits to be sent and what failed, and " +
			"how the mount is; it keeps itself up to date, and can be read without JavaScript. It does and refuses what log, diff, restore, conflicts, commit and status " +
			"do, and loads nothing from elsewhere. At a terminal with a desktop a browser is opened.\n\n" +
			"  wsmount ui /mnt/ws\n" +
			"  ssh -t -L 8080:127.0.0.1:8080 HOST wsmount ui /mnt/ws --port 8080",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "port", DefaultText: "one that is free", Usage: "serve at this `PORT` of 127.0.0.1"},
			&cli.BoolFlag{Name: "open", Usage: "open a browser, also without a terminal"},
			&cli.BoolFlag{Name: "no-open", Usage: "open no browser"},
		},
		Action: uiAction,
	}
}

func uiAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	port := c.Int("port")
	if port < 0 || port > 65535 {
		return exit.New(exit.Usage, "--port %d is not a port", port).Hint("a number up to 65535; without it a port that is free is chosen")
	}
	if c.Bool("open") && c.Bool("no-open") {
		return exit.New(exit.Usage, "--open and --no-open exclude each other").Hint("give one of them")
	}
	root, err := stateRoot(c)
	if err != nil {
		return err
	}
	mount, err := ui.At(root, args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	terminal := sandbox.IsTerminal(os.Stdout)
	var opened browser.Opened
	defer opened.Close()
	return ui.Serve(ctx, mount, ui.Options{Port: port, Version: readVersion().Version, Ready: func(url string) (err error) {
		if c.Bool("json") {
			err = printJSON(c.App.Writer, map[string]string{"schema": "wsmount.ui/v1", "workspace": mount.Workspace, "mountpoint": mount.Mountpoint, "url": url})
		} else {
			_, err = fmt.Fprintln(c.App.Writer, url)
		}
		if terminal {
			fmt.Fprintf(c.App.ErrWriter, "It shows %s at %s, to one browser. Ctrl-C ends it.\n", oneLine(mount.Workspace), oneLine(mount.Mountpoint))
		}
		if err != nil || c.Bool("no-open") || !c.Bool("open") && !(terminal && browser.Likely()) {
			return err
		}
		opened, err = browser.Open(url)
		if err != nil && !c.Bool("open") { // the user did not ask for it
			err = nil
		}
		return err
	}})
}
