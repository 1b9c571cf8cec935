package host

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Own are the places that decide about mounts of this host, also of other
// workspaces and of later mounts. A program that writes there from inside a mount
// gives itself grants. All paths are absolute, and their directories without links.
type Own struct {
	// Files must not be changed, nor made if they do not exist: the configuration, the
	// registry with its lock, Options.Places, every manifest that the configuration
	// names, which no digest pins, the files of secrets and facts, and each symbolic
	// link on the way to one of them.
	Files []string
	// Dirs are those of the configuration and the registry, existing or not:
	// nothing may appear in them.
	Dirs []string
	// Searched are the directories of the search path that are no workspace themselves: a manifest
	// made in them, or one level below, is found by its address.
	Searched []string
}

// Own lists the host's own places.
func (r *Resolver) Own() Own {
	var out Own
	for _, p := range append(slices.Clone(r.cfg.Places), r.cfg.Path, r.o.Registry) {
		if p == "" {
			continue
		}
		out.Files = append(out.Files, hostfile.Stations(p)...)
		out.addDir(filepath.Dir(p))
	}
	if r.o.Registry != "" {
		out.Files = append(out.Files, hostfile.Stations(r.o.Registry+".lock")...)
	}
	if r.cfg.Dir != "" {
		out.addDir(r.cfg.Dir)
	}
	for _, p := range slices.Concat(r.namedManifests(), r.secretFiles(), []string{r.cfg.Facts, r.o.Places}) {
		if p != "" {
			out.Files = append(out.Files, hostfile.Stations(p)...)
		}
	}
	for _, dir := range r.cfg.SearchPath {
		way := hostfile.Stations(dir)
		dir = way[len(way)-1]
		out.Files = append(out.Files, way[:len(way)-1]...)
		if manifest := filepath.Join(dir, manifestName); exists(manifest) {
			out.Files = append(out.Files, manifest) // it keeps the search from going below
		} else {
			out.Searched = append(out.Searched, dir)
		}
	}
	for _, list := range []*[]string{&out.Files, &out.Dirs, &out.Searched} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out
}

func (o *Own) addDir(dir string) {
	way := hostfile.Stations(dir)
	o.Dirs = append(o.Dirs, way[len(way)-1])
	o.Files = append(o.Files, way[:len(way)-1]...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// namedManifests are the manifests that the host trusts for their place; an empty path means none.
func (r *Resolver) namedManifests() []string {
	var out []string
	for _, w := range r.cfg.Workspaces {
		if path, err := manifestPath(w.Path); err == nil {
			out = append(out, path)
		}
	}
	for _, e := range r.cfg.Storages {
		out = append(out, e.Path)
	}
	out = slices.AppendSeq(out, maps.Values(r.cfg.Manifests))
	if r.o.Home != "" {
		out = append(out, r.agentprotoPath())
	}
	return out
}

// secretFiles are the files that secrets come from, programs included, and those of hooks.
func (r *Resolver) secretFiles() (out []string) {
	for _, h := range r.cfg.Notify {
		out = append(out, h.Files()...)
	}
	for _, e := range r.cfg.Secrets {
		switch src := e.Source.(type) {
		case secrets.File:
			out = append(out, src.Path)
		case secrets.Command:
			out = append(out, src.Files()...)
		}
	}
	return out
}
