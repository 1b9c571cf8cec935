package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/fetch"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/registered"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/stranded"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/origin"
)

func registryCommand() *cli.Command {
	return &cli.Command{
		Name:  "registry",
		Usage: "the workspaces that this host knows and trusts",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "register a manifest, a directory, or what lies at a place", ArgsUsage: "[PATH | PLACE]", Action: registryAdd,
				Description: "Records the owner, the storage and the text of every governing file. A later " +
					"difference refuses to mount until `registry accept`.\n\n" +
					"PLACE is github:OWNER/REPO[#BRANCH], s3:BUCKET[/PREFIX], azure:CONTAINER[/PREFIX] or gcs:BUCKET[/PREFIX]. Its " +
					"WORKSPACE.md and the files that this names are fetched with what this host grants to the owner, shown, and kept " +
					"beside the registry; its storage must be that place. Until `registry accept` fetches them again, they stay.\n\n" +
					"  wsmount registry add github:acme/site#main",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "id", Usage: "`ADDRESS` of a directory that has no WORKSPACE.md, or of what lies at PLACE"},
					&cli.StringFlag{Name: "from", Usage: "`URL` of a repository at the git server of the host configuration, with #BRANCH or not, instead of PLACE"},
					&cli.BoolFlag{Name: "show", Usage: "only show what lies at PLACE"},
					&cli.StringFlag{Name: "owner-id", Usage: "refuse unless this is the manifest's owner `ID`"},
					&cli.BoolFlag{Name: "write-manifest", Usage: "write the WORKSPACE.md of a directory that has none: what the host configuration says of --id, or that its files lie in it"},
				}, placeFlags()...),
			},
			{
				Name: "list", Usage: "list what is registered", Action: registryList,
				Description: "Shows each address, where its manifest lies, and its owner.",
			},
			{
				Name: "remove", Usage: "forget a workspace; its files stay", ArgsUsage: "ADDRESS", Action: registryRemove,
				Description: "Takes the address out of the registry. Nothing else is touched.",
			},
			{
				Name: "accept", Usage: "show what changed since, and accept it", ArgsUsage: "ADDRESS", Action: registryAccept,
				Description: "Prints the difference between the manifest and the files that it refers to, as they " +
					"were accepted and as they are, and records the new ones after a yes. What was registered from a place is fetched " +
					"again. A manifest that was added and says " +
					"what the host configuration does needs none.",
				Flags: changeFlags(&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}),
			},
			registrySetCommand(),
		},
	}
}

// placeFlags are the details of a PLACE.
func placeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "endpoint", Usage: "`URL` of the service of a bucket (default: the host's own service, where it grants the bucket, or that of Amazon or Google)"},
		&cli.StringFlag{Name: "region", Usage: "`REGION` of a bucket"},
		&cli.StringFlag{Name: "auth", Usage: "`NAME` of the credentials for PLACE, as a manifest names them: a secret of the host, or a variable"},
	}
}

func placeOf(c *cli.Context, place string) fetch.Where {
	return fetch.Where{Place: place, Endpoint: c.String("endpoint"), Region: c.String("region"), Auth: c.String("auth")}
}

// addEntry enters a manifest, or a directory, in the registry.
func addEntry(c *cli.Context, path string, o host.AddOptions) (host.Entry, error) {
	return askHost(c, true, func(r *host.Resolver) (host.Entry, error) { return r.Add(c.Context, path, o) })
}

func registryAdd(c *cli.Context) error {
	o := host.AddOptions{OwnerID: c.String("owner-id"), Look: c.Bool("show")}
	if id := c.String("id"); id != "" {
		var err error
		if o.Address, err = readAddress(id, "for example --id @acme/notes"); err != nil {
			return err
		}
	}
	isPlace := c.String("from") != "" || origin.IsPlace(c.Args().First())
	for _, f := range map[bool][]string{true: {"write-manifest"}, false: {"endpoint", "region", "auth", "show"}}[isPlace] {
		if c.IsSet(f) {
			return exit.New(exit.Usage, "--%s is not for a %s", f, map[bool]string{true: "place", false: "path"}[isPlace]).Hint("%s", origin.PlaceHint)
		}
	}
	if isPlace {
		return addFrom(c, o)
	}
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	path, err := absolute(args[0])
	if err != nil {
		return err
	}
	add := func() (host.Entry, error) { return addEntry(c, path, o) }
	if c.Bool("write-manifest") {
		add = func() (host.Entry, error) { return addDefault(c, path, o.Address) }
	}
	e, err := add()
	if err != nil {
		return err
	}
	return showAdded(c, e)
}

