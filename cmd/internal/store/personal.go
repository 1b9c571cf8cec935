package store

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

const authorizedByFlag = "authorized-by"

// personalVerb writes in the operator's own space, which no other verb reaches.
func personalVerb() Verb {
	return Verb{Name: "personal-write", Args: "LOCATOR", Usage: "write a file in the operator's own space", Least: 1, Most: 1, Changes: true,
		Flags: []Flag{{authorizedByFlag, "`WHO` asked for this change"}, ifMatch}, run: personalWrite,
		Description: "The operator's own space is what lies above the vault that has agentm's memory. Only who the operator's request " +
			"authorizes writes there, and only where allow_personal of the host configuration grants it to that name; each time is recorded in " +
			"the audit log before it happens, with what came of it after that, and so is a refusal. The locator counts from the path that is granted. The vault itself has `store write`.\n\n" +
			"  wsmount store personal-write Diary/2026-11-27.md --authorized-by ann"}
}

// Rules are the host configuration, and the audit log that records its use.
type Rules struct {
	Config    *host.Config
	Own       host.Own
	Principal string // the user of this program
	Audit     *audit.Log
}

func personalWrite(ctx context.Context, c Call) (Answer, exit.Code, error) {
	r := personal{a: seam.Authorization{By: c.Flag(authorizedByFlag)}, call: c}
	if r.a.By == "" {
		return nil, 0, exit.New(exit.Usage, "--%s is needed: who asked for this change", authorizedByFlag).
			Hint("the operator's own space is changed on the operator's request only")
	}
	rules, closeRules, err := c.Host.Rules()
	if err != nil {
		return nil, 0, err
	}
	defer closeRules()
	r.Rules, r.did = rules, audit.PersonalWrite{Locator: c.Args[0], AuthorizedBy: r.a.By, Principal: rules.Principal}
	space, l, err := r.open(ctx)
	if err != nil {
		return nil, 0, r.ended(err)
	}
	return c.closing(space, func() (Answer, exit.Code, error) {
		text, err := c.text()
		if err != nil {
			return nil, 0, err
		}
		ctx, stop := untilSignal(ctx)
		defer stop()
		return written{at(l), seam.ETagOf(text)}, exit.Done, r.ended(r.write(ctx, space, l, text))
	})
}

// personal is a request to write in the operator's own space.
type personal struct {
	Rules
	a     seam.Authorization
	call  Call
	did   audit.PersonalWrite
	asked bool // the intent to write is recorded
}

func (r *personal) write(ctx context.Context, space *seam.Personal, l seam.Locator, text string) error {
	match := r.call.Flag(ifMatchFlag)
	if match == "" {
		_, err := space.PersonalWrite(ctx, r.a, l, text)
		return err
	}
	old, err := parseIfMatch(match)
	if err == nil {
		_, err = space.PersonalWriteIf(ctx, r.a, l, old, text)
	}
	return err
}

// ended records the result.
func (r *personal) ended(err error) error {
	var record audit.Record = r.did
	switch {
	case err != nil && r.asked:
		record = audit.PersonalWriteFailed{PersonalWrite: r.did, Reason: err.Error()}
	case err != nil:
		record = audit.Denied{What: "personal write of " + r.did.Locator, Reason: "for " + r.a.By + ": " + err.Error()}
	}
	failed := r.Audit.Write(record)
	if failed != nil && err == nil {
		return exit.New(exit.Failed, "it is written, and the record of that is not: %w", failed).Hint("the audit log says that it was going to be")
	}
	return errors.Join(err, failed)
}

// permit records the intent to write, unless guard refuses the write.
func (r *personal) permit(guard *guarded, l seam.Locator) error {
	if err := guard.check(providers.MethodWrite, l, false); err != nil {
		return err
	}
	if err := r.Audit.Write(audit.PersonalWriteAsked(r.did)); err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("nothing is written without a record of it")
	}
	r.asked = true
	return nil
}

