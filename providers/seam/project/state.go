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

// Mode is what this machine, or a checkout, says of where state is to lie.
type Mode string

// The modes. Unset is as OnBackend: what memory promises decides.
const (
	Unset     Mode = ""
	Local     Mode = "local"   // in the checkout
	OnBackend Mode = "backend" // in memory, if something replicates that
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

// ModeError says that a mode is none. It is providers.ErrInvalid.
type ModeError struct{ Where, Text string }

// Error quotes the text.
func (e *ModeError) Error() string {
	return fmt.Sprintf("project: %s says %q, which is neither %s nor %s", e.Where, e.Text, Local, OnBackend)
}

// Unwrap is providers.ErrInvalid.
func (e *ModeError) Unwrap() error { return providers.ErrInvalid }

// State is where the state of a project lies.
type State struct {
	Backend seam.Backend // memory, or the checkout
	Dir     seam.Locator // there; it need not be there yet
	Synced  bool         // it is memory
	Root    string       // the checkout

	close []seam.Backend
}

// Close closes what was opened for it.
func (s State) Close() error {
	var errs []error
	for _, b := range s.close {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Machine is what this machine has, for finding state.
type Machine struct {
	Config   seam.Config
	Memory   func(ctx context.Context) (seam.Backend, error) // opens it, or refuses
	Checkout func(root string) (seam.Backend, error)         // opens the directory of one
}

const (
	harness   = ".harness"      // of a checkout
	modeFile  = ".project-mode" // there
	inBackend = "_harness"      // of a project in memory
)

// State finds that of a checkout, by its absolute name, or of the one that is registered
// with a slug. The caller closes it.
func (m Machine) State(ctx context.Context, project string) (s State, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = State{}
		}
	}()
	var memory seam.Backend
	if s.Root = project; !path.IsAbs(project) {
		if memory, err = m.memory(ctx, &s); err != nil {
			return s, err
		}
		p, err := Named(ctx, memory, project)
		if err != nil {
			return s, err
		}
		s.Root = p.Root
	}
	checkout, err := m.Checkout(s.Root)
	if err != nil {
		return s, err
	}
	s.close = append(s.close, checkout)
	mode, err := m.mode(ctx, checkout)
	if err == nil && mode != Local && memory == nil {
		memory, err = m.memory(ctx, &s)
	}
	if err != nil {
		return s, err
	}
	if mode == Local || !memory.Capabilities().Sync {
		s.Backend = checkout
		s.Dir, err = checkout.Resolve(harness)
		return s, err
	}
	p, err := Resolve(ctx, memory, s.Root)
	if err != nil {
		return s, err
	}
	s.Backend, s.Synced = memory, true
	s.Dir, err = p.Locator.Child(inBackend)
	return s, err
}

// memory opens memory, which s closes.
func (m Machine) memory(ctx context.Context, s *State) (seam.Backend, error) {
	b, err := m.Memory(ctx)
	if err == nil {
		s.close = append(s.close, b)
	}
	return b, err
}

// mode is what the checkout says, or else the machine. A marker without text says nothing.
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