func showAdded(c *cli.Context, e host.Entry) error {
	out := registered.Fetched(e)
	if c.Bool("json") {
		out.Schema = "wsmount.registration/v1"
		return printJSON(c.App.Writer, out)
	}
	printNotes(c, e.Notes)
	registered.PrintFiles(c.App.Writer, out)
	_, err := fmt.Fprintf(c.App.Writer, "%s: %s\n", e.Address, oneLine(orNothing(out.From, e.Path)+note(e.From != nil && e.AcceptedAt.IsZero(), "only shown")))
	return err
}

// addFrom registers the manifest at a place.
func addFrom(c *cli.Context, o host.AddOptions) error {
	where, args := placeOf(c, c.Args().First()), 1
	if where.URL = c.String("from"); where.URL != "" {
		args = 0
	}
	if _, err := wantArgs(c, args, args); err != nil {
		return err
	}
	h, err := openHost(c, true)
	if err != nil {
		return err
	}
	defer h.close()
	from, err := where.Origin(h.config.GitHub.BaseURL)
	if err != nil {
		return err
	}
	e, err := h.resolver.AddFrom(c.Context, from, o)
	if err != nil {
		return daemon.Refusal(err)
	}
	return showAdded(c, e)
}

// addDefault registers a directory, and writes the manifest of its row, or the one that
// init would write, into it.
func addDefault(c *cli.Context, dir string, a mountspec.Address) (host.Entry, error) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || a == (mountspec.Address{}) {
		return host.Entry{}, exit.New(exit.Usage, "--write-manifest needs a directory, and its address in --id").Hint("for example wsmount registry add ./notes --id @acme/notes --write-manifest")
	}
	w, err := askHost(c, false, func(r *host.Resolver) (*mountspec.Workspace, error) {
		w, _ := r.Row(a)
		return w, nil
	})
	if err == nil && w == nil {
		w, err = newWorkspace(c, dir)
	}
	if err != nil {
		return host.Entry{}, err
	}
	manifest := filepath.Join(dir, "WORKSPACE.md")
	undo, err := manifestfile.WriteNew(manifest, w)
	if err != nil {
		return host.Entry{}, err
	}
	return addNew(c, w, manifest, undo)
}

func registryList(c *cli.Context) error {
	if _, err := wantArgs(c, 0, 0); err != nil {
		return err
	}
	entries, err := askHost(c, false, (*host.Resolver).List)
	if err != nil {
		return err
	}
	out := registryJSON{"wsmount.registry/v1", []registered.Entry{}}
	for _, e := range entries {
		out.Workspaces = append(out.Workspaces, registered.Of(e))
	}
	return show(c, out, printRegistry)
}

// registryJSON is the output of `wsmount registry list --json`.
type registryJSON struct {
	Schema     string             `json:"schema"` // wsmount.registry/v1
	Workspaces []registered.Entry `json:"workspaces"`
}

func printRegistry(w io.Writer, r registryJSON) {
	for _, e := range r.Workspaces {
		row := rows(w, 2)
		if e.Damaged {
			fmt.Fprintf(w, "%s\n", strconv.Quote(e.Address))
			row("damaged", "it cannot be read: `wsmount registry remove` takes it out")
			continue
		}
		fmt.Fprintf(w, "%s\n", e.Address)
		row("path", e.Path)
		row("from", e.From)
		row("storage", e.Location)
		row("owner", e.OwnerID)
	}
	if len(r.Workspaces) == 0 {
		fmt.Fprintln(w, "nothing is registered")
	}
}

func addressArg(c *cli.Context) (mountspec.Address, error) {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return mountspec.Address{}, err
	}
	return readAddress(args[0], "`wsmount registry list` shows the addresses")
}

func registryRemove(c *cli.Context) error {
	h, err := openHost(c, true)
	if err != nil {
		return err
	}
	defer h.close()
	name := c.Args().First()
	if c.NArg() != 1 || !isDamaged(h, name) { // a damaged entry's address may be anything, or empty
		a, err := addressArg(c)
		if err != nil {
			return err
		}
		name = a.String()
	}
	if err := h.resolver.Remove(c.Context, name); err != nil {
		return daemon.Refusal(err)
	}
	return show(c, registered.Entry{Schema: "wsmount.registration/v1", Address: name}, func(w io.Writer, e registered.Entry) {
		fmt.Fprintf(w, "forgot %s; its files, and what is unsaved of it, stay\n", oneLine(e.Address))
	})
}

