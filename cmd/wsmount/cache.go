package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/contents"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

func cacheCommand() *cli.Command {
	return &cli.Command{
		Name:  "cache",
		Usage: "what the content of working copies takes of the disk",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "show what is a copy of what the store has, and what is not", ArgsUsage: "[WORKSPACE|MOUNTPOINT|STATEDIR]",
				Description: "Of all working copies, mounted or not. Files that are open are not counted.",
				Action:      func(c *cli.Context) error { return showCache(c, false) },
			},
			{
				Name: "clear", Usage: "give up copies of what the store has", ArgsUsage: "[WORKSPACE|MOUNTPOINT|STATEDIR]",
				Description: "They are fetched again when they are read. What the store does not have, files that are open, and what is pinned, stay.",
				Action:      func(c *cli.Context) error { return showCache(c, true) },
			},
			{
				Name: "pin", Usage: "keep a file, or a directory and all below, on the local disk", ArgsUsage: "MOUNTPOINT [PATH]",
				Description: "Fetches what is missing, and later what others change there, and gives none of it up: neither for want of room, nor for --cache-size, nor by `cache clear`. " +
					"Pinned content that fills the disk leaves no room for writes. A workspace that is mounted below it has pins of its own. The pin is of the path, whatever comes there, and outlives the mount.",
				Action: func(c *cli.Context) error { return pin(c, false) },
			},
			{
				Name: "unpin", Usage: "end a pin", ArgsUsage: "MOUNTPOINT [PATH]",
				Description: "PATH is one that was pinned: `wsmount cache show` lists them.",
				Action:      func(c *cli.Context) error { return pin(c, true) },
			},
		},
	}
}

func showCache(c *cli.Context, clear bool) error {
	args, err := wantArgs(c, 0, 1)
	if err != nil {
		return err
	}
	root, err := stateRoot(c)
	if err != nil {
		return err
	}
	out, err := contentOf(c, root, append(args, "")[0], clear)
	if err != nil {
		return err
	}
	err = show(c, out, func(w io.Writer, out control.CacheResult) { printCache(w, root, out.Copies, clear) })
	return errors.Join(err, keptCopies(out.Copies, clear))
}

// contentOf returns the content usage of a mount's working copies, or of those from findCopies.
func contentOf(c *cli.Context, root, what string, clear bool) (out control.CacheResult, err error) {
	if what != "" && !strings.HasPrefix(what, "@") {
		if r, err := findMount(c, what); err == nil {
			return control.NewClient(r.SocketPath()).Cache(c.Context, control.CacheRequest{Clear: clear})
		}
	}
	dirs, err := findCopies(c, what)
	if err != nil {
		return out, err
	}
	return contents.Of(c.Context, root, dirs, clear)
}

func pin(c *cli.Context, ends bool) error {
	args, err := wantArgs(c, 1, 2)
	if err != nil {
		return err
	}
	r, path, err := target(c, args)
	if err != nil {
		return err
	}
	stop := progress.Show(c.Context, r.SocketPath())
	res, err := control.NewClient(r.SocketPath()).Cache(c.Context, control.CacheRequest{Pin: !ends, Unpin: ends, Path: path})
	stop()
	if err != nil {
		return err
	}
	return show(c, res, func(w io.Writer, res control.CacheResult) {
		if ends {
			fmt.Fprintln(w, "it is not pinned any more")
			return
		}
		fmt.Fprintf(w, "pinned, and on the local disk: %s, %s\n", count(res.Pinned.Files, "file"), bytesize.Text(res.Pinned.Bytes))
	})
}

// keptCopies returns an error, printed already, if working copies could not be read, or if clear
// gave up nothing because unpushed commits cannot be read.
func keptCopies(list []control.CacheCopy, clear bool) error {
	switch {
	case clear && slices.ContainsFunc(list, func(c control.CacheCopy) bool { return c.Lost != "" }):
		return silent(exit.Unsafe)
	case slices.ContainsFunc(list, func(c control.CacheCopy) bool { return c.Unread != "" }):
		return silent(exit.Failed)
	}
	return nil
}

func printCache(w io.Writer, root string, list []control.CacheCopy, cleared bool) {
	for _, c := range list {
		screen.Of(w).Wrapped("", 1, oneLine(c.Workspace)+" in "+oneLine(c.Directory))
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
		if c.Lost != "" {
			row("", "as commits that are not pushed are lost: "+c.Lost)
			row("", "`wsmount recover export "+c.Directory+" DIR` copies the files")
		}
		row("history", bytesize.Text(c.History))
		for _, pin := range c.Pins {
			row("pinned", "/"+pin)
		}
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
