package project

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Mode is the setting, of this machine or a checkout, for the place of state.
type Mode string

// The modes. Unset is as OnBackend: the promises of memory decide.
const (
	Unset     Mode = ""
	Local     Mode = "local"   // in the checkout
	OnBackend Mode = "backend" // in memory, if that is replicated
)

// parseMode reads a mode. The older name of OnBackend stays where it is written, and is read
// as it.
func parseMode(text, where string) (Mode, error) {
	switch mode := Mode(strings.ToLower(strings.TrimSpace(text))); mode {
	case Unset, Local, OnBackend:
		return mode, nil
	case "vault":
		return OnBackend, nil
	}
	return Unset, &ModeError{where, text}
}

// ModeError says that a text is no mode. It is providers.ErrInvalid.
type ModeError struct{ Where, Text string }

// Error quotes the text if a message may show it.
func (e *ModeError) Error() string {
	return fmt.Sprintf("%s says %s, which is neither %s nor %s", e.Where, seam.Told(strings.TrimSpace(e.Text)), Local, OnBackend)
}

// Unwrap is providers.ErrInvalid.
func (e *ModeError) Unwrap() error { return providers.ErrInvalid }

// State is the place of a project's state.
type State struct {
	Backend seam.Backend // memory, or the checkout
	Dir     seam.Locator // its directory in Backend; it may be missing yet
	Synced  bool         // it is memory
	Root    string       // the checkout's real name

	project Project // if it is memory
	own     Own
	close   []seam.Backend
}

// Claim is to be called before state is written: where the state is in memory, it registers the
// checkout under its slug, if it is not registered. Another with the same slug is then refused.
func (s State) Claim(ctx context.Context) error {
	if !s.Synced {
		return nil
	}
	return claim(ctx, s.own, s.project)
}

// Close closes the backends that were opened for it.
func (s State) Close() error {
	var errs []error
	for _, b := range s.close {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Machine has the facts of this machine that are needed to find state.
type Machine struct {
	Config   seam.Config
	Memory   func(ctx context.Context) (seam.Backend, error) // opens it, or refuses
	Checkout func(root string) (seam.Backend, error)         // opens the directory of one
	Own      Own
}

const (
	harness   = ".harness"      // of a checkout
	modeFile  = ".project-mode" // in .harness
	inBackend = "_harness"      // of a project in memory
)

// State finds the state of the checkout that a directory lies in, by its absolute name, or of the
// one that is registered with a slug. A checkout whose project cannot be found keeps its state to
// itself. The caller closes it.
func (m Machine) State(ctx context.Context, project string) (_ State, err error) {
	f := finding{Machine: m, state: State{own: m.Own}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.state.Close())
		}
	}()
	asked := ""
	if path.IsAbs(project) {
		err = f.enter(checkoutOf(project, nil))
	} else if err = f.remember(ctx); err == nil {
		asked = project
		err = f.enter(f.named(project))
	}
	if err != nil {
		return State{}, err
	}
	mode, err := m.mode(ctx, f.state.Backend)
	if err != nil || mode == Local {
		return f.state, err
	}
	if err := f.remember(ctx); err != nil {
		return State{}, err
	}
	if asked == "" {
		root, err := checkoutOf(project, f.list)
		if err != nil || root != f.state.Root { // one that is registered, and has no state yet
			err = f.enter(root, err)
		}
		if err != nil {
			return State{}, err
		}
	}
	if !f.memory.Capabilities().Sync {
		return f.state, nil
	}
	p, err := resolve(ctx, f.memory, f.list, f.own, f.state.Root, asked)
	if errors.Is(err, ErrNone) {
		return f.state, nil
	}
	if err == nil {
		f.state.project, f.state.Backend, f.state.Synced = p, f.memory, true
		f.state.Dir, err = p.Locator.Child(inBackend)
	}
	return f.state, err
}

// finding is the place of state as far as it is known.
type finding struct {
	Machine
	state  State
	memory seam.Backend   // nil: it is not open
	list   []Repo         // the registered checkouts in memory
	own    []registration // the registrations that this machine remembers
}

// remember opens memory.
func (f *finding) remember(ctx context.Context) (err error) {
	if f.memory != nil {
		return nil
	}
	if f.memory, err = f.Memory(ctx); err != nil {
		return err
	}
	f.state.close = append(f.state.close, f.memory)
	if f.list, err = Repos(ctx, f.memory); err == nil {
		f.own, err = f.Own.list(ctx)
	}
	return err
}

// named is the checkout that is registered with a slug.
func (f *finding) named(slug string) (string, error) {
	r, err := named(f.list, f.own, slug)
	if err != nil {
		return "", err
	}
	switch s := sight([]Repo{r})[0]; {
	case s.silent:
		return "", r.unseen(r.Root)
	case !s.here:
		return "", r.away()
	default:
		return s.real, nil
	}
}

// enter opens a checkout, which for now counts as keeping its state to itself.
func (f *finding) enter(root string, err error) error {
	if err != nil {
		return err
	}
	checkout, err := f.Checkout(root)
	if err != nil {
		return err
	}
	f.state.close = append(f.state.close, checkout)
	f.state.Root, f.state.Backend = root, checkout
	f.state.Dir, err = checkout.Resolve(harness)
	return err
}

// mode is the setting of the checkout, or else of the machine. An empty marker counts as none.
func (m Machine) mode(ctx context.Context, checkout seam.Backend) (Mode, error) {
	marker, err := checkout.Resolve(harness, modeFile)
	if err != nil {
		return Unset, err
	}
	text, err := checkout.Read(ctx, marker)
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return Unset, err
	}
	if mode, err := parseMode(text, marker.Key()); mode != Unset || err != nil {
		return mode, err
	}
	text, err = m.Config.StateMode()
	if err != nil {
		return Unset, err
	}
	return parseMode(text, "state_mode in "+m.Config.Name)
}
