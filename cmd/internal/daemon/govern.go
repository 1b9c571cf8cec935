package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers/all"
)

// manifestName is the file that the host looks for in directories of the search path.
const manifestName = "WORKSPACE.md"

// govern makes every file that decides on the permissions of this mount, or of
// another one, unchangeable from inside, whichever part it lies in and whether it
// exists or not. A part in which that is impossible is refused.
func (b *builder) govern() error {
	paths := slices.Concat(b.governing, b.own.Files, b.own.Dirs)
	for i := range b.tree.Sources {
		s := &b.tree.Sources[i]
		if s.Path == "" {
			continue
		}
		if err := b.checkOwn(s); err != nil {
			return err
		}
		if b.isFound(s) {
			s.govern(filepath.Join(s.Path, manifestName))
		}
		for _, g := range paths {
			s.govern(g)
		}
		slices.Sort(s.Governing)
	}
	return nil
}

func (s *Source) govern(path string) {
	rel, err := filepath.Rel(s.Path, path)
	if err == nil && path != s.Path && mountpoint.Within(path, s.Path) && !slices.Contains(s.Governing, rel) {
		s.Governing = append(s.Governing, rel)
	}
}

// checkOwn refuses a part in which programs could write files that the host trusts:
// a manifest in the search path, at any depth that is searched, or a file beside
// the registry, which is replaced by a new file in the same directory.
func (b *builder) checkOwn(s *Source) error {
	if s.Stays != "" {
		return nil
	}
	for _, dir := range b.own.Searched {
		if mountpoint.Within(dir, s.Path) || depth(s.Path, dir) == 1 && !b.guardsSearch(s) {
			return exit.New(exit.Denied, "%s: the search path %s reaches into its directory %s, where programs could write manifests", s.Name, dir, s.Path).
				Hint("mount it with --read-only, or take the directory out of search_path of the host configuration")
		}
	}
	if slices.Contains(b.own.Dirs, s.Path) {
		return exit.New(exit.Denied, "%s: its directory %s is that of the host configuration or the registry", s.Name, s.Path).
			Hint("mount it with --read-only, or keep the workspace elsewhere")
	}
	return nil
}

// guardsSearch reports whether the search does not go below a part: it has a
// manifest, which cannot be changed, or is registered.
func (b *builder) guardsSearch(s *Source) bool {
	_, err := os.Lstat(filepath.Join(s.Path, manifestName))
	return err == nil || s.resolved != nil && s.resolved.Trust == host.Registered
}

// isFound reports whether the search path looks for a manifest in a part's directory.
func (b *builder) isFound(s *Source) bool {
	return slices.ContainsFunc(b.own.Searched, func(dir string) bool { d := depth(s.Path, dir); return d == 1 || d == 2 })
}

