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
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/stranded"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

func registryCommand() *cli.Command {
	return &cli.Command{
		Name:  "registry",
		Usage: "the workspaces that this host knows and trusts",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "register the manifest, or the directory, at PATH", ArgsUsage: "PATH", Action: registryAdd,
				Description: "Records the owner, the storage and the text of every governing file. A later " +
					"difference refuses to mount until `registry accept`.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "id", Usage: "`ADDRESS` of a directory that has no WORKSPACE.md"},
					&cli.StringFlag{Name: "owner-id", Usage: "refuse unless this is the manifest's owner `ID`"},
					&cli.BoolFlag{Name: "write-manifest", Usage: "write the WORKSPACE.md of a directory that has none: what the host configuration says of --id, or that its files lie in it"},
				},
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
					"were accepted and as they are, and records the new ones after a yes. A manifest that was added and says " +
					"what the host configuration does needs none.",
				Flags: changeFlags(&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}),
			},
			registrySetCommand(),
		},
	}
}

// entryJSON is one workspace of `wsmount registry ... --json`.
type entryJSON struct {
	Schema   string    `json:"schema,omitempty"` // wsmount.registration/v1
	Address  string    `json:"address"`
	Damaged  bool      `json:"damaged,omitempty"` // it cannot be read, and address is what stands for one
	Path     string    `json:"path"`
	OwnerID  string    `json:"ownerId,omitempty"`
	Location string    `json:"location,omitempty"`
	Source   string    `json:"source"`
	Accepted time.Time `json:"accepted,omitzero"`
	Notes    []string  `json:"notes,omitempty"` // what `registry add` noticed
}

func showEntry(e host.Entry) entryJSON {
	if name, err := strconv.Unquote(e.Damaged); err == nil {
		return entryJSON{Address: name, Damaged: true, Source: e.Source}
	}
	out := entryJSON{Address: e.Address.String(), Path: e.Path, OwnerID: e.OwnerID, Source: e.Source, Accepted: e.AcceptedAt, Notes: e.Notes}
	if e.Location.Provider != "" {
		out.Location = e.Location.String()
	}
	return out
}

// addEntry enters a manifest, or a directory, in the registry.
func addEntry(c *cli.Context, path string, o host.AddOptions) (host.Entry, error) {
	return askHost(c, true, func(r *host.Resolver) (host.Entry, error) { return r.Add(c.Context, path, o) })
}

func registryAdd(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	path, err := absolute(args[0])
	if err != nil {
		return err
	}
	o := host.AddOptions{OwnerID: c.String("owner-id")}
	if id := c.String("id"); id != "" {
		if o.Address, err = readAddress(id, "for example --id @acme/notes"); err != nil {
			return err
		}
	}
	add := func() (host.Entry, error) { return addEntry(c, path, o) }
	if c.Bool("write-manifest") {
		add = func() (host.Entry, error) { return addDefault(c, path, o.Address) }
	}
	e, err := add()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		out := showEntry(e)
		out.Schema = "wsmount.registration/v1"
		return printJSON(c.App.Writer, out)
	}
	printNotes(c, e.Notes)
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s\n", e.Address, oneLine(e.Path))
	return err
}

// addDefault enters a directory with the manifest that its row stands for, or that init
// would write, which it then has.
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
	return addNew(c, w, filepath.Join(dir, "WORKSPACE.md"))
}

func registryList(c *cli.Context) error {
	if _, err := wantArgs(c, 0, 0); err != nil {
		return err
	}
	entries, err := askHost(c, false, (*host.Resolver).List)
	if err != nil {
		return err
	}
	out := registryJSON{"wsmount.registry/v1", []entryJSON{}}
	for _, e := range entries {
		out.Workspaces = append(out.Workspaces, showEntry(e))
	}
	return show(c, out, printRegistry)
}

// registryJSON is what `wsmount registry list --json` prints.
type registryJSON struct {
	Schema     string      `json:"schema"` // wsmount.registry/v1
	Workspaces []entryJSON `json:"workspaces"`
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
	if c.NArg() != 1 || !isDamaged(h, name) { // what stands for its address may be anything, also empty
		a, err := addressArg(c)
		if err != nil {
			return err
		}
		name = a.String()
	}
	if err := h.resolver.Remove(c.Context, name); err != nil {
		return daemon.Refusal(err)
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, entryJSON{Schema: "wsmount.registration/v1", Address: name})
	}
	return nil
}

