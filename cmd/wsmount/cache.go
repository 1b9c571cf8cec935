package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

func cacheCommand() *cli.Command {
	return &cli.Command{
		Name:  "cache",
		Usage: "what the content of working copies takes of the disk",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "show what is a copy of what the store has, and what is not", ArgsUsage: "[WORKSPACE|STATEDIR]",
				Description: "Of all working copies, mounted or not. Files that are open are not counted.",
				Action:      func(c *cli.Context) error { return showCache(c, false) },
			},
			{
				Name: "clear", Usage: "give up copies of what the store has", ArgsUsage: "[WORKSPACE|STATEDIR]",
				Description: "They are fetched again when they are read. What the store does not have, and files that are open, stay.",
				Action:      func(c *cli.Context) error { return showCache(c, true) },
			},
		},
	}
}

func showCache(c *cli.Context, clear bool) error {
	args, err := wantArgs(c, 0, 1)
	if err != nil {
		return err
	}
	dirs, err := findCopies(c, append(args, "")[0])
	if err != nil {
		return err
	}
	out, err := contentIn(c, dirs, clear)
	if err != nil {
		return err
	}
	root, _ := stateRoot(c)
	err = show(c, out, func(w io.Writer, out control.CacheResult) { printCache(w, root, out.Copies, clear) })
	return errors.Join(err, unreadCopies(out.Copies))
}

// unreadCopies is an error when there are working copies of which nothing is known,
// which has been told.
func unreadCopies(list []control.CacheCopy) error {
	if slices.ContainsFunc(list, func(c control.CacheCopy) bool { return c.Unread != "" }) {
		return silent(exit.Failed)
	}
	return nil
}

// contentIn is what is in working copies: by their daemons where they are mounted.
func contentIn(c *cli.Context, dirs []string, clear bool) (out control.CacheResult, err error) {
	out.Schema, out.Copies = control.CacheSchema, []control.CacheCopy{}
	root, err := stateRoot(c)
	if err != nil {
		return out, err
	}
	var mounted []string
	for _, dir := range dirs {
		one, err := room.CacheOf(dir, clear)
		switch {
		case errors.Is(err, cache.ErrInUse):
			mounted = append(mounted, dir)
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			one.Unread = err.Error()
		}
		out.Copies = append(out.Copies, one)
	}
	if len(mounted) == 0 {
		return out, nil
	}
	records, err := state.List(root)
	if err != nil {
		return out, err
	}
	for _, r := range records {
		out.Copies = append(out.Copies, contentOfMount(c.Context, r, mounted, clear)...)
	}
	for _, dir := range mounted {
		if !slices.ContainsFunc(out.Copies, func(c control.CacheCopy) bool { return c.Directory == dir }) {
			out.Copies = append(out.Copies, control.CacheCopy{Workspace: state.WorkspaceOf(dir), Directory: dir, Mounted: true,
				Unread: "its daemon does not answer; `wsmount status` shows it"})
		}
	}
	return out, nil
}

// contentOfMount asks the daemon of a record, if one of the working copies is its.
func contentOfMount(ctx context.Context, r *state.Record, dirs []string, clear bool) (of []control.CacheCopy) {
	if !r.Alive() {
		return nil
	}
	client := control.NewClient(r.SocketPath())
	shown, err := client.Cache(ctx, control.CacheRequest{})
	isWanted := func(c control.CacheCopy) bool { return slices.Contains(dirs, c.Directory) }
	if err != nil || !slices.ContainsFunc(shown.Copies, isWanted) {
		return nil
	}
	if clear {
		if shown, err = client.Cache(ctx, control.CacheRequest{Clear: true}); err != nil {
			return nil
		}
	}
	return slices.DeleteFunc(shown.Copies, func(c control.CacheCopy) bool { return !isWanted(c) })
}

func printCache(w io.Writer, root string, list []control.CacheCopy, cleared bool) {
	for _, c := range list {
		for i, line := range wrap.Lines(oneLine(c.Workspace)+" in "+oneLine(c.Directory), width-1) {
			fmt.Fprintf(w, "%*s%s\n", min(i, 1), "", line)
		}
		row := rows(w, 2)
		if c.Unread != "" {
			row("unread", c.Unread)
			continue
		}
		if cleared {
			row("given up", bytesize.Text(c.Freed))
		}
		row("copies", bytesize.Text(c.Clean)+" that the store has, too")
		row("unsaved", bytesize.Text(c.Unsaved)+" that stay")
		row("history", bytesize.Text(c.History))
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "there are no working copies")
	}
	var st unix.Statfs_t
	if unix.Statfs(root, &st) == nil {
		fmt.Fprintf(w, "%s of %s are free on the disk of %s\n",
			bytesize.Text(int64(st.Bavail)*int64(st.Bsize)), bytesize.Text(int64(st.Blocks)*int64(st.Bsize)), oneLine(root))
	}
}