// depth is the number of directories by which path lies below dir; 0 if it does not.
func depth(path, dir string) int {
	rel, err := filepath.Rel(dir, path)
	if err != nil || path == dir || !mountpoint.Within(path, dir) {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

// builder turns resolved workspaces into the sources of a tree.
type builder struct {
	tree      *Tree
	copyName  string // Request.WorkingCopy
	writeBack bool
	own       host.Own
	governing []string // real paths of every manifest that was consulted, or could have been
}

// add adds a workspace at a path of the mount, and its children below.
func (b *builder) add(r *host.Resolved, at string) error {
	open, cached, err := opener(r)
	if err != nil {
		return err
	}
	s := Source{Name: r.Address.String(), At: at, Provider: r.Storage.Provider, Mode: string(r.Storage.Sync.Mode),
		Unverified: !r.Verified, ReadOnly: why(r.ReadOnly.Reasons), Stays: why(r.ReadOnly.Lasting().Reasons), Exclude: r.Storage.Exclude, Code: control.CodeOf(r.Code), Durability: "disk", Cached: cached,
		Place: [3]string{r.Address.Owner, r.Address.Slug + r.Part, placeName(r.Fingerprint, b.copyName)}, resolved: r,
		Open: func(ctx context.Context, e Env) (fs.Volume, error) { return open(ctx, r, e) }}
	if cached {
		if err := checkCached(r, b.writeBack); err != nil {
			return err
		}
		s.Durability, s.Authors, s.Store = b.tree.Durability, authorsOf(r), control.StoreOf(r.Location)
	}
	if r.Local != nil {
		s.Path, s.missing = r.Local.Path, r.Local.Missing
		if fsName, is := state.Volatile(s.Path); is {
			s.Durability = "volatile: " + fsName
		}
	}
	if d, ok := all.Registry().Get(s.Provider); ok && !d.Promises.Durable {
		s.Durability = "volatile: " + s.Provider
		until := "when the mount ends"
		if settings(r.Storage.Config)["socket"] != "" {
			until = "when the process behind its socket ends"
		}
		b.tree.note("what is written to %s is gone %s: its provider is %s", r.Address, until, s.Provider)
	}
	b.governing = append(append(b.governing, r.Governing...), r.Reserved...)
	b.warn(r)
	b.tree.Sources = append(b.tree.Sources, s)
	for _, c := range r.Children {
		if err := b.child(c, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) child(c host.Child, at string) error {
	place := strings.Trim(path.Join("/", at, c.At), "/")
	if c.Resolved == nil { // only where it is optional
		reason := Refusal(c.Err).What
		b.tree.note("the optional part at /%s is not there: %s", place, reason)
		b.tree.Sources = append(b.tree.Sources, Source{Name: "unavailable", At: place, Optional: true, Unavailable: reason})
		return nil
	}
	first := len(b.tree.Sources)
	if err := b.add(c.Resolved, place); err != nil {
		return err
	}
	b.tree.Sources[first].Optional = c.Optional
	return nil
}

// inherit makes the parts inside a read-only part read-only too, whichever
// workspace mounts them there: nothing loosens a refusal.
func (b *builder) inherit() {
	parts := b.tree.Sources
	for i := range parts {
		for j := range parts {
			if i == j || !mountpoint.Within("/"+parts[i].At, "/"+parts[j].At) {
				continue
			}
			parent := fmt.Sprintf("parent (it lies in /%s, which is read-only)", parts[j].At)
			if parts[i].ReadOnly == "" && parts[j].ReadOnly != "" {
				parts[i].ReadOnly = parent
			}
			if parts[i].Stays == "" && parts[j].Stays != "" {
				parts[i].Stays = parent
			}
		}
	}
}

// why joins the reasons, each once.
func why(reasons []host.Reason) string {
	var out []string
	for _, r := range reasons {
		if s := r.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

// warn turns the warnings of the resolution into notes.
func (b *builder) warn(r *host.Resolved) {
	if !r.Verified {
		b.tree.note("%s is unverified: its manifest is not registered (`wsmount registry add`)", r.Address)
	}
	if r.Grants.Daemon {
		b.tree.note("%s is at %s: over git:// nothing is encrypted and the server is not authenticated", r.Address, r.Location.Endpoint)
	}
	if _, others, _ := mountspec.Authors(r.Identity); r.Location.Service == host.ServiceGit && !r.ReadOnly.Lasting().On() {
		for _, p := range others {
			if p.Email == "" {
				b.tree.note("%s: %s is to be a co-author of commits, and has no name and e-mail address: no commit names it", r.Address, cmp.Or(p.Ref, p.Name))
			}
		}
	}
	if r.ReadOnly.On() && !r.ReadOnly.Lasting().On() {
		b.tree.note("%s is read-only at first, and not when its policy allows to write: %s", r.Address, why(r.ReadOnly.Reasons))
	}
	for _, f := range r.Warnings {
		b.tree.note("%s: %s", f.Pos(), f.Message)
	}
}
