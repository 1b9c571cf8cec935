package host

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/copies"
	"github.com/wsmount/wsmount/mountspec/host/linediff"
	"github.com/wsmount/wsmount/mountspec/host/near"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/host/registry"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// AddOptions of Add.
type AddOptions struct {
	// Address is needed for a directory without a manifest, and must agree with the
	// manifest's id otherwise. Zero: the manifest's.
	Address mountspec.Address
	// OwnerID must equal the manifest's. Empty: the manifest's is taken.
	OwnerID string
	// Look records nothing.
	Look bool
}

// An Entry is one registered workspace, for showing.
type Entry struct {
	Address mountspec.Address
	Registration
	Source string // the registry file, or the configuration
	// Damaged is the quoted name of an entry that cannot be read, in place of its
	// address; all but Source is empty then.
	Damaged string
	// Notes are notes of Add for a person.
	Notes []string
}

// Add registers the workspace whose manifest, or directory, is at path (absolute).
// It records the owner, the place of the bytes and the contents of every governing
// file; it grants nothing and opens no store. Adding an unchanged registered
// workspace does nothing; a change needs Accept.
func (r *Resolver) Add(ctx context.Context, path string, o AddOptions) (Entry, error) {
	return r.enter(ctx, o, func(s *session) (*loaded, error) {
		c := candidate{addr: o.Address, path: path, trust: Registered, how: "registry add", ownerID: o.OwnerID}
		if known := s.finder.byPath(path, false); o.Address == known.addr || o.Address == (mountspec.Address{}) {
			c.row = known.row
		}
		return s.load(c)
	})
}

// AddFrom registers a workspace whose manifests lie where its storage is. They are fetched
// with the host's grants to its owner, and copies are kept beside the registry: the
// fetched manifests govern the workspace until Accept fetches again.
func (r *Resolver) AddFrom(ctx context.Context, from origin.Origin, o AddOptions) (Entry, error) {
	return r.enter(ctx, o, func(s *session) (*loaded, error) { return fetcher{s}.fetch(from, o.Address, o.OwnerID) })
}

// enter registers the workspace that read returns.
func (r *Resolver) enter(ctx context.Context, o AddOptions, read func(*session) (*loaded, error)) (Entry, error) {
	var out Entry
	err := r.store.change(func(reg *registry.File) (entering, error) {
		s := r.session(ctx, reg, ResolveOptions{})
		l, err := read(s)
		if err != nil {
			return nil, err
		}
		if out, err = s.mayAdd(l); err != nil {
			return nil, err
		}
		notes, err := s.overlapNotes(l)
		if out.Notes = notes; err != nil || out.Path != "" {
			return nil, err
		}
		out = Entry{Address: l.ws.ID, Registration: s.registration(l), Source: r.store.path, Notes: notes}
		if o.Look {
			out.AddedAt, out.AcceptedAt = time.Time{}, time.Time{}
			return nil, nil
		}
		return func(now *registry.File) (bool, error) {
			if now.Digest() != reg.Digest() { // the registry has changed meanwhile
				s.reg = now
				there, err := s.mayAdd(l)
				if err != nil || there.Path != "" {
					out.Registration = there.Registration
					return false, err
				}
			}
			now.UsualEnv = r.usualEnv(now).Entering(l.ws.ID.Owner)
			now.Put(l.ws.ID.String(), &out.Registration)
			if err := r.recordVerb("add", out); err != nil {
				return false, err
			}
			return true, keep(&out.Registration)
		}, nil
	})
	return out, err
}

// mayAdd refuses a second manifest for one address, and returns an existing
// entry if nothing changed.
func (s *session) mayAdd(l *loaded) (Entry, error) {
	id := l.ws.ID.String()
	if err := s.r.store.damaged(s.reg, id); err != nil {
		return Entry{}, err
	}
	if w, ok := s.r.cfg.Workspaces[id]; ok && !samePlace(w.Path, l.registeredPath()) {
		return Entry{}, denied("", s.r.cfg.Path, "remove it there first", "%s is %s in the host configuration", id, w.Path)
	}
	for addr, e := range s.reg.All() {
		if addr != id && samePlace(e.Path, l.registeredPath()) {
			return Entry{}, denied("", l.manifest, "an id does not change: remove the old one first, wsmount registry remove "+addr, "it is registered as %s", addr)
		}
	}
	if other, of := s.otherOwner(l); of != "" {
		return Entry{}, denied("", l.manifest, "if they are one owner, give both the same owner.id: --owner-id "+other+" does for a directory without a manifest",
			"owner %q has id %s here, and %s in %s: one name, two owners", l.ws.ID.Owner, cmp.Or(l.ws.Owner.ID, "none"), other, of)
	}
	e, ok := s.reg.Get(id)
	switch {
	case !ok, l.addsRow(e):
		return Entry{}, nil
	case !samePlace(e.Path, l.registeredPath()):
		return Entry{}, denied("", l.manifest, "remove the other first: wsmount registry remove "+id, "two manifests with the id %s: %s is registered", id, e.Path)
	case e.Differs(l.governing()) != "" || e.OwnerID != l.ws.Owner.ID || e.Location != l.loc:
		return Entry{}, denied("", l.manifest, "look at the difference: wsmount registry accept "+id, "%s is registered, and has changed since", id)
	}
	return Entry{Address: l.ws.ID, Registration: *e, Source: s.r.store.path}, nil
}

