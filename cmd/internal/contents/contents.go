// Package contents says how much of the disk the content of working copies takes, and evicts
// content that their stores have: by their daemons where they are mounted.
//
//	res, err := contents.Of(ctx, root, dirs, false)
//
// A working copy that it cannot look into is in the result, with the reason.
package contents

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// Of lists the content of the working copies in some directories of a state directory, after clean
// content was evicted if clear says so.
func Of(ctx context.Context, root string, dirs []string, clear bool) (out control.CacheResult, err error) {
	out.Schema, out.Copies = control.CacheSchema, []control.CacheCopy{}
	var mounted []string
	for _, dir := range dirs {
		one, err := room.CacheOf(dir, clear)
		switch {
		case errors.Is(err, cache.ErrInUse):
			mounted = append(mounted, dir)
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			one.Unread = err.Error()
		}
		out.Copies = append(out.Copies, one)
	}
	if len(mounted) == 0 {
		return out, nil
	}
	records, err := state.List(root)
	if err != nil {
		return out, err
	}
	for _, r := range records {
		out.Copies = append(out.Copies, ofMount(ctx, r, mounted, clear)...)
	}
	for _, dir := range mounted {
		if !slices.ContainsFunc(out.Copies, func(c control.CacheCopy) bool { return c.Directory == dir }) {
			out.Copies = append(out.Copies, control.CacheCopy{Workspace: state.WorkspaceOf(dir), Directory: dir, Mounted: true,
				Unread: "its daemon does not answer; `wsmount status` shows it"})
		}
	}
	return out, nil
}

// ofMount asks the daemon of a record, if one of the working copies is its.
func ofMount(ctx context.Context, r *state.Record, dirs []string, clear bool) (of []control.CacheCopy) {
	if !r.Alive() {
		return nil
	}
	client := control.NewClient(r.SocketPath())
	shown, err := client.Cache(ctx, control.CacheRequest{})
	isWanted := func(c control.CacheCopy) bool { return slices.Contains(dirs, c.Directory) }
	if err != nil || !slices.ContainsFunc(shown.Copies, isWanted) {
		return nil
	}
	if clear {
		if shown, err = client.Cache(ctx, control.CacheRequest{Clear: true}); err != nil {
			return nil
		}
	}
	return slices.DeleteFunc(shown.Copies, func(c control.CacheCopy) bool { return !isWanted(c) })
}
