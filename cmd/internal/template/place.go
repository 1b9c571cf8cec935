package template

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// A Host gives access to the machine.
type Host struct {
	*host.Resolver
	State string // directory of mounts, working copies and logs, private to the host; empty: not known
}

// A place is where the files of a workspace can be read.
type place struct {
	root  *os.Root
	parts []string // paths below it where other workspaces are
}

// placeOf is the directory of a workspace that has one, and else its mount, with
// changes that are not sent yet.
func (h Host) placeOf(ctx context.Context, w *host.Resolved) (place, error) {
	var p place
	for _, c := range w.Children {
		p.parts = append(p.parts, strings.TrimPrefix(c.At, "/"))
	}
	if w.Local != nil {
		root, err := os.OpenRoot(w.Local.Path)
		if err != nil {
			return p, exit.New(exit.Failed, "the files of %s cannot be read: %w", w.Address, err).Hint("`wsmount doctor %s` says more", w.Address)
		}
		if p.root = root; !isStill(root, w.Local) {
			root.Close()
			return p, exit.New(exit.Failed, "%s is not the directory that was granted", w.Local.Path).Hint("run the same command again")
		}
		return p, nil
	}
	root, mount, err := mounts.Open(ctx, h.State, w.Address.String())
	if err != nil {
		return p, err
	}
	if root == nil {
		return p, exit.New(exit.Unresolvable, "the files of %s lie in %s, and it is not mounted", w.Address, w.Location).
			Hint("mount it: wsmount %s MOUNTPOINT", w.Address)
	}
	p.root = root
	for _, part := range mount.Parts {
		if at := strings.TrimPrefix(part.At, "/"); at != "" {
			p.parts = append(p.parts, at)
		}
	}
	return p, nil
}

// isStill says whether a directory is the one that was granted.
func isStill(root *os.Root, l *host.Local) bool {
	st, err := root.Stat(".")
	if err != nil {
		return false
	}
	sys := st.Sys().(*syscall.Stat_t)
	return uint64(sys.Dev) == l.Dev && sys.Ino == l.Ino
}

// keep says why a path of a place is left out, beside the paths that no bundle has.
func (h Host) keep(p place, w *host.Resolved) (func(at string, dir bool) string, error) {
	excluded, err := mountspec.CompileExclude(w.Storage.Exclude)
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, path := range append(h.Kept(w), host.Real(h.State)) {
		for _, base := range []string{p.root.Name(), w.Root} { // a mount shows the manifest's files too, under its own path
			if rel, err := filepath.Rel(host.Real(base), path); err == nil {
				kept[rel] = true
			}
		}
	}
	return func(at string, dir bool) string {
		switch {
		case at == bundle.Manifest: // which is among the host's places: it decides about mounts
			return ""
		case excluded.Match(at, dir):
			return "excluded by the manifest"
		case kept[at]:
			return "secrets, or a file of the host"
		}
		for _, part := range p.parts {
			if at == path.Clean(part) {
				return "another workspace"
			}
		}
		return ""
	}, nil
}
