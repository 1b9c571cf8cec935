package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/known"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/mountspec/host"
)

func listCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the workspaces that this host can mount", Action: listAction,
		Description: "Shows those of the configuration and the registry, those below the search path, and those of " +
			"~/.agentproto: their storage, whether they are registered, and where they are mounted. What cannot be mounted " +
			"as it stands has a ! and the reason, and `wsmount resolve ADDRESS` tells more. No store is asked.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "tag", Usage: "only those with this `TAG`; given again, with each"},
			&cli.StringFlag{Name: "owner", Usage: "only those of this `OWNER`"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print addresses only"},
		},
	}
}

// workspacesJSON is the output of `wsmount list --json` and `wsmount find --json`.
type workspacesJSON struct {
	Schema     string            `json:"schema"` // wsmount.workspaces/v1
	Workspaces []known.Workspace `json:"workspaces"`
	Skipped    []string          `json:"skipped,omitempty"` // skipped paths of the search path
}

func listAction(c *cli.Context) error {
	if _, err := wantArgs(c, 0, 0); err != nil {
		return err
	}
	out := workspacesJSON{Schema: "wsmount.workspaces/v1", Workspaces: []known.Workspace{}}
	all, err := askHost(c, false, func(r *host.Resolver) (all []host.Known, err error) {
		all, out.Skipped, err = r.Enumerate(c.Context)
		return all, err
	})
	if err != nil {
		return err
	}
	records, err := allMounts(c)
	if err != nil {
		return err
	}
	mounted := mounts.Places(records)
	for _, k := range all {
		if owner := strings.TrimPrefix(c.String("owner"), "@"); owner != "" && owner != k.Address.Owner {
			continue
		}
		w := known.Of(k)
		if slices.ContainsFunc(c.StringSlice("tag"), func(tag string) bool { return !slices.Contains(w.Tags, tag) }) {
			continue
		}
		w.Mountpoints = mounted[w.Address]
		out.Workspaces = append(out.Workspaces, w)
	}
	if c.Bool("quiet") {
		return show(c, out, printAddresses)
	}
	return show(c, out, func(w io.Writer, out workspacesJSON) {
		printWorkspaces(w, out.Workspaces, mountedAt, "no workspace is known: `wsmount registry add DIRECTORY` registers one")
		printEach(c.App.ErrWriter, "skipped: ", out.Skipped)
	})
}

func printAddresses(w io.Writer, out workspacesJSON) {
	for _, k := range out.Workspaces {
		if k.Address != "" {
			fmt.Fprintln(w, k.Address)
		}
	}
}

// mountedAt is the last column of `wsmount list`.
func mountedAt(w known.Workspace) string {
	return oneLine(orNothing(strings.Join(w.Mountpoints, ", "), "not mounted"))
}

// printWorkspaces prints a line for each, with end as the last column, and the problems below all.
func printWorkspaces(w io.Writer, list []known.Workspace, end func(known.Workspace) string, none string) {
	if len(list) == 0 {
		fmt.Fprintln(w, none)
		return
	}
	name := func(k known.Workspace) string { return orNothing(k.Address, oneLine(k.Path)) }
	var table [][]string
	for _, k := range list {
		sign, marks := " ", ""
		if k.Problem != "" {
			sign = "!"
		}
		if m := k.Marks(); m != "" {
			marks = " (" + m + ")"
		}
		table = append(table, []string{sign + " " + name(k), orNothing(oneLine(k.Provider), "-"), end(k) + marks})
	}
	screen.Of(w).Table(nil, table)
	for _, k := range list {
		if k.Problem != "" {
			fmt.Fprintf(w, "\n! %s\n", name(k))
			row := rows(w, 2)
			row("why", k.Problem)
			row("hint", k.Hint)
		}
	}
}

func findCommand() *cli.Command {
	return &cli.Command{
		Name: "find", Usage: "find the manifests in a directory", ArgsUsage: "[DIR]", Action: findAction,
		Description: "Shows each WORKSPACE.md in DIR, or the current directory, and in the directories in it, with its " +
			"address and what is wrong with it, as `find DIR -maxdepth 2 -name WORKSPACE.md` would. Nothing is registered.",
	}
}

func findAction(c *cli.Context) error {
	args, err := wantArgs(c, 0, 1)
	if err != nil {
		return err
	}
	dir, err := absolute(append(args, ".")[0])
	if err != nil {
		return err
	}
	found, err := askHost(c, false, func(r *host.Resolver) ([]host.Known, error) { return r.Manifests(c.Context, dir) })
	if err != nil {
		return err
	}
	out := workspacesJSON{Schema: "wsmount.workspaces/v1", Workspaces: []known.Workspace{}}
	for _, k := range found {
		out.Workspaces = append(out.Workspaces, known.Of(k))
	}
	return show(c, out, func(w io.Writer, out workspacesJSON) {
		printWorkspaces(w, out.Workspaces, func(k known.Workspace) string { return oneLine(k.Path) }, "no WORKSPACE.md in "+oneLine(dir)+", nor in a directory in it")
	})
}
