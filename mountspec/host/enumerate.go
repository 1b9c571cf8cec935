package host

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// Known is a workspace that this host can find without being told its path.
type Known struct {
	Address mountspec.Address // zero: its manifest cannot be read, and no record has its address
	Path    string            // of the manifest, or of the directory of a workspace without one
	Source  string            // the file or directory that leads to it
	Trust   Trust
	// Workspace, Code, Provider and Location are from its manifests; nil and zero if they
	// cannot be read, or name things that the host does not grant.
	Workspace *mountspec.Workspace
	Code      *mountspec.Code // nil: not a code project
	Provider  string
	Location  Location
	// Resolved is as it would be mounted, without the mounts below it; nil: Err says why not.
	Resolved *Resolved
	Err      error
}

// Enumerate lists the workspaces of the host, by address (AIP-34, Motivation: hosts
// enumerate workspaces uniformly): those of the configuration and the registry, those
// below the search path, and those of ~/.agentproto. passed lists the skipped paths,
// with reasons. No store is asked, and nothing is changed.
//
// The error is that of a registry that cannot be read, and of ctx.
func (r *Resolver) Enumerate(ctx context.Context) (list []Known, passed []string, err error) {
	reg, err := r.store.load()
	if err != nil {
		return nil, nil, err
	}
	s := r.session(ctx, reg, ResolveOptions{})
	list, err = lookAt(s, s.finder.all(), true)
	r.cfg.apart(list)
	return list, s.passed, err
}

// apart sets Err of workspaces that share bytes with a registered one: they would not be mounted.
func (c *Config) apart(list []Known) {
	places := make([]Location, len(list))
	for i, k := range list {
		places[i] = k.Location
	}
	refuse := func(k *Known, other Known) {
		if k.Err == nil && other.Trust == Registered && k.Address != other.Address && !c.mayOverlap(k.Address, other.Address) {
			k.Err = overlaps(k.Address, k.Location, other.Address, other.Location, k.Path)
		}
	}
	location.Sharing(places, ondisk.New(), func(i, j int) {
		refuse(&list[i], list[j])
		refuse(&list[j], list[i])
	})
}

// Manifests lists the workspaces whose WORKSPACE.md lies in a directory or in one
// directly below it, by address (AIP-34, Motivation). Links are not followed. The error
// is that of the directory, of a registry that cannot be read, and of ctx.
func (r *Resolver) Manifests(ctx context.Context, dir string) ([]Known, error) {
	reg, err := r.store.load()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fileError("", dir, err)
	}
	s := r.session(ctx, reg, ResolveOptions{})
	var found []candidate
	add := func(dir string) {
		if path := filepath.Join(dir, manifestName); exists(path) {
			c := s.finder.byPath(path, false)
			c.path = path // the found path, not the registry's
			found = append(found, c)
		}
	}
	add(dir)
	for _, e := range entries {
		if e.IsDir() {
			add(filepath.Join(dir, e.Name()))
		}
	}
	return lookAt(s, found, false)
}

// lookAt reads the manifests of all candidates, several at once, and sorts them.
// Candidates that are not registered are not resolved, only read, unless unverified.
func lookAt(s *session, found []candidate, unverified bool) ([]Known, error) {
	list := make([]Known, len(found))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found)) {
		readers.Go(func() {
			for i := range next {
				list[i] = look(s.r.session(s.ctx, s.reg, s.o), found[i], unverified)
			}
		})
	}
	for i := range found {
		next <- i
	}
	close(next)
	readers.Wait()
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Known) int {
		return strings.Compare(a.Address.String()+" "+a.Path, b.Address.String()+" "+b.Path)
	})
	for i := range list {
		if i > 0 && list[i].isNamed(list[i-1].Address) || i+1 < len(list) && list[i].isNamed(list[i+1].Address) {
			list[i].Err = denied("", list[i].Path, "give one of them another id, or register the right one: wsmount registry add DIRECTORY",
				"another manifest has the id %s too", list[i].Address)
		}
	}
	return list, nil
}

