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
	records, err := state.List(root)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(records, func(r *state.Record) bool { return r.Device == m.Dev && r.Alive() })
	if i < 0 {
		return nil, fmt.Errorf("what is mounted at %s is not in the state directory %s", m.Path, root)
	}
	s := mounts.Look(ctx, records[i])
	if err := mounts.Usable(s); err != nil {
		return nil, err
	}
	at := filepath.Join(m.Root, strings.TrimPrefix(place, m.Path))
	return layout(s.Parts).behind(strings.TrimPrefix(at, "/")), nil
}
