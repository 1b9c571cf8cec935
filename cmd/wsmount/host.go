package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/fetch"
	"github.com/wsmount/wsmount/cmd/internal/person"
	"github.com/wsmount/wsmount/cmd/internal/process"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
)

// hostSide is the host configuration in use, with the resolver that follows it.
type hostSide struct {
	config   *host.Config
	resolver *host.Resolver
	audit    *audit.Log
}

// openHost loads the host configuration. With auditing, grants and refusals are
// recorded in the state directory; commands that change nothing do without.
func openHost(c *cli.Context, auditing bool) (*hostSide, error) {
	if given := c.String("operator"); given != "" {
		if _, err := person.Parse(given); err != nil {
			return nil, exit.New(exit.Usage, "--operator %q: %w", oneLine(given), err).Hint("for example --operator 'Ann Bo <ann@acme.test>'")
		}
	}
	cfg, err := host.LoadConfig(host.LoadOptions{Path: c.String("config"), Lookup: process.Environment()})
	if err != nil {
		return nil, daemon.Refusal(err)
	}
	return hostOf(c, cfg, auditing)
}

// hostOf is openHost for a configuration that was read already.
func hostOf(c *cli.Context, cfg *host.Config, auditing bool) (h *hostSide, err error) {
	h = &hostSide{config: cfg}
	if auditing {
		if h.audit, err = openAudit(c); err != nil {
			return nil, err
		}
	}
	root, places := "", ""
	if root, err = stateRoot(c); err == nil { // else all manifests are read
		places = filepath.Join(state.Shared(root), "places")
	}
	h.resolver, err = host.NewResolver(host.Options{Config: cfg, Places: places, Home: os.Getenv("HOME"), Lookup: process.Environment(),
		Providers: daemon.Mountable, Person: persons(c), Open: fetch.In(root), Audit: h.audit, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.close()
		return nil, daemon.Refusal(err)
	}
	return h, nil
}

// askHost opens the host side for one question, or one change. A refusal by it
// is the command's error.
func askHost[T any](c *cli.Context, auditing bool, ask func(*host.Resolver) (T, error)) (T, error) {
	h, err := openHost(c, auditing)
	if err != nil {
		return *new(T), err
	}
	defer h.close()
	answer, err := ask(h.resolver)
	if err != nil {
		return answer, daemon.Refusal(err)
	}
	return answer, nil
}

// readAddress reads an address that a user typed. hint is the advice if it is invalid.
func readAddress(text, hint string) (mountspec.Address, error) {
	a, err := mountspec.ParseAddress(text)
	if err != nil {
		return a, exit.New(exit.Usage, "%w", err).Hint("%s", hint)
	}
	return a, nil
}

// resolveFlags are the flags of a command that resolves a workspace as mount does.
func resolveFlags() []cli.Flag {
	return []cli.Flag{
		operatorFlag(),
		&cli.BoolFlag{Name: "trust", Usage: "a WORKSPACE given by path counts as registered"},
		&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Usage: "as for mount"},
		&cli.StringSliceFlag{Name: "mount", Usage: "as for mount, `SPEC`"},
	}
}

func operatorFlag() cli.Flag {
	return &cli.StringFlag{Name: "operator", Usage: "`PERSON` that operator://current stands for, as 'NAME <mail>'; the host configuration goes before it (default: whom git knows)"}
}

// persons resolves references to the present persons: the operator is that of
// --operator, and without it, as the user always is, the person that git knows.
func persons(c *cli.Context) func(ref string) (host.Identity, bool) {
	ofGit := sync.OnceValues(func() (person.Person, bool) { return person.OfGit(c.Context) })
	return func(ref string) (host.Identity, bool) {
		p, ok := person.Person{}, false
		if given := c.String("operator"); given != "" && ref == mountspec.CurrentOperator {
			p, _ = person.Parse(given) // checked by openHost
			ok = true
		} else {
			p, ok = ofGit()
		}
		return host.Identity{Name: p.Name, Email: p.Email}, ok
	}
}

func (h *hostSide) close() { h.audit.Close() }

func openAudit(c *cli.Context) (*audit.Log, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	r := room.New(root)
	switch err := r.WhileFull(func() error { return os.MkdirAll(root, 0o700) }); {
	case state.IsFull(err):
		return nil, err
	case err != nil:
		return nil, exit.New(exit.Failed, "state directory: %w", err).Hint("give --state-dir a directory that you may write")
	}
	log, err := daemon.OpenAudit(root, r, nil)
	if state.IsFull(err) {
		return nil, err
	}
	if daemon.MachineFailed(err) {
		return nil, exit.New(exit.Failed, "the audit log cannot be written: %w", err).Hint("make room for it, or give --state-dir another place")
	}
	if err != nil {
		return nil, exit.New(exit.Denied, "%w", err).Hint("nothing is mounted without a record of what was granted")
	}
	return log, nil
}
