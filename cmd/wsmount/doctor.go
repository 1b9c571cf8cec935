package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/doctor"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "say what would keep a mount from working",
		ArgsUsage: "[WORKSPACE [MOUNTPOINT]]",
		Description: "Looks at the machine, its limits, the host configuration and the state directory. With a " +
			"workspace also goes the whole way of mounting it, up to the mount, and asks a store in a network: there it " +
			"tries a scratch key, which it removes, unless the workspace is read-only. With --requires, also says where agentm's memory will lie, and of each part of the workspace whether it promises that. Changes nothing else.",
		Flags:  append(resolveFlags(), &cli.StringFlag{Name: "requires", Usage: "agentm's memory, and the workspace, are to promise `LIST`, such as sync,encryption"}),
		Action: doctorAction,
	}
}

func doctorAction(c *cli.Context) error {
	args, err := wantArgs(c, 0, 2)
	if err != nil {
		return err
	}
	required, err := seam.ParseCapabilities(c.String("requires"))
	if err != nil {
		return exit.New(exit.Usage, "--requires: %w", err).Hint("for example --requires sync,encryption")
	}
	checks := append(doctor.Machine(), doctor.State(stateRoot(c))...)
	if c.IsSet("requires") {
		checks = append(checks, doctor.Memory(c.Context, all.Backends(), memorySettings(c), required))
	}
	h, err := openHost(c, false)
	if err != nil {
		checks = append(checks, doctor.Configuration(nil, err)...)
	} else {
		checks = append(append(checks, doctor.Configuration(h.config, nil)...), doctor.Registry(h.resolver.List()))
		h.close()
		if len(args) > 0 {
			checks = append(checks, diagnoseWorkspace(c, required)...)
		}
	}
	d := doctor.Diagnose(checks)
	if err := show(c, d, printDiagnosis); err != nil {
		return err
	}
	return silent(d.Exit)
}

func diagnoseWorkspace(c *cli.Context, required seam.Capabilities) []doctor.Check {
	req, closeRequest, err := mountRequest(c, false)
	if err != nil {
		return doctor.Workspace(nil, err)
	}
	defer closeRequest()
	req.IfNotMounted = true
	tree, err := daemon.Resolve(c.Context, req)
	checks := doctor.Workspace(tree, err)
	switch {
	case err != nil:
		return checks
	case slices.ContainsFunc(tree.Sources, daemon.Source.IsRemote):
		return append(checks, diagnoseStores(c, required)...)
	}
	return append(checks, doctor.Promises(c.Context, tree, required)...)
}

// diagnoseStores asks the services. It uses secrets, so it resolves once more,
// with an audit of the reveals.
func diagnoseStores(c *cli.Context, required seam.Capabilities) []doctor.Check {
	req, closeRequest, err := mountRequest(c, true)
	if err != nil {
		return doctor.Workspace(nil, err)
	}
	defer closeRequest()
	req.IfNotMounted, req.Create = true, false
	tree, err := daemon.Resolve(c.Context, req)
	if err != nil {
		return doctor.Workspace(nil, err)
	}
	return append(doctor.Stores(c.Context, tree), doctor.Promises(c.Context, tree, required)...)
}

var levels = map[doctor.Level]screen.Colour{doctor.OK: screen.Good, doctor.Note: screen.Warn, doctor.Problem: screen.Bad}

func printDiagnosis(w io.Writer, d doctor.Diagnosis) {
	for _, c := range d.Checks {
		s, margin := screen.Of(w), 22
		head, text := s.Paint(levels[c.Level], fmt.Sprintf("%-8s", c.Level)), oneLine(c.Says)
		if s.Width > 0 && s.Width < 3*margin {
			margin, text = 8, oneLine(c.Name)+": "+text
		} else {
			head += fmt.Sprintf("%-14s", oneLine(c.Name)+" ")
		}
		s.Wrapped(head, margin, text)
		if c.Do != "" {
			s.Wrapped(strings.Repeat(" ", margin), margin, "do: "+oneLine(c.Do))
		}
	}
}
