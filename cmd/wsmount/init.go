package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/setup"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
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
			"With --provider s3, github, local, azure, gcs or vault it tries the store, writes WORKSPACE.md and SECRETS.md, and prints " +
			"the lines that the host configuration needs, or writes them with --grant. At a terminal it asks for what is missing, and " +
			"for all of it without arguments. No secret is written, only where this host keeps it.\n\n" +
			"  wsmount init ./files --provider s3 --storage acme-files/notes --grant\n" +
			"  wsmount init ./notes --id @acme/notes --register\n" +
			"  wsmount @acme/notes /mnt/notes",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "id", Usage: "`ADDRESS`, @owner/slug (default: from the login and the directory)"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` for people (default: the directory's)"},
			&cli.StringFlag{Name: "owner-id", Usage: "stable `ID` of the owner (default: the one that this host knows, or a new one)"},
			&cli.StringFlag{Name: "provider", DefaultText: mountspec.ProviderLocalFS, Usage: "storage `PROVIDER`: local-fs or dev-local, or one to set up"},
			&cli.StringFlag{Name: "credentials", Usage: "`WHERE` this host has them, of a provider to set up: env:VARIABLE,..., file:PATH, command:PROGRAM ARGUMENTS, or none", DefaultText: "the usual variables of its service, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or GITHUB_TOKEN"},
			&cli.BoolFlag{Name: "grant", Usage: "write what a provider to set up needs into the host configuration"},
			&cli.BoolFlag{Name: "offline", Usage: "do not try the store of a provider to set up"},
			operatorFlag(),
			&cli.StringFlag{Name: "storage", Usage: "`PLACE` where its files are to lie, as `wsmount registry add` has it, instead of DIR"},
			&cli.StringFlag{Name: "from-row", Usage: "the `WORKSPACE` with this address in the host configuration, instead of DIR"},
			&cli.StringFlag{Name: "from", Usage: "begin with the files of `TEMPLATE`, an address or the path of a bundle"},
			&cli.BoolFlag{Name: "register", Usage: "also enter it in the registry of this host"},
		}, placeFlags()...),
		Action: initAction,
	}
}

// initialized is the output of `wsmount init --json`.
type initialized struct {
	Schema     string   `json:"schema"` // wsmount.init/v1
	ID         string   `json:"id"`
	Manifest   string   `json:"manifest"`
	Registered bool     `json:"registered"`
	Notes      []string `json:"notes,omitempty"` // for a person to read

	Template string           `json:"template,omitempty"` // the template's name and version
	LeftOut  []bundle.LeftOut `json:"leftOut,omitempty"`

	Setup *setup.Report `json:"setup,omitempty"` // of a provider that was set up
}

func initAction(c *cli.Context) error {
	begin := initNew
	switch {
	case c.String("from") != "":
		begin = initFrom
	case slices.Contains(setup.Providers(), c.String("provider")), c.NArg() == 0 && c.NumFlags() == 0 && sandbox.IsTerminal(os.Stdin):
		begin = initProvider
	case c.IsSet("provider") && !slices.Contains(manifestfile.Providers, c.String("provider")):
		all := append(slices.Clone(manifestfile.Providers), setup.Providers()...)
		return exit.New(exit.Usage, "there is no provider %.60q", c.String("provider")).Hint("%s", cmp.Or(suggest.Phrase(c.String("provider"), all), "one of "+strings.Join(all, ", ")))
	case c.IsSet("credentials"), c.Bool("grant"), c.Bool("offline"):
		return exit.New(exit.Usage, "--credentials, --grant and --offline are for a provider that is set up").Hint("--provider %s", strings.Join(setup.Providers(), ", "))
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
	fmt.Fprintf(c.App.Writer, "%s: %s%s\n", out.ID, out.Manifest, from)
	out.Setup.Print(c.App.Writer)
	return nil
}

// initProvider sets a provider up.
func initProvider(c *cli.Context) (out initialized, err error) {
	args, err := wantArgs(c, 0, 1)
	if err == nil && c.String("from-row") != "" {
		err = exit.New(exit.Usage, "--provider is not for --from-row: the host configuration says it").Hint("leave it out")
	}
	if err != nil {
		return out, err
	}
	h, err := openHost(c, false)
	if err != nil {
		return out, err
	}
	defer h.close()
	g := setup.Guide{Config: h.config, Offline: c.Bool("offline"), Grant: c.Bool("grant"), Register: c.Bool("register"), Show: c.App.ErrWriter,
		Options: setup.Options{Provider: c.String("provider"), OwnerID: c.String("owner-id"), Name: c.String("name"), Place: c.String("storage"),
			Endpoint: c.String("endpoint"), Region: c.String("region"), Credentials: c.String("credentials"), Operator: c.String("operator")},
		GitKnows: func() bool { _, ok := h.resolver.Identity(mountspec.CurrentOperator); return ok },
		OwnerIs:  func(owner string) (string, error) { return ownerID(c, owner) },
		Open: func(cfg *host.Config) (daemon.Request, func(), error) {
			h, err := hostOf(c, cfg, true)
			if err != nil {
				return daemon.Request{}, nil, err
			}
			return daemon.Request{Resolver: h.resolver, StateDir: c.String("state-dir"), Getenv: os.Getenv}, h.close, nil
		}}
	if len(args) > 0 {
		if g.Dir, err = absolute(args[0]); err != nil {
			return out, err
		}
	}
	if id := c.String("id"); id != "" {
		if g.ID, err = readAddress(id, "for example --id @acme/notes"); err != nil {
			return out, err
		}
	}
	if !c.Bool("json") && sandbox.IsTerminal(os.Stdin) {
		g.Ask = setup.NewAsker(os.Stdin, c.App.ErrWriter)
	}
	plan, notes, err := g.Plan(c.Context)
	if err != nil {
		return out, err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	undo, err := plan.Write(ctx, g.Grant)
	if err != nil {
		return out, err
	}
	out = initialized{Manifest: plan.Manifest, Notes: notes}
	out.Setup = plan.Report(g.Grant, g.Register)
	err = out.register(c, plan.Workspace, g.Register, undo)
	return out, err
}

// register enters the new workspace in the registry, if asked, or undoes its creation.
func (i *initialized) register(c *cli.Context, w *mountspec.Workspace, asked bool, undo func()) error {
	i.Schema, i.ID = "wsmount.init/v1", w.ID.String()
	if i.Registered = asked; !asked {
		return nil
	}
	e, err := addNew(c, w, i.Manifest, undo)
	i.Notes = append(i.Notes, e.Notes...)
	return err
}

// addNew enters a manifest that was just written in the registry, or removes it again.
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
	err = out.register(c, w, c.Bool("register"), undo)
	return out, err
}

// declared returns the requested workspace, and the path for its manifest.
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
	err = out.register(c, w, c.Bool("register"), begun.Undo)
	return out, err
}

// ownerID is the given id, else the one by which this host knows the owner, else a new one.
func ownerID(c *cli.Context, owner string) (string, error) {
	if id := c.String("owner-id"); id != "" {
		return id, nil
	}
	id, err := askHost(c, false, func(r *host.Resolver) (string, error) { return r.OwnerID(c.Context, owner) })
	return orNothing(id, strings.ToUpper(rand.Text())), err
}
