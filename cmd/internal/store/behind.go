package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec/host"
)

// Behind is seam.Settings.Behind of this machine: of mounts of wsmount it is what their daemons
// serve, and of others the directory by its other names.
func Behind(ctx context.Context, root string) func(dir string) ([]string, error) {
	return func(dir string) (dirs []string, err error) {
		table, err := mountpoint.ReadTable()
		if err != nil {
			return nil, err
		}
		dir = host.Real(dir)
		places := []string{dir}
		for _, m := range table.Below(dir) {
			places = append(places, m.Path)
		}
		for _, place := range places {
			m, _ := table.Around(place)
			if !m.Ours() {
				dirs = append(dirs, table.Names(place)...)
				continue
			}
			served, err := servedAt(ctx, root, m, place)
			if err != nil {
				return nil, err
			}
			dirs = append(dirs, served...)
		}
		return dirs, nil
	}
}

// servedAt are the directories that a daemon serves at a place of a mount, which may be a bind
// mount of its own.
func servedAt(ctx context.Context, root string, m mountpoint.Mount, place string) ([]string, error) {
	r, err := serving(root, m)
	if err == nil && r == nil {
		err = fmt.Errorf("what is mounted at %s is not in the state directory %s", m.Path, root)
	}
	if err != nil {
		return nil, err
	}
	s := mounts.Look(ctx, r)
	if err := mounts.Usable(s); err != nil {
		return nil, err
	}
	at := filepath.Join(m.Root, strings.TrimPrefix(place, m.Path))
	return layout(s.Parts).behind(strings.TrimPrefix(at, "/")), nil
}

// serving is the record of the daemon that serves a mount, wherever it is seen; nil: none that is
// known lives.
func serving(root string, m mountpoint.Mount) (*state.Record, error) {
	records, err := state.List(root)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(records, func(r *state.Record) bool { return r.Device == m.Dev && r.Alive() })
	if i < 0 {
		return nil, nil
	}
	return records[i], nil
}

// Answers is seam.Settings.Answers of this machine: of a mount of wsmount its daemon is asked. One
// that another user has made, or that is seen in a sandbox, is not known.
func (h Host) Answers(ctx context.Context, place string) error {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return err
	}
	at, err := table.Resolve(place)
	if err != nil {
		return nil // who uses it is told
	}
	m, ok := table.Around(at)
	if !ok || !m.Ours() {
		return nil
	}
	root, err := h.StateRoot()
	if err != nil {
		return err
	}
	r, err := serving(root, m)
	if r == nil {
		return err
	}
	return mounts.Usable(mounts.Look(ctx, r))
}