func isDamaged(h *hostSide, name string) bool {
	entries, err := h.resolver.List()
	return err == nil && slices.ContainsFunc(entries, func(e host.Entry) bool { return e.Damaged == strconv.Quote(name) })
}

// changeJSON is what `wsmount registry accept --json` prints.
type changeJSON struct {
	Schema   string          `json:"schema"` // wsmount.registry-change/v1
	Address  string          `json:"address"`
	Facts    []string        `json:"facts"`
	Files    []host.FileDiff `json:"files"`
	Accepted bool            `json:"accepted"`
}

func registryAccept(c *cli.Context) error {
	a, err := addressArg(c)
	if err != nil {
		return err
	}
	accepted := false
	confirm := func(ch host.Change) bool {
		accepted = mayRecord(c, ch) == nil && confirmChange(c, ch)
		return accepted
	}
	if c.Bool("show") {
		confirm = nil
	}
	change, err := askHost(c, true, func(r *host.Resolver) (host.Change, error) { return r.Accept(c.Context, a, confirm) })
	if err != nil {
		return err
	}
	if err = showChange(c, change, accepted, c.Bool("show")); err == nil && !accepted && !change.Empty() && !c.Bool("show") {
		return exit.New(exit.Denied, "the change of %s was not accepted", a).Hint("look at the difference, then answer y at a terminal or give --yes")
	}
	return err
}

// showChange prints a change that was recorded, or not, for programs or, if nobody has
// seen it yet, for a person.
func showChange(c *cli.Context, change host.Change, recorded, unseen bool) error {
	switch {
	case c.Bool("json"):
		if err := printJSON(c.App.Writer, changeJSON{"wsmount.registry-change/v1", change.Address.String(), change.Facts, change.Files, recorded}); err != nil {
			return err
		}
	case change.Empty():
		fmt.Fprintf(c.App.Writer, "%s: nothing has changed\n", change.Address)
	case unseen:
		printChange(c.App.Writer, change)
	}
	if recorded {
		return nil
	}
	return mayRecord(c, change)
}

func changeFlags(more ...cli.Flag) []cli.Flag {
	return append(more, &cli.BoolFlag{Name: "show", Usage: "only show the difference"},
		&cli.BoolFlag{Name: "strict", Usage: "refuse another owner, and another provider of the storage, without a new version"},
		&cli.BoolFlag{Name: "force", Usage: "take another storage although it is mounted, or a working copy of the old one has unsaved changes"})
}

// mayRecord refuses, with --strict, what should have had a new version, and without
// --force another storage while the old one lacks something.
func mayRecord(c *cli.Context, change host.Change) error {
	if c.Bool("strict") && change.Unversioned != "" {
		return exit.New(exit.Denied, "%s: %s", change.Address, oneLine(change.Unversioned)).Hint("give it a new version, or leave out --strict")
	}
	root, err := stateRoot(c)
	if err != nil || change.MovesTo == "" || c.Bool("force") {
		return err
	}
	return stranded.MayMove(root, change.Address, change.MovesTo)
}

// confirmChange shows a change and asks, unless --yes was given. Without a
// terminal to ask at, the answer is no. As JSON the change is shown afterwards.
func confirmChange(c *cli.Context, change host.Change) bool {
	if !c.Bool("json") {
		printChange(c.App.Writer, change)
	}
	if c.Bool("yes") || change.AddsRow {
		return true
	}
	if c.Bool("json") {
		return false
	}
	if !sandbox.IsTerminal(os.Stdin) {
		return false
	}
	fmt.Fprint(c.App.ErrWriter, "accept this change? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y") || strings.EqualFold(strings.TrimSpace(line), "yes")
}

func printChange(w io.Writer, change host.Change) {
	for _, f := range change.Facts {
		fmt.Fprintf(w, "%s\n", oneLine(f))
	}
	for _, f := range change.Files {
		fmt.Fprintf(w, "%s\n", oneLine(f.Path))
		for _, l := range f.Lines {
			fmt.Fprintf(w, "  %s\n", l) // which hides nothing: see host.FileDiff
		}
	}
}
