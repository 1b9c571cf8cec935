package seam

import (
	"context"
	"errors"
)

// Turn runs change while no other user of turns changes the directory.
type Turn func(ctx context.Context, change func() error) error

// Through is a Backend of a directory, memory, which it closes. A directory in a mount is changed
// as Settings.Mounted has it, in a turn if there are turns: its own locks would be those of the
// directory that the mount shows, which a writer to the directory behind it does not take. In a
// foreign mount it takes no condition.
func (s Settings) Through(ctx context.Context, dir string, memory Backend, turn Turn) (Backend, error) {
	if s.Mounted == nil || s.ReadOnly {
		return memory, nil
	}
	mount, foreign, err := s.Mounted(ctx, dir, turn != nil)
	switch {
	case err != nil:
		return nil, errors.Join(err, memory.Close())
	case foreign != nil:
		return Unguarded(memory, foreign), nil
	case mount == nil:
		return memory, nil
	}
	if turn == nil {
		turn = func(_ context.Context, change func() error) error { return change() }
	}
	return &mounted{memory, mount, turn}, nil
}

// Unguarded is b without conditions: a WriteIf fails with why.
func Unguarded(b Backend, why error) Conditional { return unguarded{b, why} }

type unguarded struct {
	Backend
	why error
}

// WriteIf implements Conditional.
func (u unguarded) WriteIf(context.Context, Locator, ETag, string) (Locator, error) {
	return Locator{}, u.why
}

// mounted is memory in a mount.
type mounted struct {
	Backend             // memory, for reading
	mount   Conditional // the same directory, for changes
	turn    Turn
}

var _ Conditional = (*mounted)(nil)

// Write implements Backend.
func (m *mounted) Write(ctx context.Context, l Locator, content string) (Locator, error) {
	return m.change(ctx, func() (Locator, error) { return m.mount.Write(ctx, l, content) })
}

// WriteIf implements Conditional.
func (m *mounted) WriteIf(ctx context.Context, l Locator, old ETag, content string) (Locator, error) {
	return m.change(ctx, func() (Locator, error) { return m.mount.WriteIf(ctx, l, old, content) })
}

func (m *mounted) change(ctx context.Context, change func() (Locator, error)) (l Locator, err error) {
	err = m.turn(ctx, func() (err error) {
		l, err = change()
		return err
	})
	return l, err
}

// Close implements Backend.
func (m *mounted) Close() error { return errors.Join(m.mount.Close(), m.Backend.Close()) }