func isDamaged(h *hostSide, name string) bool {
	entries, err := h.resolver.List()
	return err == nil && slices.ContainsFunc(entries, func(e host.Entry) bool { return e.Damaged == strconv.Quote(name) })
}

func registryAccept(c *cli.Context) error {
	a, err := addressArg(c)
	if err != nil {
		return err
	}
	return record(c, confirmChange, func(r *host.Resolver, confirm func(host.Change) bool) (host.Change, error) {
		return r.Accept(c.Context, a, confirm)
	})
}

// record has a change recorded if the flags allow it and agree, which shows it, returns true; with
// --show it only shows it. mayRecord is asked once: a moment later its answer may differ.
func record(c *cli.Context, agree func(*cli.Context, host.Change) bool, do func(*host.Resolver, func(host.Change) bool) (host.Change, error)) error {
	var refused error
	recorded := false
	confirm := func(ch host.Change) bool {
		if refused = mayRecord(c, ch); refused == nil && agree != nil && !agree(c, ch) {
			refused = exit.New(exit.Denied, "the change of %s was not accepted", ch.Address).Hint("look at the difference, then answer y at a terminal or give --yes")
		}
		recorded = refused == nil
		return recorded
	}
	if c.Bool("show") {
		confirm = nil
	}
	change, err := askHost(c, true, func(r *host.Resolver) (host.Change, error) { return do(r, confirm) })
	if err != nil {
		return err
	}
	var notes []string
	if recorded {
		records, err := allMounts(c)
		if err != nil {
			return err
		}
		notes = registered.GoOn(change, mounts.Places(records)[change.Address.String()])
	}
	switch {
	case c.Bool("json"):
		err = printJSON(c.App.Writer, registered.OfChange(change, recorded, notes))
	case change.Empty():
		fmt.Fprintf(c.App.Writer, "%s: nothing has changed\n", change.Address)
	case agree == nil && recorded || confirm == nil:
		registered.PrintChange(c.App.Writer, change)
	}
	if !c.Bool("json") {
		printNotes(c, notes)
	}
	if confirm == nil {
		refused = mayRecord(c, change)
	}
	if err == nil {
		err = refused
	}
	return err
}

func changeFlags(more ...cli.Flag) []cli.Flag {
	return append(more, &cli.BoolFlag{Name: "show", Usage: "only show the difference"},
		&cli.BoolFlag{Name: "strict", Usage: "refuse another owner, and another provider of the storage, without a new version"},
		&cli.BoolFlag{Name: "force", Usage: "take another storage although it is mounted, or a working copy of the old one has unsaved changes"})
}

// mayRecord refuses, with --strict, a change that needs a new version, and, without
// --force, another storage while the old one is mounted or lacks changes.
func mayRecord(c *cli.Context, change host.Change) error {
	if c.Bool("strict") && change.Unversioned != "" {
		return exit.New(exit.Denied, "%s: %s", change.Address, oneLine(change.Unversioned)).Hint("give it a new version, or leave out --strict")
	}
	root, err := stateRoot(c)
	if err != nil || change.MovesTo == "" || c.Bool("force") {
		return err
	}
	return stranded.MayMove(root, change.Address, change.MovesFrom, change.MovesTo)
}

// confirmChange shows a change and asks, unless --yes was given. Without a
// terminal to ask at, the answer is no. As JSON the change is shown afterwards.
func confirmChange(c *cli.Context, change host.Change) bool {
	if !c.Bool("json") {
		registered.PrintChange(c.App.Writer, change)
	}
	return change.AddsRow || agreed(c, "accept this change?")
}

// agreed asks a person, unless --yes was given. Without a terminal to ask at, and as JSON,
// the answer is no.
func agreed(c *cli.Context, question string) bool {
	if c.Bool("yes") {
		return true
	}
	if c.Bool("json") || !sandbox.IsTerminal(os.Stdin) {
		return false
	}
	fmt.Fprintf(c.App.ErrWriter, "%s [y/N] ", question)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y") || strings.EqualFold(strings.TrimSpace(line), "yes")
}
