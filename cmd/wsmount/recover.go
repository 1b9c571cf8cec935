package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
)

var recoverVerbs = []string{"list", "upload", "export", "accept", "discard"}

func recoverCommand() *cli.Command {
	return &cli.Command{
		Name:      "recover",
		Usage:     "look after working copies that are not mounted",
		ArgsUsage: "[list|upload|export|accept|discard] [WORKSPACE|STATEDIR] [DIR|PATH...]",
		Description: "A working copy that was unmounted by force, killed or cut off may hold what no store has. " +
			"Mounting the workspace again goes on with it; these do without:\n\n" +
			"  wsmount recover                          what is unsaved, or not pushed\n" +
			"  wsmount recover upload @acme/ops         send it, as a mount would\n" +
			"  wsmount recover export @acme/ops ./out   copy the files, and commits that are\n" +
			"                                           not pushed as a bundle for git;\n" +
			"                                           leave all as it is\n" +
			"  wsmount recover accept @acme/ops [PATH]  take for good what a loss of power\n" +
			"                                           made suspect\n" +
			"  wsmount recover discard @acme/ops        show what is lost, ask, give it up\n" +
			"  wsmount recover --scan STATEDIR          rebuild a damaged database\n\n" +
			"WORKSPACE is an address, STATEDIR the directory that list names.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "scan", Usage: "rebuild the names of a working copy from its content files"},
			&cli.BoolFlag{Name: "force", Usage: "with --scan: although the database can be read"},
			operatorFlag(),
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "with discard: do not ask"},
			&cli.BoolFlag{Name: "trust", Usage: "with upload: a WORKSPACE given by path counts as registered"},
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute, DefaultText: "10m", Usage: "`TIME` that an upload may take"},
		},
		Action: recoverAction,
	}
}

func recoverAction(c *cli.Context) error {
	args := c.Args().Slice()
	if c.Bool("scan") {
		return recoverScan(c)
	}
	if c.Bool("force") {
		return exit.New(exit.Usage, "--force is for --scan").Hint("wsmount recover --scan STATEDIR --force")
	}
	if len(args) == 0 {
		return recoverList(c, "")
	}
	switch verb := args[0]; {
	case verb == "list" && len(args) <= 2:
		return recoverList(c, append(args, "")[1])
	case verb == "upload" && len(args) == 2:
		return recoverUpload(c, args[1])
	case verb == "export" && len(args) == 3:
		return recoverExport(c, args[1], args[2])
	case verb == "accept" && len(args) >= 2:
		return recoverAccept(c, args[1], args[2:])
	case verb == "discard" && len(args) == 2:
		return recoverDiscard(c, args[1])
	case slices.Contains(recoverVerbs, verb):
		return exit.New(exit.Usage, "recover %s: %s given", verb, count(len(args)-1, "argument")).Hint("wsmount recover --help")
	case len(args) == 1 && (strings.HasPrefix(verb, "@") || strings.Contains(verb, "/")):
		return recoverList(c, verb)
	default:
		e := exit.New(exit.Usage, "recover has no verb %q", oneLine(verb))
		return e.Hint("%s", orNothing(suggest.Phrase(verb, recoverVerbs), "list, upload, export, accept or discard"))
	}
}

// findCopies returns the state directories of working copies that an argument
// means: an address, a directory, or with "" all.
func findCopies(c *cli.Context, what string) ([]string, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	if what == "" {
		return state.Copies(root, "", "")
	}
	if strings.HasPrefix(what, "@") {
		a, err := readAddress(what, "write @owner/slug, or the directory that `wsmount recover` names")
		if err != nil {
			return nil, err
		}
		dirs, err := state.Copies(root, a.Owner, a.Slug)
		if err == nil && len(dirs) == 0 {
			err = exit.New(exit.Unresolvable, "there is no working copy of %s in %s", a, root).Hint("`wsmount recover` lists all")
		}
		return dirs, err
	}
	dir, err := absolute(what)
	if err != nil {
		return nil, err
	}
	if filepath.Base(dir) == state.CopyName {
		dir = filepath.Dir(dir)
	}
	if !state.IsCopy(dir) {
		return nil, exit.New(exit.Unresolvable, "%s is no directory of a working copy", oneLine(what)).Hint("`wsmount recover` lists them")
	}
	return []string{dir}, nil
}

