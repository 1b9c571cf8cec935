package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/near"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

// A refKind is the kind of manifest that a reference must lead to.
type refKind struct{ name, code string }

var (
	refStorage  = refKind{"storage", CodeStorageRef}
	refSandbox  = refKind{"sandbox", CodeSandboxRef}
	refCode     = refKind{"code", ""}
	refPolicy   = refKind{"policy", ""}
	refSecrets  = refKind{"secrets", CodeAuth}
	refIdentity = refKind{"identity", ""}
	refMount    = refKind{"mount", CodeStorageRef}
	refTemplate = refKind{"template", ""}
)

// references lead from one manifest to another, as far as the host allows it.
type references struct {
	*trail
	r   *Resolver
	reg *registry.File
}

// follow reads the manifest that a reference leads to, and returns the base of the
// references in it. The file is among the governing ones from then on.
func (r *references) follow(l *loaded, ref mountspec.Ref, from base, kind refKind) (*file, base, error) {
	var f *file
	var at base
	var err error
	if ref.Kind == mountspec.RefSlug {
		f, at, err = r.followSlug(ref, from, kind)
	} else {
		f, at, err = r.followPath(l, ref, from, kind)
	}
	if err != nil {
		return nil, base{}, err
	}
	r.step(kind.name+" "+ref.Value, f.path)
	l.addFile(f)
	return f, at, nil
}

func (l *loaded) addFile(f *file) {
	if !slices.ContainsFunc(l.files, func(g *file) bool { return g.path == f.path }) {
		l.files = append(l.files, f)
	}
}

// followPath reads a file of the same workspace, or of a sibling one.
func (r *references) followPath(l *loaded, ref mountspec.Ref, from base, kind refKind) (*file, base, error) {
	target := filepath.Join(from.dir, filepath.FromSlash(ref.Value))
	at := from
	if !grant.Below(from.root, target) {
		if ref.Kind != mountspec.RefCrossWorkspace || l.isElsewhere(from.root) {
			return nil, base{}, escapes(ref, kind)
		}
		target = location.Real(target)
		var err error
		if at, err = r.sibling(ref, target, from, kind); err != nil {
			return nil, base{}, err
		}
	}
	rel, err := filepath.Rel(at.root, target)
	if err != nil {
		return nil, base{}, escapes(ref, kind)
	}
	f, err := l.read(at.root, rel)
	switch {
	case errors.Is(err, hostfile.ErrEscapes):
		return nil, base{}, escapes(ref, kind)
	case errors.Is(err, fs.ErrNotExist):
		where := yesNo(l.isElsewhere(at.root), "it where the manifest lies", target)
		return nil, base{}, unresolvable(kind.code, ref.Pos.String(), "create "+where+", or correct the reference", "%s %q does not exist", kind.name, ref.Value)
	case err != nil:
		return nil, base{}, &Error{Class: Unresolvable, Code: kind.code, Where: ref.Pos.String(), What: fmt.Sprintf("%s %q cannot be read", kind.name, ref.Value), Err: err, Hint: "point to a readable, regular file"}
	}
	at.dir = filepath.Dir(f.path)
	return f, at, nil
}

func escapes(ref mountspec.Ref, kind refKind) error {
	return denied(kind.code, ref.Pos.String(), "keep the file below the workspace, without links that lead out of it",
		"%s %q leads out of the workspace", kind.name, ref.Value)
}

// sibling finds the registered workspace that holds target: only then is the
// owner of the file known.
func (r *references) sibling(ref mountspec.Ref, target string, from base, kind refKind) (base, error) {
	addr, root := r.ownerOf(target)
	if addr == (mountspec.Address{}) {
		return base{}, denied(kind.code, ref.Pos.String(), "register the sibling: wsmount registry add "+filepath.Dir(target),
			"%s %q lies in no registered workspace", kind.name, ref.Value)
	}
	if err := r.mayRefer(from, addr.Owner, addr.Slug, ref, kind); err != nil {
		return base{}, err
	}
	return base{addr: addr, dir: root, root: root, trust: Registered}, nil
}

