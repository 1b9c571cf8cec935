package mounts

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// pathsLimit is how long Paths waits for a mount: a user has pressed a key.
const pathsLimit = 2 * time.Second

// pastNames is how many versions of the history Paths looks at.
const pastNames = 1000

// Paths are the names in a directory of the mount that place lies in: those that exist
// and those that its history knows, each after the directory that begins has, counted from
// place. A directory ends with a slash. Of a mount that does not answer there are none.
func Paths(ctx context.Context, root, place, begins string) []string {
	ctx, cancel := context.WithTimeout(ctx, pathsLimit)
	defer cancel()
	r, err := Find(root, place)
	if err != nil || filepath.IsAbs(begins) {
		return nil
	}
	table, err := mountpoint.ReadTable()
	if err != nil || !table.Shows(r.Mountpoint, r.Device) {
		return nil
	}
	at, err := table.Resolve(place)
	if err != nil {
		return nil
	}
	before, _ := filepath.Split(begins)
	dir, outside := Relative(r.Mountpoint, filepath.Join(at, before))
	if outside != nil {
		return nil
	}
	client := control.NewClient(r.SocketPath())
	if s, err := client.Status(ctx); err != nil || Usable(s) != nil {
		return nil
	}
	found, above := namesIn(ctx, filepath.Join(r.Mountpoint, dir)), dir+"/"
	if dir == "" {
		above = ""
	}
	if past, err := client.Log(ctx, control.LogRequest{Path: dir, Limit: pastNames}); err == nil {
		for _, v := range past.Versions {
			for _, name := range []string{v.Path, v.Was, v.From} {
				if below, ok := strings.CutPrefix(name, above); ok && below != "" {
					first, _, deeper := strings.Cut(below, "/")
					found[first+slash(deeper || v.Mode&syscall.S_IFMT == syscall.S_IFDIR)] = true
				}
			}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, before+name)
	}
	return out
}

// namesIn are the names in a directory of a mount, as far as it tells them in time.
func namesIn(ctx context.Context, dir string) map[string]bool {
	read, found := make(chan []os.DirEntry, 1), map[string]bool{}
	go func() {
		entries, _ := os.ReadDir(dir)
		read <- entries
	}()
	select {
	case entries := <-read:
		for _, e := range entries {
			found[e.Name()+slash(e.IsDir())] = true
		}
	case <-ctx.Done():
	}
	return found
}

func slash(dir bool) string {
	if dir {
		return "/"
	}
	return ""
}
