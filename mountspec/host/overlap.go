package host

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// checkOverlap refuses a storage that shares bytes with that of another
// registered workspace: each would change the other's files behind its
// back. The host may grant it.
func (s *session) checkOverlap(l *loaded) error { return s.eachOther(l, s.overlap) }

// overlapNotes returns, for a newly registered workspace, notes on overlaps with
// others: neither of the two can be mounted then.
func (s *session) overlapNotes(l *loaded) (notes []string, err error) {
	err = s.eachOther(l, func(l *loaded, addr string, other Location) error {
		a, err := mountspec.ParseAddress(addr)
		if err != nil || addr == l.ws.ID.String() || !l.loc.SharesBytes(other, s.disks) || s.r.cfg.mayOverlap(l.ws.ID, a) {
			return err
		}
		notes = append(notes, fmt.Sprintf("its storage %s overlaps %s of %s, so that neither of the two can be mounted: give one of them another place, take one out (wsmount registry remove), or grant it: %s",
			l.loc, other, addr, allowOverlap(l.ws.ID, a)))
		return nil
	})
	return notes, err
}

// eachOther calls f with the place of each workspace of this host, also that of l in the registry.
func (s *session) eachOther(l *loaded, f func(l *loaded, addr string, other Location) error) error {
	s.disks = ondisk.New()
	kept := s.others.keptPlaces(s.r, s.reg)
	defer kept.save()
	for _, name := range s.reg.Names() {
		at, known := s.reg.Place(name)
		if !known {
			s.unknownPlace(l, strconv.Quote(name), s.r.store.path, errors.New("its entry in the registry is damaged"))
		} else if err := f(l, name, at); err != nil {
			return err
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(s.r.cfg.Workspaces)) {
		if _, twice := s.reg.Get(addr); twice || addr == l.ws.ID.String() {
			continue
		}
		other, known := s.others.places[addr]
		if !known {
			other.loc, other.kept = kept.find(addr)
			known = other.kept
		}
		if !known || other.kept && l.loc.SharesBytes(other.loc, s.disks) { // no refusal relies on a kept place
			other = s.read(addr, kept)
		}
		s.others.places[addr] = other
		if other.err != nil {
			s.unknownPlace(l, addr, s.r.cfg.Path, other.err)
			// Most keep their bytes beside their manifest.
			other.loc = Location{Service: ServiceDir, Prefix: filepath.Dir(location.Manifest(s.r.cfg.Workspaces[addr].Path))}
		}
		if err := f(l, addr, other.loc); err != nil {
			return err
		}
	}
	return nil
}

// unknownPlace warns that a workspace could not be compared: one of the configuration only by the
// directory of its manifest, one with a damaged entry in the registry not at all. It does not
// refuse: a mistake in one would block every workspace.
func (s *session) unknownPlace(l *loaded, addr, file string, err error) {
	s.step("overlap with "+addr, "not known: "+err.Error())
	l.warnings = append(l.warnings, mountspec.Finding{Severity: mountspec.Warning, File: file, Path: "workspaces." + addr,
		Rule: "overlap-unknown", Message: "whether " + addr + " keeps its bytes in the same place is not known: " + err.Error(),
		Hint: "correct its manifest, or remove it"})
}

// read finds the place of a workspace of the configuration, by its manifests.
func (s *session) read(addr string, kept *keptPlaces) otherPlace {
	l, err := s.loadOther(addr)
	if err != nil {
		return otherPlace{err: err}
	}
	kept.keep(addr, l)
	return otherPlace{loc: l.loc}
}

func (s *session) loadOther(addr string) (*loaded, error) {
	a, err := mountspec.ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	q := s.quiet()
	c, _, err := q.finder.registered(a)
	if err != nil {
		return nil, err
	}
	return q.load(c)
}

func (s *session) overlap(l *loaded, addr string, other Location) error {
	if addr == l.ws.ID.String() || !l.loc.SharesBytes(other, s.disks) {
		return nil
	}
	a, err := mountspec.ParseAddress(addr)
	if err != nil {
		return err
	}
	if s.r.cfg.mayOverlap(l.ws.ID, a) {
		s.step("overlap with "+addr, "granted by allow_overlap")
		return nil
	}
	e := overlaps(l.ws.ID, l.loc, a, other, "")
	return s.r.deny(l, "", l.storage.ConfigPos, e.Hint, "%s", e.What)
}

func overlaps(a mountspec.Address, at Location, b mountspec.Address, other Location, where string) *Error {
	return denied("", where, "give one of them another place, or grant it: "+allowOverlap(a, b), "its storage %s overlaps %s of %s", at, other, b)
}

// allowOverlap is the line of the configuration that grants two workspaces
// their common place.
func allowOverlap(a, b mountspec.Address) string {
	return fmt.Sprintf("allow_overlap: [{from: %q, to: %q}]", a, b)
}

func (c *Config) mayOverlap(a, b mountspec.Address) bool {
	return slices.ContainsFunc(c.AllowOverlap, func(p Pair) bool {
		return grant.Matches(p.From, a.Owner, a.Slug) && grant.Matches(p.To, b.Owner, b.Slug) ||
			grant.Matches(p.From, b.Owner, b.Slug) && grant.Matches(p.To, a.Owner, a.Slug)
	})
}

// checkTree refuses two volumes of one mount that share bytes, with the
// chain of both.
func (s *session) checkTree(root *Resolved) error {
	type at struct {
		path string
		r    *Resolved
	}
	var seen []at
	disks := ondisk.New()
	var walk func(path string, r *Resolved) error
	walk = func(path string, r *Resolved) error {
		for _, x := range seen {
			if x.r.Location.SharesBytes(r.Location, disks) && !s.r.cfg.mayOverlap(x.r.Address, r.Address) {
				return &Error{Class: Denied, What: "two volumes of the mount keep their bytes in one place: " + x.r.Location.String() + " and " + r.Location.String(),
					Hint: "remove one of the mounts, or grant it: " + allowOverlap(x.r.Address, r.Address), Chain: []string{x.r.Address.String() + " at " + orDefault(x.path, "/"), r.Address.String() + " at " + path}}
			}
		}
		seen = append(seen, at{path, r})
		for _, c := range r.Children {
			if c.Resolved == nil {
				continue
			}
			if err := walk(path+c.At, c.Resolved); err != nil {
				return err
			}
		}
		return nil
	}
	return walk("", root)
}
