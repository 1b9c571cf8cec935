package host

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/copies"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/origin"
)

// elsewhere is the files of a workspace whose manifests are not local. In paths, root,
// the directory of their copies, stands for the place.
type elsewhere struct {
	*origin.Files
	root string
}

func (e *elsewhere) read(p string) (*file, error) {
	name, _ := filepath.Rel(e.root, p) // both are absolute
	data, err := e.Read(name)
	return &file{path: p, asked: p, data: data}, err
}

// fetched is the directory for the copies of a workspace's fetched manifests.
func (r *Resolver) fetched(a mountspec.Address) string {
	return filepath.Join(location.Real(filepath.Dir(r.store.path)), "fetched", a.Owner, a.Slug)
}

// recorded returns the accepted files of a workspace with fetched manifests; nil: they are local.
func recorded(r *Registration) *elsewhere {
	if r.From == nil {
		return nil
	}
	return &elsewhere{origin.NewFiles(context.Background(), r.Texts()), filepath.Dir(r.Path)}
}

// keep writes the copies of the files, if they were fetched.
func keep(r *Registration) error {
	if r.From != nil {
		if err := copies.Replace(filepath.Dir(r.Path), r.Texts()); err != nil {
			return unwritten(filepath.Dir(r.Path), err)
		}
	}
	return nil
}

// A fetcher reads workspaces with manifests that are not local, for a session.
type fetcher struct{ *session }

// fetch reads a workspace at its place. a is its address; zero: the manifest's, which
// must have the owner whose grants it is read with.
func (s fetcher) fetch(from origin.Origin, a mountspec.Address, ownerID string) (*loaded, error) {
	as, err := s.r.ownerAt(from, a)
	if err != nil {
		return nil, err
	}
	at, err := s.storeOf(from, as)
	if err != nil {
		return nil, err
	}
	if s.r.o.Open == nil {
		return nil, unresolvable("", from.Place.String(), "clone or copy it, then wsmount registry add DIRECTORY", "nothing is fetched by this program")
	}
	src, err := s.r.o.Open(s.ctx, s.r, at)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	l, err := s.loadFrom(origin.NewFiles(s.ctx, src), from.Place, a, as, ownerID)
	if err != nil {
		return nil, err
	}
	if here := at.Location; from.Place.Branch == "" && l.loc.Branch != "" { // which may differ from the server's HEAD
		if here.Branch = l.loc.Branch; l.loc.Is(here) {
			from.Place.Branch = here.Branch
			return s.fetch(from, l.ws.ID, ownerID)
		}
	}
	if !l.loc.Is(at.Location) {
		return nil, denied("", from.Place.String(), "register it from where its storage is, or have it name the place where it lies",
			"it says that its storage is %s, and it lies at %s", l.loc, at.Location)
	}
	l.from = &from
	return l, nil
}

// loadFrom reads the manifests at a place, which is read with the grants of as.
func (s fetcher) loadFrom(files *origin.Files, at origin.Place, a, as mountspec.Address, ownerID string) (*loaded, error) {
	text, err := files.Read(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unresolvable("", at.String(), "write one there, or correct the place", "there is no %s", manifestName)
	}
	if err != nil {
		return nil, &Error{Class: Unresolvable, Where: at.String(), What: manifestName + " cannot be read", Err: err, Hint: "check that it is a file, of the usual size"}
	}
	id := a
	if ws, _ := mountspec.ParseWorkspace(mountspec.Source{Name: manifestName, Data: text}, s.parse()); ws != nil && a == (mountspec.Address{}) {
		id = ws.ID
	}
	if id == (mountspec.Address{}) { // invalid: load reports it
		id = as
	} else if id.Owner != as.Owner {
		return nil, denied("", at.String(), "if it is to be read with what the host grants to "+id.Owner+": --id "+id.String(),
			"it says that it is %s, and lies at a place of %s", id, as.Owner)
	}
	root := s.r.fetched(id)
	l, err := s.load(candidate{addr: a, path: filepath.Join(root, manifestName), trust: Registered, how: at.String(), ownerID: ownerID, files: &elsewhere{files, root}})
	asAt(at, root, err)
	return l, err
}

// asAt replaces root in an error by the place, since root may have no copies yet.
func asAt(at origin.Place, root string, err error) {
	there := func(path string) string {
		if name, ok := strings.CutPrefix(path, root+"/"); ok {
			return name + " of " + at.String()
		}
		return path
	}
	var e *Error
	if errors.As(err, &e) {
		e.Where = there(e.Where)
	}
	var found mountspec.Findings
	errors.As(err, &found)
	for i := range found {
		found[i].File = there(found[i].File)
	}
}

// ownerAt is the owner with whose grants a place is read: that of the repository, or the
// only one to which the host grants that part of its bucket.
func (r *Resolver) ownerAt(from origin.Origin, a mountspec.Address) (mountspec.Address, error) {
	if a != (mountspec.Address{}) {
		return a, nil
	}
	p := from.Place
	owner, slug := strings.ToLower(p.Owner), strings.ToLower(p.Repo)
	if p.Kind != origin.GitHub {
		slug = path.Base(path.Join(p.Bucket, p.Prefix))
		if owners := r.cfg.ownersOf(from); len(owners) == 1 {
			owner = owners[0]
		}
	}
	as, err := mountspec.ParseAddress("@" + owner + "/" + slug)
	if err != nil {
		return as, unresolvable("", p.String(), "say whose it is: --id @owner/slug", "it is not known with whose grants it is to be read")
	}
	return as, nil
}

// ownersOf returns the owners to which the host grants a part of its own bucket service;
// none: the origin is not in that service.
func (c *Config) ownersOf(from origin.Origin) (owners []string) {
	if b := c.CloudBucket; b != nil && b.Kind == from.Place.Kind && from.IsPlain() {
		for _, g := range b.Grants {
			if g.Bucket == from.Place.Bucket && grant.Prefix(g.Prefix, from.Place.Prefix) && !slices.Contains(owners, g.Owner) {
				owners = append(owners, g.Owner)
			}
		}
	}
	return owners
}

// StorageAt is the storage block that an origin stands for in a manifest of an owner.
func (r *Resolver) StorageAt(from origin.Origin, owner string) (*mountspec.Storage, error) {
	st, err := from.Storage(slices.Contains(r.cfg.ownersOf(from), owner), mountspec.Options{Registered: r.o.Providers})
	if err != nil {
		return nil, &Error{Class: Unresolvable, Where: from.Place.String(), What: "there is no such place", Err: err, Hint: origin.PlaceHint}
	}
	return st, nil
}

// storeOf is the store of an origin, with the host's grants to an address.
func (s fetcher) storeOf(from origin.Origin, a mountspec.Address) (*Resolved, error) {
	st, err := s.r.StorageAt(from, a.Owner)
	if err != nil {
		return nil, err
	}
	root := s.r.fetched(a)
	l := &loaded{cand: candidate{addr: a, trust: Registered}, ws: &mountspec.Workspace{ID: a}, storage: st, home: base{a, root, root, Registered}}
	if err := s.locate(l); err != nil {
		return nil, err
	}
	g, err := s.grants.authorize(l)
	if err != nil {
		return nil, err
	}
	return &Resolved{Address: a, Workspace: l.ws, Storage: st, Trust: Registered, Verified: true, Location: l.loc, Grants: g, Principal: s.r.Principal(),
		ReadOnly: ReadOnly{[]Reason{{Source: "origin", Where: from.Place.String()}}}}, nil
}
