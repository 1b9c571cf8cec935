package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/mountspec/host"
)

// manifestName is what is looked for in a directory of the search path.
const manifestName = "WORKSPACE.md"

// govern makes every file that decides what this mount, or another one, may do
// unchangeable from inside, in whichever part it lies and whether it exists or
// not. What cannot be kept from programs in a part refuses to show it to them.
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

// checkOwn refuses a part in which programs could put what the host believes: a
// manifest in the search path, at any depth that is searched, or a file beside the
// registry, which is replaced by one that is made there.
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

// guardsSearch says whether the search path ends at a part: at its manifest, which
// cannot be changed, or because it is registered.
func (b *builder) guardsSearch(s *Source) bool {
	_, err := os.Lstat(filepath.Join(s.Path, manifestName))
	return err == nil || s.resolved != nil && s.resolved.Trust == host.Registered
}

// isFound says whether the search path looks for a manifest in a part's directory.
func (b *builder) isFound(s *Source) bool {
	return slices.ContainsFunc(b.own.Searched, func(dir string) bool { d := depth(s.Path, dir); return d == 1 || d == 2 })
}

// depth is how many directories path lies below dir; 0 where it does not.
func depth(path, dir string) int {
	rel, err := filepath.Rel(dir, path)
	if err != nil || path == dir || !mountpoint.Within(path, dir) {
		return 0
	}
	return strings.Count(rel, "/") + 1
}