func (k *Known) isNamed(a mountspec.Address) bool { return k.Address == a && a != mountspec.Address{} }

// look reads the manifests of one candidate.
func look(s *session, c candidate, unverified bool) Known {
	k := Known{Address: c.addr, Path: c.path, Source: c.how, Trust: c.trust, Err: s.ctx.Err()}
	if k.Err != nil {
		return k
	}
	l, err := s.load(c)
	if err == nil {
		err = s.accepted(l)
	}
	if err == nil && (unverified || c.trust != Unverified) {
		k.Resolved, err = alone(s, l)
	}
	k.Err = err
	if l != nil {
		k.Address, k.Path, k.Workspace, k.Code, k.Provider, k.Location = l.ws.ID, orDefault(l.manifest, c.path), l.ws, l.code, l.storage.Provider, l.loc
	}
	return k
}

// alone resolves a workspace by itself, without the check for overlaps.
func alone(s *session, l *loaded) (*Resolved, error) {
	grants, err := s.grants.authorize(l)
	if err != nil {
		return nil, err
	}
	out := s.build(l, grants)
	if err := s.decide(l, out); err != nil {
		return nil, err
	}
	s.readOnly(l, out, nil)
	return out, nil
}

// all returns the places of every workspace, in the order in which find asks: the
// first place for an address is the one that it means.
func (f *finder) all() []candidate {
	list := f.allRegistered()
	taken := map[mountspec.Address]bool{}
	for _, c := range list {
		taken[c.addr] = true
	}
	add := func(more []candidate) {
		for _, c := range more {
			if !taken[c.addr] {
				list = append(list, c)
			}
		}
		for _, c := range more { // two of one address are both shown: it means neither
			taken[c.addr] = c.addr != mountspec.Address{}
		}
	}
	add(f.allSearched())
	add(f.allOfAgentproto())
	return list
}

func (f *finder) allRegistered() []candidate {
	var list []candidate
	for name, e := range f.reg.All() {
		a, _ := mountspec.ParseAddress(name)
		c := f.r.pinned(a, e)
		c.how = f.r.store.path
		list = append(list, c)
	}
	for name, w := range f.r.cfg.Workspaces {
		if e, ok := f.reg.Get(name); ok && samePlace(e.Path, w.Path) {
			continue
		}
		a, _ := mountspec.ParseAddress(name)
		list = append(list, candidate{addr: a, path: w.Path, trust: Registered, how: f.r.cfg.Path, ownerID: w.OwnerID, row: w.Row, checked: true})
	}
	return list
}

func (f *finder) allSearched() []candidate {
	var list []candidate
	for _, dir := range f.r.cfg.SearchPath {
		for _, m := range f.below(dir, mountspec.Address{}) {
			if !slices.ContainsFunc(list, func(c candidate) bool { return c.path == m.path }) {
				list = append(list, candidate{addr: m.id, path: m.path, trust: Unverified, how: dir, checked: true})
			}
		}
	}
	return list
}

// allOfAgentproto returns those of ~/.agentproto, by their manifests if they have a bare slug.
func (f *finder) allOfAgentproto() []candidate {
	listed, err := f.readAgentproto()
	if err != nil {
		f.skip(f.r.agentprotoPath(), because(f.r.agentprotoPath(), err))
		return nil
	}
	var list []candidate
	for _, w := range listed {
		if filepath.IsAbs(w.Path) {
			a, _ := mountspec.ParseAddress(w.Slug)
			if a == (mountspec.Address{}) {
				if path, err := manifestPath(w.Path); err == nil {
					if m, _ := f.manifestIn(filepath.Dir(path)); m != nil {
						a = m.id
					}
				}
			}
			list = append(list, candidate{addr: a, path: w.Path, trust: Unverified, how: f.r.agentprotoPath(), checked: true})
		}
	}
	return list
}
