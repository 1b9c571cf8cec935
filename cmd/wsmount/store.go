package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

func storeCommand() *cli.Command {
	c := &cli.Command{Name: "store", Usage: "use agentm's memory, or a workspace without mounting it"}
	groups := map[string]*cli.Command{"": c, "state": {Name: "state", Usage: "find, read and write the state of a project"},
		"repos": {Name: "repos", Usage: "list and change the repositories that agents know"}}
	for _, v := range store.Verbs() {
		group, name, grouped := strings.Cut(v.Name, " ")
		if !grouped {
			group, name = "", v.Name
		}
		flags := resolveFlags()[:0]
		if v.Workspace {
			flags = resolveFlags()
		}
		for _, f := range v.Flags {
			flags = append(flags, &cli.StringFlag{Name: f.Name, Usage: f.Usage})
		}
		groups[group].Subcommands = append(groups[group].Subcommands, &cli.Command{Name: name, Usage: v.Usage, ArgsUsage: v.Args,
			Description: v.Description, Flags: flags, Action: func(c *cli.Context) error { return store.Refusal(storeAction(c, v)) }})
	}
	c.Subcommands = append(c.Subcommands, groups["state"], groups["repos"])
	return c
}

func storeAction(c *cli.Context, v store.Verb) error {
	args, err := wantArgs(c, v.Least, v.Most)
	if err != nil {
		return err
	}
	show := func(answer store.Answer) error { return showAnswer(c, answer) }
	answer, code, err := v.Do(c.Context, store.Call{Args: args, Flag: c.String, Given: c.IsSet, Input: os.Stdin, Show: show, Host: store.Host{
		Backends: all.Backends(), Settings: memorySettings(c), ReadOnly: c.Bool("read-only"), StateRoot: func() (string, error) { return stateRoot(c) },
		Request: func() (daemon.Request, func(), error) {
			req, closeRequest, err := mountRequest(c, true)
			req.Mountpoint, req.Create = "", v.Changes
			return req, closeRequest, err
		},
		Copy: func(ctx context.Context, tree *daemon.Tree, s daemon.Source) (fs.Volume, func() error, error) {
			o, err := daemonOptions(c)
			if err != nil {
				return nil, nil, err
			}
			o.StopTimeout = tiedStopTimeout
			return daemon.OpenCopy(ctx, tree, s, o)
		},
		Rules: func() (store.Rules, func(), error) {
			h, err := openHost(c, true)
			if err != nil {
				return store.Rules{}, nil, err
			}
			return store.Rules{Config: h.config, Own: h.resolver.Own(), Principal: h.resolver.Principal(), Audit: h.audit}, h.close, nil
		}}})
	if answer != nil {
		if failed := show(answer); failed != nil {
			return failed
		}
	}
	return cmp.Or(err, silent(code))
}

func showAnswer(c *cli.Context, answer store.Answer) error {
	print := answer.Print
	if told, is := answer.(interface{ Notes() []string }); is {
		printNotes(c, told.Notes())
	}
	if c.Bool("json") {
		print = func(w io.Writer) error { return printJSON(w, answer) }
	}
	if failed := print(c.App.Writer); failed != nil {
		return exit.New(exit.Failed, "%w", failed).Hint("what was printed is not the whole of it")
	}
	return nil
}

// memorySettings are this machine's settings for the place of agentm's memory.
func memorySettings(c *cli.Context) seam.Settings {
	h := store.Host{StateRoot: func() (string, error) { return stateRoot(c) }}
	s := seam.ReadSettings(os.Getenv, func(place string) error { return h.Answers(c.Context, place) })
	s.Behind = func(dir string) ([]string, error) {
		root, err := stateRoot(c)
		if err != nil {
			return nil, err
		}
		return store.Behind(c.Context, root)(dir)
	}
	s.Mounted = h.Mounted
	config := sync.OnceValues(func() (*host.Config, error) {
		return host.LoadConfig(host.LoadOptions{Path: c.String("config"), Lookup: os.LookupEnv})
	})
	s.Personal = func() ([]seam.Space, error) {
		config, err := config()
		if err != nil {
			return nil, err
		}
		return store.Spaces(config), nil
	}
	s.Host = func() ([]string, error) {
		config, err := config()
		if err != nil {
			return nil, err
		}
		root, err := stateRoot(c)
		return store.Places(config, root), err
	}
	return s
}
