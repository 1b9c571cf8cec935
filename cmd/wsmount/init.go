package main

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a WORKSPACE.md that validates",
		ArgsUsage: "[DIR]",
		Description: "Makes DIR if needed and declares it as a workspace whose files lie in it; or, with --from-row, writes what " +
			"the host configuration says of a workspace, where that is looked for. Never overwrites a manifest.\n\n" +
			"  wsmount init ./notes --id @acme/notes --register\n" +
			"  wsmount @acme/notes /mnt/notes",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "id", Usage: "`ADDRESS`, @owner/slug (default: from the login and the directory)"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` for people (default: the directory's)"},
			&cli.StringFlag{Name: "owner-id", Usage: "stable `ID` of the owner (default: the one that this host knows, or a new one)"},
			&cli.StringFlag{Name: "provider", DefaultText: mountspec.ProviderLocalFS, Usage: "storage `PROVIDER`, local-fs or dev-local"},
			&cli.StringFlag{Name: "from-row", Usage: "the workspace with this `ADDRESS` in the host configuration, instead of DIR"},
			&cli.BoolFlag{Name: "register", Usage: "also enter it in the registry of this host"},
		},
		Action: initAction,
	}
}

// initialized is what `wsmount init --json` prints.
type initialized struct {
	Schema     string   `json:"schema"` // wsmount.init/v1
	ID         string   `json:"id"`
	Manifest   string   `json:"manifest"`
	Registered bool     `json:"registered"`
	Notes      []string `json:"notes,omitempty"` // what registering it noticed
}

func initAction(c *cli.Context) error {
	w, manifest, err := declared(c)
	if err != nil {
		return err
	}
	out := initialized{Schema: "wsmount.init/v1", ID: w.ID.String(), Manifest: manifest, Registered: c.Bool("register")}
	if out.Registered {
		e, err := addNew(c, w, manifest)
		if err != nil {
			return err
		}
		out.Notes = e.Notes
	} else if _, err := manifestfile.WriteNew(manifest, w); err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, out)
	}
	printNotes(c, out.Notes)
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s\n", out.ID, manifest)
	return err
}

// addNew writes a manifest and enters it in the registry, or leaves nothing behind.
func addNew(c *cli.Context, w *mountspec.Workspace, manifest string) (host.Entry, error) {
	undo, err := manifestfile.WriteNew(manifest, w)
	if err != nil {
		return host.Entry{}, err
	}
	e, err := addEntry(c, manifest, host.AddOptions{Address: w.ID, OwnerID: orNothing(c.String("owner-id"), w.Owner.ID)})
	if err != nil {
		undo()
	}
	return e, err
}

// declared is the workspace that is asked for, and where its manifest goes.
func declared(c *cli.Context) (*mountspec.Workspace, string, error) {
	row := c.String("from-row")
	if row == "" {
		args, err := wantArgs(c, 1, 1)
		if err != nil {
			return nil, "", err
		}
		dir, err := absolute(args[0])
		if err != nil {
			return nil, "", err
		}
		w, err := newWorkspace(c, dir)
		return w, filepath.Join(dir, "WORKSPACE.md"), err
	}
	if _, err := wantArgs(c, 0, 0); err != nil {
		return nil, "", err
	}
	a, err := readAddress(row, "for example --from-row @acme/notes")
	if err != nil {
		return nil, "", err
	}
	h, err := openHost(c, false)
	if err != nil {
		return nil, "", err
	}
	defer h.close()
	w, manifest := h.resolver.Row(a)
	if w == nil {
		return nil, "", exit.New(exit.Unresolvable, "the host configuration says nothing of %s that a manifest would", a).
			Hint("write name, storage or the like into its entry of workspaces, or `wsmount init DIR --id %s`", a)
	}
	return w, manifest, nil
}

func newWorkspace(c *cli.Context, dir string) (*mountspec.Workspace, error) {
	id, err := readAddress(orNothing(c.String("id"), manifestfile.Address(dir)), "for example --id @acme/notes")
	if err != nil {
		return nil, err
	}
	owner, err := ownerID(c, id.Owner)
	if err != nil {
		return nil, err
	}
	return manifestfile.New(dir, id, owner, manifestfile.Options{Name: c.String("name"), Provider: c.String("provider")})
}

// ownerID is the id that was given, that this host knows the owner by, or a new one.
func ownerID(c *cli.Context, owner string) (string, error) {
	if id := c.String("owner-id"); id != "" {
		return id, nil
	}
	id, err := askHost(c, false, func(r *host.Resolver) (string, error) { return r.OwnerID(c.Context, owner) })
	return orNothing(id, strings.ToUpper(rand.Text())), err
}
