package main

import (
	"crypto/rand"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/cmd/internal/template"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/origin"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a WORKSPACE.md that validates",
		ArgsUsage: "[DIR]",
		Description: "Makes DIR if needed and declares it as a workspace whose files lie in it; or, with --from-row, writes what " +
			"the host configuration says of a workspace, where that is looked for. Never overwrites a manifest.\n\n" +
			"With --from, DIR is new or empty, and gets the files of a template: a workspace whose manifest says publish: { " +
			"template: true }, and that is public, of the same owner, or of one that allow_refs names; or of a file that `wsmount " +
			"publish` wrote. What its manifest excludes, secrets and repositories of git are not copied, nor what another owner's " +
			"asks of the host. DIR appears as a whole, or not at all.\n\n" +
			"  wsmount init ./notes --id @acme/notes --register\n" +
			"  wsmount @acme/notes /mnt/notes",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "id", Usage: "`ADDRESS`, @owner/slug (default: from the login and the directory)"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` for people (default: the directory's)"},
			&cli.StringFlag{Name: "owner-id", Usage: "stable `ID` of the owner (default: the one that this host knows, or a new one)"},
			&cli.StringFlag{Name: "provider", DefaultText: mountspec.ProviderLocalFS, Usage: "storage `PROVIDER`, local-fs or dev-local"},
			&cli.StringFlag{Name: "storage", Usage: "`PLACE` where its files are to lie, as `wsmount registry add` has it, instead of DIR"},
			&cli.StringFlag{Name: "from-row", Usage: "the `WORKSPACE` with this address in the host configuration, instead of DIR"},
			&cli.StringFlag{Name: "from", Usage: "begin with the files of `TEMPLATE`, an address or the path of a bundle"},
			&cli.BoolFlag{Name: "register", Usage: "also enter it in the registry of this host"},
		}, placeFlags()...),
		Action: initAction,
	}
}

// initialized is what `wsmount init --json` prints.
type initialized struct {
	Schema     string   `json:"schema"` // wsmount.init/v1
	ID         string   `json:"id"`
	Manifest   string   `json:"manifest"`
	Registered bool     `json:"registered"`
	Notes      []string `json:"notes,omitempty"` // what a person should know

	Template string           `json:"template,omitempty"` // what it began from, with its version
	LeftOut  []bundle.LeftOut `json:"leftOut,omitempty"`
}

func initAction(c *cli.Context) error {
	begin := initNew
	if c.String("from") != "" {
		begin = initFrom
	}
	out, err := begin(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, out)
	}
	printNotes(c, out.Notes)
	for _, l := range out.LeftOut {
		fmt.Fprintf(c.App.ErrWriter, "left out: %s: %s\n", oneLine(l.Path), l.Reason)
	}
	from := ""
	if out.Template != "" {
		from = ", from " + out.Template
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s%s\n", out.ID, out.Manifest, from)
	return err
}

// register enters what was made in the registry, if that is asked for, or takes it away
// again.
func (i *initialized) register(c *cli.Context, w *mountspec.Workspace, undo func()) error {
	i.Schema, i.ID = "wsmount.init/v1", w.ID.String()
	if i.Registered = c.Bool("register"); !i.Registered {
		return nil
	}
	e, err := addNew(c, w, i.Manifest, undo)
	i.Notes = append(i.Notes, e.Notes...)
	return err
}

// addNew enters a manifest in the registry that was written for it, or takes it away again.
func addNew(c *cli.Context, w *mountspec.Workspace, manifest string, undo func()) (host.Entry, error) {
	e, err := addEntry(c, manifest, host.AddOptions{Address: w.ID, OwnerID: orNothing(c.String("owner-id"), w.Owner.ID)})
	if err != nil {
		undo()
	}
	return e, err
}

// initNew writes a manifest.
func initNew(c *cli.Context) (out initialized, err error) {
	w, manifest, err := declared(c)
	if err != nil {
		return out, err
	}
	undo, err := manifestfile.WriteNew(manifest, w)
	if err != nil {
		return out, err
	}
	out.Manifest = manifest
	err = out.register(c, w, undo)
	return out, err
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
	for _, f := range []string{"id", "name", "provider", "storage", "endpoint", "region", "auth"} {
		if c.IsSet(f) {
			return nil, "", exit.New(exit.Usage, "--%s is not for --from-row: the host configuration says it", f).Hint("leave it out, or change the row: wsmount registry set %s", oneLine(row))
		}
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
	id, owner, err := newOwner(c, dir)
	if err != nil {
		return nil, err
	}
	o, err := fileOptions(c, id)
	if err != nil {
		return nil, err
	}
	return manifestfile.New(dir, id, owner, o)
}

// newOwner is the address of a new workspace, and the id of its owner.
func newOwner(c *cli.Context, dir string) (id mountspec.Address, owner string, err error) {
	if id, err = readAddress(orNothing(c.String("id"), manifestfile.Address(dir)), "for example --id @acme/notes"); err == nil {
		owner, err = ownerID(c, id.Owner)
	}
	return id, owner, err
}

func fileOptions(c *cli.Context, id mountspec.Address) (o manifestfile.Options, err error) {
	o = manifestfile.Options{Name: c.String("name"), Provider: c.String("provider")}
	place := c.String("storage")
	for _, f := range map[bool][]string{true: {"provider"}, false: {"endpoint", "region", "auth"}}[place != ""] {
		if c.IsSet(f) {
			return o, exit.New(exit.Usage, "--%s is %s --storage", f, map[bool]string{true: "not for", false: "of"}[place != ""]).Hint("%s", origin.PlaceHint)
		}
	}
	if place == "" {
		return o, nil
	}
	h, err := openHost(c, false)
	if err != nil {
		return o, err
	}
	defer h.close()
	from, err := placeOf(c, place).Origin(h.config.GitHub.BaseURL)
	if err != nil {
		return o, err
	}
	if o.Storage, err = h.resolver.StorageAt(from, id.Owner); err != nil {
		return o, daemon.Refusal(err)
	}
	return o, nil
}

// initFrom makes a workspace that begins with the files of another.
func initFrom(c *cli.Context) (out initialized, err error) {
	args, err := wantArgs(c, 1, 1)
	if err == nil && c.String("from-row") != "" {
		err = exit.New(exit.Usage, "--from and --from-row name two beginnings").Hint("give one of them")
	}
	if err != nil {
		return out, err
	}
	o := template.Options{From: c.String("from"), Now: time.Now}
	if o.Dir, err = absolute(args[0]); err != nil {
		return out, err
	}
	if o.ID, o.OwnerID, err = newOwner(c, o.Dir); err != nil {
		return out, err
	}
	if o.File, err = fileOptions(c, o.ID); err != nil {
		return out, err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	begun, err := askHost(c, true, func(r *host.Resolver) (*template.Begun, error) { return template.Begin(ctx, templateHost(c, r), o) })
	if err != nil {
		return out, err
	}
	w := begun.Workspace
	out = initialized{Manifest: begun.Manifest, Notes: begun.Notes, Template: w.Template.ID.String() + " " + w.Template.Version, LeftOut: begun.Left}
	err = out.register(c, w, begun.Undo)
	return out, err
}

// ownerID is the id that was given, that this host knows the owner by, or a new one.
func ownerID(c *cli.Context, owner string) (string, error) {
	if id := c.String("owner-id"); id != "" {
		return id, nil
	}
	id, err := askHost(c, false, func(r *host.Resolver) (string, error) { return r.OwnerID(c.Context, owner) })
	return orNothing(id, strings.ToUpper(rand.Text())), err
}