// open opens the space that is granted above the vault.
func (r *personal) open(ctx context.Context) (*seam.Personal, seam.Locator, error) {
	l, err := seam.ParseLocator(r.call.Args[0])
	if err != nil {
		return nil, l, err
	}
	backends := r.call.Host.Backends
	protocol, s, err := backends.Choose(ctx, r.call.Host.Settings)
	if err != nil {
		return nil, l, err
	}
	if protocol != seam.Vault {
		return nil, l, exit.New(exit.Failed, "memory lies in %q, and no space of the operator's lies above that", protocol).
			Hint("it is for memory in a vault: see storage.backend and vault_path")
	}
	vault := host.Real(s.Vault)
	space := r.granted(vault, r.a.By)
	if space == "" {
		return nil, l, exit.New(exit.Denied, "the host grants no writing in the operator's own space that %q asks for", r.a.By).
			Hint("add { path: %s, by: [ %s ], memory: %s } to allow_personal of the host configuration", filepath.Dir(vault), r.a.By, filepath.Base(vault))
	}
	r.did.Space = space
	memory, err := below(space, vault)
	if err != nil {
		return nil, l, err
	}
	guard, err := r.guard(space)
	if err != nil {
		return nil, l, err
	}
	s.Vault = r.locked(space, filepath.Join(space, filepath.FromSlash(l.Key())))
	in := &part{open: func() (seam.Backend, error) { return backends.Get(seam.Vault).Open(ctx, s) }}
	if in.at, err = below(space, s.Vault); err != nil {
		return nil, l, err
	}
	guard.Backend = &parts{all: []*part{in}, close: func() error { return nil }}
	p, err := seam.NewPersonal(guard, memory, func(_ context.Context, _ seam.Authorization, l seam.Locator) error { return r.permit(guard, l) })
	return p, l, err
}

// Spaces are the operator's own spaces that a host configuration names.
func Spaces(c *host.Config) (spaces []seam.Space) {
	for _, g := range c.AllowPersonal {
		spaces = append(spaces, seam.Space{Dir: g.Path, Memory: filepath.Join(g.Path, cmp.Or(g.Memory, host.DefaultMemory))})
	}
	return spaces
}

// Places are seam.Settings.Host of a host configuration and a state directory.
func Places(c *host.Config, root string) []string {
	places := []string{root}
	if c.Path != "" {
		places = append(places, c.Path)
	}
	if c.Dir != "" { // not the directory itself: files of other programs may lie beside
		places = append(places, filepath.Join(c.Dir, host.RegistryName))
	}
	return places
}

// granted returns the space above a vault that a grant lets by have written to; of
// several the nearest. "": none.
func (r Rules) granted(vault, by string) (space string) {
	for _, g := range r.Config.AllowPersonal {
		at := host.Real(g.Path)
		if at != vault && mountpoint.Within(vault, at) && slices.Contains(g.By, by) && len(at) > len(space) {
			space = at
		}
	}
	return space
}

// locked is the directory as the vault of which a place in a space is written: the innermost
// that any grant names. So it has one lock, the same for every writer.
func (r Rules) locked(space, place string) string {
	for _, g := range r.Config.AllowPersonal {
		at := host.Real(g.Path)
		if info, err := os.Stat(at); err == nil && info.IsDir() && at != place && mountpoint.Within(place, at) && len(at) > len(space) {
			space = at
		}
	}
	return space
}

// guard refuses to change files in a space that the host, or agentm, trusts: writing to
// them grants permissions, or moves memory.
func (r *personal) guard(space string) (*guarded, error) {
	g := &guarded{}
	state, err := r.call.Host.StateRoot()
	if err != nil {
		return nil, err
	}
	places := slices.Concat(r.Own.Files, r.Own.Dirs, r.Own.Searched, hostfile.Stations(state))
	if locks, err := all.VaultLocks(); err == nil { // else there are no locks
		places = append(places, hostfile.Stations(locks)...)
	}
	for _, file := range r.call.Host.Settings.Config.Believed {
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		places = append(places, hostfile.Stations(file)...)
	}
	for _, place := range places {
		switch l, err := below(space, place); {
		case err != nil: // it is not in the space
		case l == seam.Locator{}:
			g.readOnly = "it is a place that the host believes"
		default:
			g.governing = append(g.governing, l.Key())
		}
	}
	return g, nil
}

// below returns the locator of a place in a directory.
func below(dir, place string) (seam.Locator, error) {
	rel, err := filepath.Rel(dir, place)
	if err != nil {
		return seam.Locator{}, err
	}
	return seam.ParseLocator(filepath.ToSlash(rel))
}
