package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

const authorizedByFlag = "authorized-by"

// personalVerb writes in the operator's own space, which no other verb reaches.
func personalVerb() Verb {
	return Verb{Name: "personal-write", Args: "LOCATOR", Usage: "write a file in the operator's own space", Least: 1, Most: 1, Changes: true,
		Flags: []Flag{{authorizedByFlag, "`WHO` asked for this change"}, ifMatch}, run: personalWrite,
		Description: "The operator's own space is what lies above the vault that has agentm's memory. Only who the operator's request " +
			"authorizes writes there, and only where allow_personal of the host configuration grants it to that name; each time is recorded in " +
			"the audit log before it happens. The locator counts from the path that is granted. The vault itself has `store write`.\n\n" +
			"  wsmount store personal-write Diary/2026-11-27.md --authorized-by ann"}
}

// Rules are what the host configuration says, and where it is recorded what was done by it.
type Rules struct {
	Config    *host.Config
	Own       host.Own
	Principal string // who runs this program
	Audit     *audit.Log
}

func personalWrite(ctx context.Context, c Call) (Answer, exit.Code, error) {
	a := seam.Authorization{By: c.Flag(authorizedByFlag)}
	if a.By == "" {
		return nil, 0, exit.New(exit.Usage, "--%s is needed: who asked for this change", authorizedByFlag).
			Hint("the operator's own space is changed on the operator's request only")
	}
	l, err := seam.ParseLocator(c.Args[0])
	if err != nil {
		return nil, 0, err
	}
	protocol, settled, err := c.Host.Backends.Choose(ctx, c.Host.Settings)
	if err != nil {
		return nil, 0, err
	}
	if protocol != seam.Vault {
		return nil, 0, exit.New(exit.Failed, "memory lies in %q, and no space of the operator's lies above that", protocol).
			Hint("it is for memory in a vault: see storage.backend and vault_path")
	}
	rules, closeRules, err := c.Host.Rules()
	if err != nil {
		return nil, 0, err
	}
	defer closeRules()
	p, err := rules.open(ctx, c.Host.Backends, settled, a, l)
	if err != nil {
		return nil, 0, err
	}
	return closing(p, func() (Answer, exit.Code, error) {
		text, err := io.ReadAll(c.Input)
		if err != nil {
			return nil, 0, fmt.Errorf("standard input: %w", err)
		}
		if match := c.Flag(ifMatchFlag); match == "" {
			_, err = p.PersonalWrite(ctx, a, l, string(text))
		} else {
			var old seam.ETag
			if old, err = parseIfMatch(match); err == nil {
				_, err = p.PersonalWriteIf(ctx, a, l, old, string(text))
			}
		}
		return written{at(l), seam.ETagOf(string(text))}, exit.Done, err
	})
}

// open opens the space that is granted above the vault, for what somebody asked for at l.
func (r Rules) open(ctx context.Context, backends *seam.Registry, s seam.Settings, a seam.Authorization, l seam.Locator) (*seam.Personal, error) {
	vault := host.Real(s.Vault)
	space := r.granted(vault, a.By)
	if space == "" {
		err := r.Audit.Write(audit.Denied{What: "personal write of " + l.Key(), Reason: "allow_personal does not list " + a.By})
		if err != nil {
			return nil, unrecorded(err)
		}
		return nil, exit.New(exit.Denied, "the host grants no writing in the operator's own space that %q asks for", a.By).
			Hint("add { path: %s, by: [ %s ] } to allow_personal of the host configuration", filepath.Dir(vault), a.By)
	}
	memory, err := below(space, vault)
	if err != nil {
		return nil, err
	}
	s.Vault = space
	b, err := backends.Get(seam.Vault).Open(ctx, s)
	if err != nil {
		return nil, err
	}
	guard := r.guard(b, space)
	p, err := seam.NewPersonal(guard, memory, func(_ context.Context, a seam.Authorization, l seam.Locator) error {
		if err := guard.check(providers.MethodWrite, l, false); err != nil {
			return err
		}
		err := r.Audit.Write(audit.PersonalWrite{Space: space, Locator: l.Key(), AuthorizedBy: a.By, Principal: r.Principal})
		if err != nil {
			return unrecorded(err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return p, nil
}

func unrecorded(err error) error {
	return exit.New(exit.Failed, "%w", err).Hint("nothing is written without a record of it")
}

// granted is the space above a vault that somebody may have written to; of several the
// nearest. "": none.
func (r Rules) granted(vault, by string) (space string) {
	for _, g := range r.Config.AllowPersonal {
		at := host.Real(g.Path)
		if at != vault && mountpoint.Within(vault, at) && slices.Contains(g.By, by) && len(at) > len(space) {
			space = at
		}
	}
	return space
}

// guard refuses to change the host's own places in a space: who writes there grants things.
func (r Rules) guard(b seam.Backend, space string) *guarded {
	g := &guarded{Backend: b}
	for _, place := range slices.Concat(r.Own.Files, r.Own.Dirs, r.Own.Searched) {
		switch l, err := below(space, place); {
		case err != nil: // it is not in the space
		case l == seam.Locator{}:
			g.readOnly = "it is a place that the host believes"
		default:
			g.governing = append(g.governing, l.Key())
		}
	}
	return g
}

// below is the locator of what lies in a directory.
func below(dir, place string) (seam.Locator, error) {
	rel, err := filepath.Rel(dir, place)
	if err != nil {
		return seam.Locator{}, err
	}
	return seam.ParseLocator(filepath.ToSlash(rel))
}