// oneCopy is findCopies for one working copy: of several, the one with unsaved content.
func oneCopy(c *cli.Context, what string) (string, error) {
	dirs, err := findCopies(c, what)
	if err != nil {
		return "", err
	}
	if len(dirs) == 1 {
		return dirs[0], nil
	}
	if full := leftover.NotEmpty(dirs); len(full) == 1 {
		return full[0], nil
	}
	return "", severalCopies(what, len(dirs))
}

func severalCopies(what string, n int) error {
	return exit.New(exit.Usage, "%s has %d working copies", oneLine(what), n).
		Hint("give the directory of one: `wsmount recover list %s`", oneLine(what))
}

// shownUnsaved bounds the listed changes of one working copy.
const shownUnsaved = 1000

type leftovers struct {
	Schema string          `json:"schema"` // wsmount.recover/v1
	Copies []leftover.Copy `json:"copies"`
}

func recoverList(c *cli.Context, what string) error {
	dirs, err := findCopies(c, what)
	if err != nil {
		return err
	}
	out := leftovers{Schema: "wsmount.recover/v1", Copies: []leftover.Copy{}}
	for _, dir := range dirs {
		if l := leftover.Look(dir, shownUnsaved); what != "" || l.Matters() {
			out.Copies = append(out.Copies, l)
		}
	}
	err = show(c, out, printLeftovers)
	if err == nil && slices.ContainsFunc(out.Copies, leftover.Copy.IsUnknown) {
		return silent(exit.Unsafe)
	}
	return err
}

func recoverExport(c *cli.Context, what, into string) error {
	dir, err := oneCopy(c, what)
	if err != nil {
		return err
	}
	if into, err = absolute(into); err != nil {
		return err
	}
	got, err := leftover.Export(c.Context, dir, into)
	if err != nil {
		return copyError(dir, err)
	}
	err = show(c, exported{"wsmount.export/v1", into, got}, func(w io.Writer, e exported) { printExported(w, e.Into, e.Exported) })
	switch {
	case err == nil && got.Unread != "":
		return silent(exit.Unsafe)
	case err == nil && len(got.Skipped) > 0:
		return silent(exit.Failed)
	}
	return err
}

// exported is the output of `wsmount recover export --json`.
type exported struct {
	Schema string `json:"schema"` // wsmount.export/v1
	Into   string `json:"into"`
	leftover.Exported
}

func recoverAccept(c *cli.Context, what string, paths []string) error {
	dir, err := oneCopy(c, what)
	if err != nil {
		return err
	}
	var accepted []string
	err = room.New(state.RootOf(dir)).WhileFull(func() (err error) {
		accepted, err = cache.Accept(filepath.Join(dir, state.CopyName), paths...)
		return err
	})
	if err != nil {
		return copyError(dir, err)
	}
	return show(c, acceptance{"wsmount.accept/v1", append([]string{}, accepted...)}, func(w io.Writer, a acceptance) {
		printEach(w, "accepted ", a.Accepted)
		if len(a.Accepted) == 0 {
			fmt.Fprintln(w, "nothing there is suspect")
		}
	})
}

// acceptance is the output of `wsmount recover accept --json`.
type acceptance struct {
	Schema   string   `json:"schema"` // wsmount.accept/v1
	Accepted []string `json:"accepted"`
}

func recoverScan(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	dir, err := oneCopy(c, args[0])
	if err != nil {
		return err
	}
	got, err := leftover.Scan(c.Context, dir, c.Bool("force"))
	if errors.Is(err, cache.ErrNotDamaged) {
		return exit.New(exit.Failed, "%s: %w", dir, err).Hint("mount the workspace; --force rebuilds it all the same, and forgets unsent deletions and renames")
	}
	if err != nil {
		return copyError(dir, err)
	}
	err = show(c, scanned{"wsmount.scan/v1", got}, func(w io.Writer, s scanned) { printScan(w, dir, s) })
	if err == nil && got.Unread != "" {
		return silent(exit.Unsafe)
	}
	return err
}

// scanned is the output of `wsmount recover --scan --json`.
type scanned struct {
	Schema string `json:"schema"` // wsmount.scan/v1
	leftover.Scanned
}

// copyError adds advice to a failure with a working copy.
func copyError(dir string, err error) error {
	switch {
	case state.IsFull(err):
		return exit.New(exit.Failed, "%w", err).Hint("free something on the disk of %s; `wsmount cache clear` gives up what the stores have, too", dir)
	case errors.Is(err, cache.ErrInUse):
		return exit.New(exit.Failed, "%w: %s", err, dir).Hint("`wsmount status` shows the mounts; if none has it, try again when the command that has it has ended")
	case errors.Is(err, fs.ErrNotExist):
		return exit.New(exit.Unresolvable, "%w", err).Hint("`wsmount recover` lists the working copies")
	}
	return exit.New(exit.Failed, "%w", err).Hint("%s", leftover.Advice(dir, err))
}

