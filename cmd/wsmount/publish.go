package main

import (
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/template"
	"github.com/wsmount/wsmount/mountspec/host"
)

func publishCommand() *cli.Command {
	return &cli.Command{
		Name: "publish", Usage: "write a bundle of files that others can begin from", ArgsUsage: "ADDRESS", Action: publishAction,
		Description: "Shows what will go out, asks, and writes it into the directory published beside the registry, under the " +
			"manifest's version, which is published once. The manifest has to be registered and not private, and its policy has " +
			"to grant workspace:publish. What it excludes, secrets, files in which programs keep credentials, and repositories of " +
			"git stay; a file in which a credential stands refuses. `wsmount init DIR --from FILE` begins from the bundle.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.BoolFlag{Name: "show", Usage: "only show what would go out"},
		},
	}
}

func publishAction(c *cli.Context) error {
	a, err := addressArg(c)
	if err != nil {
		return err
	}
	h, err := openHost(c, true)
	if err != nil {
		return err
	}
	defer h.close()
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	plan, err := template.Look(ctx, templateHost(c, h.resolver), a)
	if err != nil {
		return daemon.Refusal(err)
	}
	defer plan.Close()
	out := plan.Shown()
	if !c.Bool("json") {
		out.Print(c.App.Writer)
		printNotes(c, out.Notes)
	}
	if !c.Bool("show") {
		if !agreed(c, "publish this?") {
			return exit.New(exit.Denied, "%s was not published", a).Hint("look at what would go out, then answer y at a terminal or give --yes")
		}
		if out.Bundle, out.SHA256, err = plan.Publish(ctx); err != nil {
			return err
		}
	}
	return show(c, out, func(w io.Writer, out template.Shown) {
		if out.Bundle != "" {
			fmt.Fprintf(w, "\npublished as %s\nsha256 %s\n", oneLine(out.Bundle), out.SHA256)
		}
	})
}

// templateHost is this machine, for templates.
func templateHost(c *cli.Context, r *host.Resolver) template.Host {
	root, _ := stateRoot(c)
	return template.Host{Resolver: r, State: root}
}