// ownerOf finds the registered workspace whose directory holds the real
// path, the nearest one.
func (r *references) ownerOf(path string) (mountspec.Address, string) {
	addr, root := "", ""
	nearest := func(a, dir string) {
		if dir = location.Real(dir); grant.Below(dir, path) && len(dir) > len(root) {
			addr, root = a, dir
		}
	}
	for a, e := range r.reg.All() {
		nearest(a, e.Root())
	}
	for a, w := range r.r.cfg.Workspaces {
		nearest(a, filepath.Dir(location.Manifest(w.Path)))
	}
	a, _ := mountspec.ParseAddress(addr)
	return a, root
}

// followSlug reads a manifest that the host configuration lists.
func (r *references) followSlug(ref mountspec.Ref, from base, kind refKind) (*file, base, error) {
	owner, slug, _ := strings.Cut(strings.TrimPrefix(ref.Value, "@"), "/")
	if err := r.mayRefer(from, owner, slug, ref, kind); err != nil {
		return nil, base{}, err
	}
	path, ok := r.r.cfg.Manifests[ref.Value]
	known := slices.Collect(maps.Keys(r.r.cfg.Manifests))
	if kind == refStorage {
		if e, in := r.r.cfg.Storages[ref.Value]; in {
			path, ok = e.Path, true
		}
		known = slices.AppendSeq(known, maps.Keys(r.r.cfg.Storages))
	}
	if !ok {
		slices.Sort(known)
		list := yesNo(kind == refStorage, "storages", "manifests")
		return nil, base{}, unresolvable(kind.code, ref.Pos.String(), near.Hint(ref.Value, known, "add it to "+list+" of the host configuration"),
			"%s %s is not known here", kind.name, ref.Value)
	}
	f, err := readTrusted(path)
	if err != nil {
		return nil, base{}, fileError(kind.code, path, err)
	}
	dir := filepath.Dir(f.path)
	return f, base{addr: mountspec.Address{Owner: owner, Slug: slug}, dir: dir, root: dir, trust: Registered}, nil
}

// mayRefer checks whether a manifest may use another owner's manifest. Within one
// owner it may, once the owner is known; across owners the host has to list it
// (AIP-35: crossing an access boundary is audited).
func (r *references) mayRefer(from base, owner, slug string, ref mountspec.Ref, kind refKind) error {
	to := "@" + owner + "/" + slug
	reason, allowed := "", false
	switch {
	case from.trust == Unverified:
		reason = "the manifest is not registered, so that its owner is only a claim"
	case from.addr.Owner == owner:
		return nil
	default:
		for _, p := range r.r.cfg.AllowRefs {
			if grant.Matches(p.From, from.addr.Owner, from.addr.Slug) && matchesSlug(p.To, owner, slug) {
				reason, allowed = "allow_refs "+p.From+" to "+p.To, true
			}
		}
	}
	if reason == "" {
		reason = "the host does not allow it"
	}
	rec := audit.CrossOwnerRef{From: from.addr.String(), To: to, Kind: kind.name, Allowed: allowed, Reason: reason}
	if err := r.r.o.Audit.Write(rec); err != nil {
		return unrecorded(kind.code, ref.Pos.String(), err)
	}
	if allowed {
		r.step(kind.name+" of another owner, "+to, reason)
		return nil
	}
	hint := fmt.Sprintf("add { from: \"@%s/*\", to: \"@%s/*\" } to allow_refs of the host configuration", from.addr.Owner, owner)
	if from.trust == Unverified {
		hint = "register the manifest: wsmount registry add DIRECTORY"
	}
	return denied(kind.code, ref.Pos.String(), hint, "%s %s of another owner is not granted to %s: %s", kind.name, to, from.addr, reason)
}

// matchesSlug compares a pattern with a slug that may have more than two
// parts: @shared/* covers all of them.
func matchesSlug(pattern, owner, slug string) bool {
	return grant.Matches(pattern, owner, slug) || pattern == "@"+owner+"/"+slug
}

// sameID refuses a manifest that a slug leads to and that says it is
// another one.
func sameID(ref mountspec.Ref, id *mountspec.Address, path, code string) error {
	if ref.Kind != mountspec.RefSlug || id == nil || id.String() == ref.Value {
		return nil
	}
	return denied(code, path, "correct storages or manifests of the host configuration", "the manifest listed for %s says that it is %s", ref.Value, id)
}

// identityFile is the file that an entry names, in either form.
func identityFile(e mountspec.IdentityEntry) string {
	if e.File == "" && strings.HasPrefix(e.Ref, "./") {
		return e.Ref
	}
	return e.File
}
