package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/near"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

const manifestName = "WORKSPACE.md"

// A candidate is a possible place of a workspace, before anything of it is read.
type candidate struct {
	addr    mountspec.Address // zero: the manifest's
	path    string            // directory or manifest, absolute
	trust   Trust
	how     string        // for Explain and errors
	ownerID string        // empty: not known
	entry   *Registration // nil: not in the registry file
	row     *Row          // nil: the configuration has no keys of a manifest
	text    []byte        // the future text of the manifest at path; nil: the present one
	files   *elsewhere    // the manifests do not lie at path; nil: they do
	checked bool          // the file must be safe from other users: nothing else pins it
}

// A finder leads from an address or a path to a candidate.
type finder struct {
	*trail
	r     *Resolver
	reg   *registry.File
	parse mountspec.Options
	met   []string // addresses of the manifests that the search path led to
}

// find looks an address up: the configuration and the registry, which must agree;
// then the search path; then ~/.agentproto/workspaces.json. A path is never built
// from an address that is not listed.
func (f *finder) find(a mountspec.Address) (candidate, error) {
	if c, ok, err := f.registered(a); ok || err != nil {
		return c, err
	}
	if c, ok, err := f.search(a); ok || err != nil {
		return c, err
	}
	if c, ok, err := f.agentproto(a); ok || err != nil {
		return c, err
	}
	hint := "register it: wsmount registry add DIRECTORY"
	if len(f.passed) > 0 {
		hint = "correct what was skipped, if it is one of these, or " + hint
	}
	err := unresolvable("", "", near.Hint(a.String(), f.known(), hint), "no workspace %s is known here", a)
	err.Skipped = f.passed
	return candidate{}, err
}

