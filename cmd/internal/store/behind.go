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

// Behind is seam.Settings.Behind of this machine: for mounts of wsmount the directories that
// their daemons serve, for others the directory's other names.
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

// servedAt returns the directories that a daemon serves at a place of a mount, which may be a
// bind mount of wsmount's mount.
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

// serving returns the record of the daemon that serves a mount, at any mount
// point; nil: no known one lives.
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

// Answers is seam.Settings.Answers of this machine: it asks the daemon of a mount of wsmount. A
// mount by another user, or one seen in a sandbox, is unknown and passes.
func (h Host) Answers(ctx context.Context, place string) error {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return err
	}
	at, err := table.Resolve(place)
	if err != nil {
		return nil // the use of place will fail
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