// otherOwner finds a registered workspace of the same owner name with another
// owner id. Grants go by the name, so a second owner of it would get the
// first one's.
func (s *session) otherOwner(l *loaded) (id, workspace string) {
	same := func(addr, ownerID string) bool {
		a, err := mountspec.ParseAddress(addr)
		return err == nil && a != l.ws.ID && a.Owner == l.ws.ID.Owner && ownerID != "" && ownerID != l.ws.Owner.ID
	}
	for addr, e := range s.reg.All() {
		if same(addr, e.OwnerID) {
			return e.OwnerID, addr
		}
	}
	for addr, w := range s.r.cfg.Workspaces {
		if same(addr, w.OwnerID) {
			return w.OwnerID, addr
		}
	}
	return "", ""
}

// OwnerID returns the id of an owner with a workspace in the registry or the
// configuration, or "". If the configuration names no id, the manifest's counts.
func (r *Resolver) OwnerID(ctx context.Context, owner string) (string, error) {
	entries, err := r.List()
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Address.Owner != owner })
	for _, e := range entries {
		if e.OwnerID != "" {
			return e.OwnerID, nil
		}
	}
	s := r.session(ctx, registry.New(), ResolveOptions{})
	for _, e := range entries {
		c, ok, err := s.finder.registered(e.Address)
		if err != nil || !ok {
			continue
		}
		l := &loaded{cand: c} // an unreadable one, or another owner's, is skipped
		if s.readWorkspace(l) == nil && s.identity(l) == nil && l.ws.Owner.ID != "" {
			return l.ws.Owner.ID, nil
		}
	}
	return "", nil
}

func (s *session) registration(l *loaded) Registration {
	now := s.r.o.Now().UTC()
	reg := Registration{Path: l.registeredPath(), OwnerID: l.ws.Owner.ID, Location: l.loc,
		Fingerprint: l.loc.Fingerprint(l.registeredPath()), From: l.from, AddedAt: now, AcceptedAt: now, Files: l.governing()}
	return reg
}

// governing returns the files that were read, as records for the registry.
func (l *loaded) governing() (list []Accepted) {
	for _, f := range l.files {
		list = append(list, Accepted{Path: f.path, SHA256: digest(f.data), Text: string(f.data)})
	}
	return list
}

// List returns every registered workspace, by address; those of the
// configuration have a path and an owner only. Damaged entries are among them.
func (r *Resolver) List() ([]Entry, error) {
	reg, err := r.store.load()
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, name := range reg.Names() {
		if e, ok := reg.Get(name); ok {
			a, _ := mountspec.ParseAddress(name)
			out = append(out, Entry{Address: a, Registration: *e, Source: r.store.path})
		} else {
			out = append(out, Entry{Source: r.store.path, Damaged: strconv.Quote(name)})
		}
	}
	for addr, w := range r.cfg.Workspaces {
		a, _ := mountspec.ParseAddress(addr)
		out = append(out, Entry{Address: a, Registration: Registration{Path: w.Path, OwnerID: w.OwnerID}, Source: r.cfg.Path})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return strings.Compare(a.Address.String()+" "+a.Source, b.Address.String()+" "+b.Source)
	})
	return out, nil
}

// Remove takes a workspace out of the registry. Nothing else is touched. name is
// its address, or the name of a damaged entry.
func (r *Resolver) Remove(_ context.Context, name string) error {
	forget := func(reg *registry.File) (bool, error) {
		if reg.IsDamaged(name) {
			reg.Remove(name)
			return true, r.o.Audit.Write(audit.Registration{Workspace: name, Verb: "remove"})
		}
		addr, err := mountspec.ParseAddress(name)
		if err != nil {
			return false, unresolvable("", "", "wsmount registry list shows what is registered", "%q is not in the registry", name)
		}
		e, err := r.entry(reg, addr)
		if err != nil {
			return false, err
		}
		reg.Remove(addr.String())
		if err := r.recordVerb("remove", Entry{Address: addr, Registration: *e, Source: r.store.path}); err != nil || e.From == nil {
			return err == nil, err
		}
		return true, copies.Remove(filepath.Dir(e.Path))
	}
	return r.store.change(func(*registry.File) (entering, error) { return forget, nil })
}

func (r *Resolver) entry(reg *registry.File, addr mountspec.Address) (*Registration, error) {
	if e, ok := reg.Get(addr.String()); ok {
		return e, nil
	}
	if err := r.store.damaged(reg, addr.String()); err != nil {
		return nil, err
	}
	hint := near.Hint(addr.String(), (&finder{r: r, reg: reg}).known(), "wsmount registry list shows what is registered")
	if _, ok := r.cfg.Workspaces[addr.String()]; ok {
		hint = "change it in " + r.cfg.Path
	}
	return nil, unresolvable("", "", hint, "%s is not in the registry", addr)
}