// recoverUpload opens a working copy as a mount would, and sends its changes.
func recoverUpload(c *cli.Context, what string) error {
	want, name := "", ""
	dirs, err := findCopies(c, what)
	if err == nil && strings.HasPrefix(what, "@") { // the one with unsent changes, else the unnamed one
		if dirs = leftover.NotEmpty(dirs); len(dirs) > 1 {
			return severalCopies(what, len(dirs))
		}
	}
	if err == nil && len(dirs) == 1 {
		want = dirs[0]
		owner, slug := filepath.Base(filepath.Dir(filepath.Dir(want))), filepath.Base(filepath.Dir(want))
		what = "@" + owner + "/" + slug
		_, name, _ = strings.Cut(filepath.Base(want), ".")
	}
	req, closeRequest, err := uploadRequest(c, what, name)
	if err != nil {
		return err
	}
	defer closeRequest()
	tree, err := daemon.Resolve(c.Context, req)
	if err != nil && want != "" {
		e := exit.From(err)
		return e.Hint("%s; %s", e.Advice, leftover.Ways(want, ""))
	}
	if err != nil {
		return err
	}
	if own, err := state.Place(tree.StateRoot, tree.Owner, tree.Slug, tree.Fingerprint); err == nil && want != "" && own != want {
		return exit.New(exit.Unsafe, "%s is now kept elsewhere than when %s was made", tree.Name, want).
			Hint("%s", leftover.Ways(want, ""))
	}
	o, err := daemonOptions(c)
	if err != nil {
		return err
	}
	o.StopTimeout = c.Duration("timeout")
	opened := waiting.For("opening what is unsent of " + tree.Name)
	defer opened()
	res, err := daemon.Upload(c.Context, tree, o, func(s progress.Source) func() {
		opened()
		return progress.Of(c.Context, s)
	})
	if err != nil {
		return err
	}
	return reportEvent(c, res)
}

func uploadRequest(c *cli.Context, what, name string) (daemon.Request, func(), error) {
	h, err := openHost(c, true)
	if err != nil {
		return daemon.Request{}, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		h.close()
		return daemon.Request{}, nil, exit.New(exit.Failed, "working directory: %w", err).Hint("change to a directory that exists")
	}
	return daemon.Request{Dir: dir, Workspace: what, StateDir: c.String("state-dir"), Resolver: h.resolver, Trust: c.Bool("trust"),
		WorkingCopy: name, Getenv: os.Getenv}, h.close, nil
}

// recoverDiscard deletes a working copy after a person has seen and confirmed the loss.
func recoverDiscard(c *cli.Context, what string) error {
	dir, err := oneCopy(c, what)
	if err != nil {
		return err
	}
	held, err := state.Lock(dir)
	if err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("`wsmount status` shows the mounts: unmount it first")
	}
	defer func() { _ = held.Close() }()
	lost := leftover.Look(dir, shownUnsaved)
	if lost.InUse {
		return copyError(dir, cache.ErrInUse)
	}
	if copied, _ := filepath.Glob(filepath.Join(dir, "exported-*")); len(copied) > 0 {
		return exit.New(exit.Unsafe, "%s holds what `wsmount umount --force` copied: %s", lost.Workspace, copied[0]).
			Hint("move it away, or remove it, first")
	}
	if !c.Bool("json") {
		printLeftover(c.App.Writer, lost, shownUnsaved)
	}
	if !agreed(c, "give this up for good, with all that is unsaved and not pushed?") {
		return exit.New(exit.Denied, "%s is kept in %s: that it may be lost was not confirmed", lost.Workspace, dir).
			Hint("`wsmount recover export %s DIR` copies its files, and --yes confirms", dir)
	}
	if err := held.Discard(); err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("run it again")
	}
	return show(c, discarded{"wsmount.discard/v1", lost}, func(w io.Writer, d discarded) {
		fmt.Fprintf(w, "discarded %s in %s\n", oneLine(d.Discarded.Workspace), oneLine(dir))
	})
}

// discarded is the output of `wsmount recover discard --json`.
type discarded struct {
	Schema    string        `json:"schema"` // wsmount.discard/v1
	Discarded leftover.Copy `json:"discarded"`
}
