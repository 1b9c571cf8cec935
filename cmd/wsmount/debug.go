package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/debugbundle"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

func debugCommand() *cli.Command {
	return &cli.Command{
		Name:      "debug",
		Usage:     "collect what a bug report needs, without secrets",
		ArgsUsage: "MOUNTPOINT",
		Description: "Writes a .tar.gz with the mount's status, configuration, counters, metrics, goroutines " +
			"and logs. It holds names of files and workspaces, and no content, credential or " +
			"environment. Also works on a daemon that does not answer.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE`, - for standard output"},
		},
		Action: debugAction,
	}
}

func debugAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return err
	}
	name := c.String("output")
	if name == "-" {
		return debugbundle.Write(c.Context, c.App.Writer, r, readVersion())
	}
	if name == "" {
		name = "wsmount-debug-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("give another name with --output")
	}
	if err := errors.Join(debugbundle.Write(c.Context, f, r, readVersion()), f.Close()); err != nil {
		os.Remove(name)
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, struct {
			Schema string `json:"schema"`
			File   string `json:"file"`
		}{"wsmount.bundle/v1", name})
	}
	_, err = fmt.Fprintln(c.App.Writer, name)
	return err
}