// A Change is the differences between the accepted state of a workspace and the present one.
type Change struct {
	Address mountspec.Address
	// Facts are the differences in meaning: owner, storage, manifest's path, and Unversioned.
	Facts []string
	// Unversioned names changes that need a new version and have none: another owner, or
	// another provider of the storage (AIP-34, Stable identity). Empty: there are none.
	Unversioned string
	// AddsRow: the only change is a new manifest that says the same as the host
	// configuration, so that there is nothing to confirm.
	AddsRow bool
	// MovesTo is the fingerprint of the new storage, if it is another place than the old
	// one, the working copy of which is then out of use. Empty: it is the same. MovesFrom is
	// that of the old one, if mounts use it until the change is recorded.
	MovesTo, MovesFrom string
	// Files are the differences of each governing file, as lines that begin
	// with "+", "-" or a space, control characters escaped.
	Files []FileDiff
}

// Empty reports whether nothing differs.
func (c Change) Empty() bool { return len(c.Facts) == 0 && len(c.Files) == 0 }

// A FileDiff is the difference of one file.
type FileDiff struct {
	Path  string
	Lines []string
}

// Accept passes the changes since a workspace was accepted to confirm, and records
// them if it returns true. With a nil confirm it records nothing, and only returns
// them. The shown state is the recorded one: the files are read once.
func (r *Resolver) Accept(ctx context.Context, addr mountspec.Address, confirm func(Change) bool) (Change, error) {
	var change Change
	err := r.store.change(func(reg *registry.File) (entering, error) {
		e, err := r.entry(reg, addr)
		if err != nil {
			return nil, err
		}
		s := r.session(ctx, reg, ResolveOptions{})
		l, err := fetcher{s}.current(addr, e)
		if err != nil {
			return nil, err
		}
		now := s.registration(l)
		now.AddedAt = e.AddedAt
		change = difference(addr, e, &now)
		change.AddsRow = l.addsRow(e)
		change.unversioned(e.Version(), l.ws.Version, e, &now)
		was := func() ([]policy.Layer, error) { return policiesOf(s.quiet(), addr, e, l) }
		if err := s.maySwap(was, false, e, &now, &change, confirm == nil); err != nil {
			return nil, err
		}
		same := change.Empty()
		if confirm == nil || !same && !confirm(change) {
			return nil, nil
		}
		return func(reg *registry.File) (bool, error) {
			if err := still(reg, addr, e); err != nil {
				return false, err
			}
			if same {
				return false, keep(e) // restores the accepted copies, if they were changed
			}
			reg.Put(addr.String(), &now)
			if err := r.recordVerb("accept", Entry{Address: addr, Registration: now, Source: r.store.path}); err != nil {
				return false, err
			}
			return true, keep(&now)
		}, nil
	})
	return change, err
}

// current reads a registered workspace as it is now, also if it has another owner.
func (s fetcher) current(addr mountspec.Address, e *Registration) (*loaded, error) {
	if e.From != nil {
		return s.fetch(*e.From, addr, "")
	}
	c := s.r.pinned(addr, e)
	c.ownerID = ""
	return s.load(c)
}

// unversioned notes changes that need a new version, if the version is still the same.
func (c *Change) unversioned(version, next string, old, now *Registration) {
	if version == "" || version != next {
		return
	}
	var what []string
	if old.Location.Provider != now.Location.Provider {
		what = append(what, "the provider of the storage")
	}
	if old.OwnerID != now.OwnerID {
		what = append(what, "the owner")
	}
	if what != nil {
		c.Unversioned = strings.Join(what, " and ") + " changed, and the version is still " + linediff.Visible(version)
		c.Facts = append(c.Facts, c.Unversioned)
	}
}

func difference(addr mountspec.Address, old, now *Registration) Change {
	c := Change{Address: addr}
	if old.Location.Fingerprint(old.Path) != now.Fingerprint {
		c.MovesTo = now.Fingerprint
	}
	fact := func(name, a, b string) {
		if a != b {
			c.Facts = append(c.Facts, name+": "+linediff.Visible(a)+" -> "+linediff.Visible(b))
		}
	}
	fact("owner id", old.OwnerID, now.OwnerID)
	fact("manifest", old.Path, now.Path)
	fact("storage", old.Location.Provider+" "+old.Location.String(), now.Location.Provider+" "+now.Location.String())
	fact("fingerprint", old.Fingerprint, now.Fingerprint)
	texts := map[string][2]string{}
	for _, f := range old.Files {
		texts[f.Path] = [2]string{f.Text, ""}
	}
	for _, f := range now.Files {
		texts[f.Path] = [2]string{texts[f.Path][0], f.Text}
	}
	for _, p := range slices.Sorted(maps.Keys(texts)) {
		if t := texts[p]; t[0] != t[1] {
			c.Files = append(c.Files, FileDiff{filepath.Clean(p), linediff.Of(t[0], t[1])})
		}
	}
	return c
}
