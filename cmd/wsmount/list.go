package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
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

// workspacesJSON is what `wsmount list --json` and `wsmount find --json` print.
type workspacesJSON struct {
	Schema     string          `json:"schema"` // wsmount.workspaces/v1
	Workspaces []workspaceJSON `json:"workspaces"`
	Skipped    []string        `json:"skipped,omitempty"` // what looked like a workspace on the search path
}

// workspaceJSON is one workspace of workspacesJSON.
type workspaceJSON struct {
	Address     string        `json:"address,omitempty"`
	Name        string        `json:"name,omitempty"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version,omitempty"`
	Path        string        `json:"path"`
	Source      string        `json:"source,omitempty"` // what leads to it: a configuration, a registry, a directory of the search path
	Trust       string        `json:"trust"`            // registered or unverified
	OwnerType   string        `json:"ownerType,omitempty"`
	Provider    string        `json:"provider,omitempty"`
	Location    string        `json:"location,omitempty"`
	Tags        []string      `json:"tags,omitempty"`
	Code        *control.Code `json:"code,omitempty"`       // of a code project
	Template    bool          `json:"template,omitempty"`   // others may begin from it
	Visibility  string        `json:"visibility,omitempty"` // private, unlisted or public
	Mountpoints []string      `json:"mountpoints,omitempty"`
	Problem     string        `json:"problem,omitempty"` // why it cannot be mounted as it stands
	Hint        string        `json:"hint,omitempty"`
}

func showWorkspace(k host.Known) workspaceJSON {
	out := workspaceJSON{Path: k.Path, Source: k.Source, Trust: k.Trust.String(), Provider: k.Provider}
	if k.Address.Owner != "" {
		out.Address = k.Address.String()
	}
	if k.Location.Provider != "" {
		out.Location = k.Location.String()
	}
	if w := k.Workspace; w != nil {
		out.Name, out.Description, out.Version, out.OwnerType, out.Tags = w.Name, w.Description, w.Version, w.Owner.Type, w.Tags
		out.Code, out.Template, out.Visibility = control.CodeOf(k.Code), w.Publish.Template, w.Publish.Visibility
	}
	if k.Err != nil {
		e := exit.From(daemon.Refusal(k.Err))
		out.Problem, out.Hint = e.Error(), e.Advice
	}
	return out
}

// marks are the few words of a line that tell what is special.
func (w workspaceJSON) marks() string {
	var out []string
	for _, m := range []struct {
		is   bool
		word string
	}{{w.Trust != host.Registered.String(), w.Trust}, {w.Code != nil, "code"}, {w.Template, "template"},
		{w.Visibility != "" && w.Visibility != "private", w.Visibility}} {
		if m.is {
			out = append(out, m.word)
		}
	}
	return strings.Join(out, ", ")
}

func listAction(c *cli.Context) error {
	if _, err := wantArgs(c, 0, 0); err != nil {
		return err
	}
	out := workspacesJSON{Schema: "wsmount.workspaces/v1", Workspaces: []workspaceJSON{}}
	known, err := askHost(c, false, func(r *host.Resolver) (known []host.Known, err error) {
		known, out.Skipped, err = r.Enumerate(c.Context)
		return known, err
	})
	if err != nil {
		return err
	}
	mounted, err := mountpoints(c)
	if err != nil {
		return err
	}
	for _, k := range known {
		if owner := strings.TrimPrefix(c.String("owner"), "@"); owner != "" && owner != k.Address.Owner {
			continue
		}
		w := showWorkspace(k)
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

// mountpoints are where each workspace is mounted, by address.
func mountpoints(c *cli.Context) (map[string][]string, error) {
	records, err := allMounts(c)
	if err != nil {
		return nil, err
	}
	at := map[string][]string{}
	for _, r := range records {
		if r.Alive() {
			at[r.Workspace] = append(at[r.Workspace], r.Mountpoint)
		}
	}
	return at, nil
}

// mountedAt is the last column of `wsmount list`.
func mountedAt(w workspaceJSON) string {
	return oneLine(orNothing(strings.Join(w.Mountpoints, ", "), "not mounted"))
}

// printWorkspaces prints a line for each, whose last column is end, and the problems
// below all.
func printWorkspaces(w io.Writer, list []workspaceJSON, end func(workspaceJSON) string, none string) {
	if len(list) == 0 {
		fmt.Fprintln(w, none)
		return
	}
	name := func(k workspaceJSON) string { return orNothing(k.Address, oneLine(k.Path)) }
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range list {
		sign, marks := " ", ""
		if k.Problem != "" {
			sign = "!"
		}
		if m := k.marks(); m != "" {
			marks = " (" + m + ")"
		}
		fmt.Fprintf(t, "%s %s\t%s\t%s%s\n", sign, name(k), orNothing(oneLine(k.Provider), "-"), end(k), marks)
	}
	_ = t.Flush()
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
	known, err := askHost(c, false, func(r *host.Resolver) ([]host.Known, error) { return r.Manifests(c.Context, dir) })
	if err != nil {
		return err
	}
	out := workspacesJSON{Schema: "wsmount.workspaces/v1", Workspaces: []workspaceJSON{}}
	for _, k := range known {
		out.Workspaces = append(out.Workspaces, showWorkspace(k))
	}
	return show(c, out, func(w io.Writer, out workspacesJSON) {
		printWorkspaces(w, out.Workspaces, func(k workspaceJSON) string { return oneLine(k.Path) }, "no WORKSPACE.md in "+oneLine(dir)+", nor in a directory in it")
	})
}