// known lists the addresses that could have been meant.
func (f *finder) known() []string {
	out := slices.Clone(f.met)
	for k := range f.r.cfg.Workspaces {
		out = append(out, k)
	}
	out = append(out, f.reg.Names()...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *finder) registered(a mountspec.Address) (candidate, bool, error) {
	if err := f.r.store.damaged(f.reg, a.String()); err != nil {
		return candidate{}, false, err
	}
	w, inConfig := f.r.cfg.Workspaces[a.String()]
	e, inRegistry := f.reg.Get(a.String())
	f.step("workspaces in "+orDefault(f.r.cfg.Path, "the configuration"), yesNo(inConfig, w.Path, "no "+a.String()))
	f.step("registry "+f.r.store.path, yesNo(inRegistry, pathOf(e), "no "+a.String()))
	if inConfig && inRegistry && !samePlace(w.Path, e.Path) {
		return candidate{}, false, denied("", f.r.cfg.Path, "remove one: wsmount registry remove "+a.String(),
			"two manifests are registered as %s: %s and %s", a, w.Path, e.Path)
	}
	switch {
	case inRegistry:
		return f.r.pinned(a, e), true, nil
	case inConfig:
		return candidate{addr: a, path: w.Path, trust: Registered, how: "the host configuration", ownerID: w.OwnerID, row: w.Row, checked: true}, true, nil
	}
	return candidate{}, false, nil
}

// pinned is the candidate for a workspace of the registry.
func (r *Resolver) pinned(a mountspec.Address, e *Registration) candidate {
	return candidate{addr: a, path: e.Path, trust: Registered, how: "the registry", ownerID: e.OwnerID, entry: e, row: r.cfg.Workspaces[a.String()].Row, files: recorded(e)}
}

func pathOf(e *Registration) string {
	if e == nil {
		return ""
	}
	return e.Path
}

func yesNo(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// samePlace reports whether two paths, each of a directory or of a manifest, name one manifest.
func samePlace(a, b string) bool { return location.Manifest(a) == location.Manifest(b) }

// search looks for the address below each directory of the search path.
func (f *finder) search(a mountspec.Address) (candidate, bool, error) {
	var found []string
	for _, dir := range f.r.cfg.SearchPath {
		found = append(found, f.searchDir(dir, a)...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	switch len(found) {
	case 0:
		return candidate{}, false, nil
	case 1:
		return candidate{addr: a, path: found[0], trust: Unverified, how: "the search path", checked: true}, true, nil
	}
	return candidate{}, false, denied("", "", "remove one from the search path, or register the right one: wsmount registry add DIRECTORY",
		"%d manifests call themselves %s: %s", len(found), a, strings.Join(found, ", "))
}

// maxSearch bounds the number of directories read in one search directory.
const maxSearch = 10000

// A manifest is a WORKSPACE.md that was found, with the address that it claims.
type manifest struct {
	path string
	id   mountspec.Address
}

// searchDir lists the manifests below dir that claim the address a.
func (f *finder) searchDir(dir string, a mountspec.Address) (paths []string) {
	for _, m := range f.below(dir, a) {
		if m.id == a {
			paths = append(paths, m.path)
			continue
		}
		f.met = append(f.met, m.id.String())
	}
	f.step("search path "+dir, fmt.Sprintf("%d of %s", len(paths), a))
	return paths
}

// below lists the manifests in dir, in each directory in it and at <owner>/<slug>, where
// it looks for one address only if a is not zero. It never looks below a directory that
// is a workspace itself. Links are not followed, and directories that other users can
// write are skipped: any of them could put a manifest there.
func (f *finder) below(dir string, a mountspec.Address) (list []manifest) {
	real, err := hostfile.CheckDir(dir, hostfile.Options{})
	if err != nil {
		f.skip(dir, because(dir, err))
		return nil
	}
	if m, is := f.manifestIn(real); is {
		f.step("search path "+dir, "is a workspace itself")
		return appendFound(nil, m)
	}
	for _, name := range f.subdirs(real) {
		sub := filepath.Join(real, name)
		m, is := f.manifestIn(sub)
		list = appendFound(list, m)
		if is || a.Owner != "" && a.Owner != name {
			continue
		}
		slugs := []string{a.Slug}
		if a.Slug == "" {
			slugs = f.subdirs(sub)
		}
		for _, slug := range slugs {
			addr, err := mountspec.ParseAddress("@" + name + "/" + slug)
			if deep := filepath.Join(sub, slug); err == nil && exists(filepath.Join(deep, manifestName)) && !f.keepsFiles(sub) && f.safeDir(deep) {
				if m, _ := f.manifestIn(deep); m != nil && (m.id == addr || a == addr) {
					list = append(list, *m)
				}
			}
		}
	}
	return list
}

func appendFound(list []manifest, m *manifest) []manifest {
	if m == nil {
		return list
	}
	return append(list, *m)
}

// subdirs are the names of the directories in one, as far as they are safe.
func (f *finder) subdirs(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.skip(dir, because(dir, err))
		return nil
	}
	for _, e := range entries[:min(len(entries), maxSearch)] {
		if e.IsDir() && f.safeDir(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

// keepsFiles reports whether a registered workspace keeps its files in dir. A
// manifest that its programs write there must not be found.
func (f *finder) keepsFiles(dir string) bool {
	for _, name := range f.reg.Names() {
		if at, _ := f.reg.Place(name); at.Service == ServiceDir && at.Prefix == dir {
			f.skip(dir, "a registered workspace keeps its files there")
			return true
		}
	}
	for _, w := range f.r.cfg.Workspaces {
		if location.Real(w.Path) == dir {
			f.skip(dir, "a workspace of the configuration keeps its files there")
			return true
		}
	}
	return false
}

// safeDir reports whether path is a directory, no link, that only root and the user can write.
func (f *finder) safeDir(path string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	if _, err := hostfile.CheckDir(path, hostfile.Options{}); err != nil {
		f.skip(path, because(path, err))
		return false
	}
	return true
}

// manifestIn reads the manifest of a directory. nil: it has none, or one that was
// skipped; isWorkspace tells these apart.
func (f *finder) manifestIn(dir string) (m *manifest, isWorkspace bool) {
	path := filepath.Join(dir, manifestName)
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return nil, false
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.skip(path, "not a regular file")
		return nil, true
	}
	got, err := readTrusted(path)
	if err != nil {
		f.skip(path, because(path, err))
		return nil, true
	}
	ws, findings := mountspec.ParseWorkspace(got.source(), f.parse)
	if ws == nil {
		f.skip(path, "not valid: "+firstOf(findings, path))
		return nil, true
	}
	return &manifest{got.path, ws.ID}, true
}

// because is the text of an error about path, without path.
func because(path string, err error) string {
	var h *hostfile.Error
	if errors.As(err, &h) && h.Hint != "" {
		return strings.TrimPrefix(err.Error(), path+": ") + "; " + h.Hint
	}
	return strings.TrimPrefix(err.Error(), path+": ")
}

// firstOf is the first error in a manifest, and the number of further ones.
func firstOf(found mountspec.Findings, path string) string {
	wrong := found.Filter(mountspec.Error)
	if len(wrong) == 0 {
		return "it cannot be read"
	}
	text := strings.TrimPrefix(wrong[0].String(), path)
	if len(wrong) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(wrong)-1)
	}
	return strings.TrimPrefix(text, ":")
}

// agentproto asks the registry that agent hosts keep (AIP-46, Workspaces):
// exact matches only.
func (f *finder) agentproto(a mountspec.Address) (candidate, bool, error) {
	path := f.r.agentprotoPath()
	listed, err := f.readAgentproto()
	if err != nil {
		return candidate{}, false, err
	}
	found := ""
	for _, w := range listed {
		// A registry older than addresses keys by the bare slug; the
		// manifest's own id decides then, as it always does.
		if w.Slug != a.String() && w.Slug != a.Slug || !filepath.IsAbs(w.Path) {
			continue
		}
		if found != "" && !samePlace(found, w.Path) {
			return candidate{}, false, denied("", path, "remove one there", "two workspaces are listed for %s: %s and %s", a, found, w.Path)
		}
		found = w.Path
	}
	f.step(path, yesNo(found != "", found, "no "+a.String()))
	return candidate{addr: a, path: found, trust: Unverified, how: path, checked: true}, found != "", nil
}

// A listedWorkspace is one of ~/.agentproto/workspaces.json.
type listedWorkspace struct{ Slug, Path string }

func (f *finder) readAgentproto() ([]listedWorkspace, error) {
	if f.r.o.Home == "" {
		return nil, nil
	}
	path := f.r.agentprotoPath()
	list, err := hostfile.Read(path, hostfile.Options{MaxBytes: 16 << 20})
	if hostfile.IsAbsent(err) {
		f.step(path, "absent")
		return nil, nil
	}
	if err != nil {
		return nil, fileError("", path, err)
	}
	var reg struct {
		Version    int
		Workspaces []listedWorkspace
	}
	if err := json.Unmarshal(list.Data, &reg); err != nil || reg.Version != 1 {
		return nil, &Error{Class: Unresolvable, Where: path, What: "cannot be read as a registry of version 1", Err: err, Hint: "correct it, or register the workspace here: wsmount registry add DIRECTORY"}
	}
	return reg.Workspaces, nil
}

func (r *Resolver) agentprotoPath() string {
	return filepath.Join(r.o.Home, ".agentproto", "workspaces.json")
}

// byPath makes a candidate of a path. A registered workspace counts as registered, also by path.
func (f *finder) byPath(path string, trust bool) candidate {
	for addr, e := range f.reg.All() {
		if samePlace(e.Path, path) {
			a, _ := mountspec.ParseAddress(addr)
			f.step(path, "registered as "+addr)
			return f.r.pinned(a, e)
		}
	}
	for addr, w := range f.r.cfg.Workspaces {
		if samePlace(w.Path, path) {
			a, _ := mountspec.ParseAddress(addr)
			f.step(path, "registered as "+addr+" in "+f.r.cfg.Path)
			return candidate{addr: a, path: w.Path, trust: Registered, how: "the host configuration", ownerID: w.OwnerID, row: w.Row, checked: true}
		}
	}
	c := candidate{path: path, how: "the command line"}
	if trust {
		c.trust = Vouched
	}
	f.step(path, "not registered, "+c.trust.String())
	return c
}
