package main

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

const storePlaces = "\n\nWithout a WORKSPACE the locator is one of agentm's memory: of storage.backend in its configuration, else of " +
	"$MEMORY_VAULT_PATH, else of ~/.agentm/memory. A WORKSPACE is an address, a manifest, or a path in a mount; one that is mounted is used through its mount."

func storeCommand() *cli.Command {
	c := &cli.Command{Name: "store", Usage: "use agentm's memory, or a workspace without mounting it"}
	for _, v := range store.Verbs() {
		args := "[WORKSPACE] LOCATOR"
		if v.Least == 0 {
			args = "[[WORKSPACE] LOCATOR]"
		}
		flags := append(resolveFlags(), &cli.StringFlag{Name: "backend", Usage: "use the memory of this `NAME`, such as device-local or vault"})
		if v.IfMatch {
			flags = append(flags, &cli.StringFlag{Name: "if-match", Usage: "replace only what has this `ETAG`; none: only make what is not there"})
		}
		c.Subcommands = append(c.Subcommands, &cli.Command{Name: v.Name, Usage: v.Usage, ArgsUsage: args, Description: v.Description + storePlaces,
			Flags: flags, Action: func(c *cli.Context) error { return store.Refusal(storeAction(c, v)) }})
	}
	return c
}

func storeAction(c *cli.Context, v store.Verb) error {
	args, err := wantArgs(c, v.Least, 2)
	if err != nil {
		return err
	}
	b, err := openStore(c, args, v.Changes)
	if err != nil {
		return err
	}
	key := append([]string{""}, args...)[len(args)]
	answer, code, err := v.Do(c.Context, b, key, store.Input{Content: os.Stdin, IfMatch: c.String("if-match")})
	if failed := b.Close(); err == nil {
		err = failed
	}
	if err == nil {
		err = show(c, answer, func(w io.Writer, a store.Answer) { a.Print(w) })
	}
	if err != nil {
		return err
	}
	return silent(code)
}

// openStore opens the workspace before a locator, or the memory.
func openStore(c *cli.Context, args []string, changes bool) (seam.Backend, error) {
	if len(args) < 2 {
		return store.Select(c.Context, all.Backends(), seam.ReadSettings(os.Getenv), c.String("backend"))
	}
	if c.IsSet("backend") {
		return nil, exit.New(exit.Usage, "--backend is for memory, and %s is a workspace", oneLine(args[0])).Hint("give one of the two")
	}
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	return store.Workspace{StateRoot: root, Name: args[0], Resolve: func() (*daemon.Tree, func(), error) {
		req, closeRequest, err := mountRequest(c, true)
		if err != nil {
			return nil, nil, err
		}
		req.Mountpoint, req.Create = "", changes
		tree, err := daemon.Resolve(c.Context, req)
		if err != nil {
			closeRequest()
		}
		return tree, closeRequest, err
	}}.Open(c.Context)
}
