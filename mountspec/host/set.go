package host

import (
	"bytes"
	"context"
	"errors"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/facts"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/linediff"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/registry"
	"github.com/wsmount/wsmount/mountspec/host/rowedit"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// maxManifest bounds a manifest that is written anew, with the text below it.
const maxManifest = 16 << 20

// A mutation is a change of a row, and of the manifest that goes with it (AIP-34,
// Backward compatibility: on row mutation, re-emit the manifest). All of it is read and
// checked before any of it is written.
type mutation struct {
	r        *Resolver // with the present configuration
	addr     mountspec.Address
	values   []rowedit.Value
	config   *hostfile.File // the present one
	manifest *hostfile.File // the present one; nil: there is none
	texts    struct{ config, manifest []byte }
	entry    *Registration // nil: not in the registry
	now      Registration  // the new one
}

// Set changes the configuration's entry of a workspace, and its manifest if it has one of
// its own, and records both. confirm is asked before anything is written; with a nil
// confirm nothing is written, and the change only returned.
//
// Each file is replaced as a whole, the configuration first. After a crash between them the
// old manifest still wins, in keys where a manifest may; after both, and before the
// registry, the workspace is refused. The same call, or Accept, brings them in step.
func (r *Resolver) Set(ctx context.Context, addr mountspec.Address, values []rowedit.Value, confirm func(Change) bool) (Change, error) {
	var change Change
	err := r.store.change(func(reg *registry.File) (entering, error) {
		m := &mutation{r: r, addr: addr, values: values}
		m.entry, _ = reg.Get(addr.String())
		var err error
		if change, err = m.prepare(ctx, reg, confirm == nil); err != nil || change.Empty() || confirm == nil || !confirm(change) {
			return nil, err
		}
		return func(now *registry.File) (bool, error) {
			if err := still(now, addr, m.entry); err != nil {
				return false, err
			}
			if err := r.recordVerb("set", Entry{Address: addr, Registration: m.now}); err != nil {
				return false, err
			}
			if m.entry != nil {
				now.Put(addr.String(), &m.now)
			}
			return m.entry != nil, m.write()
		}, nil
	})
	return change, err
}

// prepare reads the present workspace and the new one.
func (m *mutation) prepare(ctx context.Context, reg *registry.File, look bool) (Change, error) {
	before, err := m.load(ctx, reg)
	if err != nil {
		return Change{}, err
	}
	next, err := m.parse(m.texts.config)
	if err != nil {
		return Change{}, err
	}
	s := m.with(next).session(ctx, reg, ResolveOptions{})
	c, _, err := s.finder.registered(m.addr)
	if err != nil {
		return Change{}, err
	}
	c.ownerID = next.Workspaces[m.addr.String()].OwnerID // the owner id may be the new value
	if before.manifest != "" {
		src, err := mountspec.ReadSource(before.manifest, bytes.NewReader(m.texts.manifest)) // as much as any reader takes
		if err != nil {
			return Change{}, err
		}
		c.path, c.text = before.manifest, src.Data
	}
	after, err := s.load(c)
	if err != nil {
		return Change{}, err
	}
	if other, of := s.otherOwner(after); of != "" {
		return Change{}, denied("", m.config.Path, "an owner has one id", "owner %q would have id %s, and has %s in %s", m.addr.Owner, after.ws.Owner.ID, other, of)
	}
	was := s.registration(before)
	m.now = s.registration(after)
	if m.entry != nil {
		m.now.AddedAt = m.entry.AddedAt
	}
	change := difference(m.addr, &was, &m.now)
	change.MovesFrom = was.Fingerprint
	change.unversioned(before.ws.Version, after.ws.Version, &was, &m.now)
	if lines := linediff.Of(string(m.config.Data), string(m.texts.config)); !bytes.Equal(m.config.Data, m.texts.config) {
		change.Files = append(change.Files, FileDiff{m.config.Path, lines})
	}
	loosens := !m.r.swap(m.addr, before.layers).Allow && m.r.swap(m.addr, after.layers).Allow
	err = s.maySwap(func() ([]policy.Layer, error) { return before.layers, nil }, loosens, &was, &m.now, &change, look)
	return change, err
}

// load reads the present workspace. A manifest need not agree with the row, which may be
// why the row is changed; but it must be the accepted one.
func (m *mutation) load(ctx context.Context, reg *registry.File) (*loaded, error) {
	if _, ok := m.r.cfg.Workspaces[m.addr.String()]; !ok {
		hint := "change its WORKSPACE.md, then wsmount registry accept " + m.addr.String()
		if e := m.entry; e == nil || !e.HasManifest() {
			hint = "write one below workspaces there, with its path"
		}
		return nil, unresolvable("", m.r.cfg.Path, hint, "it has no entry of %s", m.addr)
	}
	var err error
	if m.config, err = hostfile.Read(m.r.cfg.Path, hostfile.Options{}); err != nil {
		return nil, fileError("", m.r.cfg.Path, err)
	}
	cfg, err := m.parse(m.config.Data) // it may have changed since r was made
	if err != nil {
		return nil, err
	}
	m.r = m.with(cfg)
	if m.texts.config, err = rowedit.Row(m.config.Data, m.addr, m.values); err != nil {
		return nil, &Error{Class: Invalid, Where: m.config.Path, What: "it cannot be changed", Err: err, Hint: "change it there"}
	}
	s := m.r.session(ctx, reg, ResolveOptions{})
	c, _, err := s.finder.registered(m.addr)
	if err != nil {
		return nil, err
	}
	if path := location.Manifest(c.path); exists(path) {
		if m.manifest, err = hostfile.Read(path, hostfile.Options{MaxBytes: maxManifest}); err != nil {
			return nil, fileError("", path, err)
		}
		c.row, m.texts.manifest = nil, m.manifest.Data
	} else if m.entry != nil && m.entry.HasManifest() {
		c.row, m.texts.manifest = nil, []byte(m.entry.Files[0].Text)
	}
	l, err := s.load(c)
	if err == nil {
		err = s.accepted(l)
	}
	if err == nil && m.texts.manifest != nil {
		if m.texts.manifest, err = rowedit.Manifest(m.texts.manifest, m.values); err != nil {
			err = &Error{Class: Invalid, Where: l.manifest, What: "it cannot be changed", Err: err, Hint: "change it there, and in " + m.config.Path}
		}
	}
	return l, err
}

func (m *mutation) parse(text []byte) (*Config, error) {
	c, found := ParseConfig(text, ParseOptions{Name: m.config.Path, Home: m.r.o.Home, Lookup: m.r.o.Lookup})
	if err := found.Err(); err != nil {
		return nil, &Error{Class: Invalid, What: "the host configuration is not valid, or would not be", Err: err, Hint: "give other values"}
	}
	c.Places = m.r.cfg.Places
	return c, nil
}

// with is the resolver of another configuration.
func (m *mutation) with(c *Config) *Resolver {
	r := *m.r
	r.cfg, r.facts = c, &facts.File{Path: c.Facts}
	return &r
}

// write replaces the files. A configuration whose manifest cannot be written is put back.
func (m *mutation) write() error {
	if err := m.config.Replace(m.texts.config, hostfile.Options{}); err != nil {
		return unwritten(m.config.Path, err)
	}
	if m.manifest == nil {
		return nil
	}
	err := m.manifest.Replace(m.texts.manifest, hostfile.Options{})
	if err == nil {
		return nil
	}
	is, undo := hostfile.Read(m.config.Path, hostfile.Options{})
	if undo == nil {
		undo = is.Replace(m.config.Data, hostfile.Options{})
	}
	return unwritten(m.manifest.Path, errors.Join(err, undo))
}

func unwritten(where string, err error) error {
	e := fileError("", where, err)
	if e.Class == Unresolvable {
		e.What, e.Err, e.Hint = "cannot be written", err, "try it again when it can"
	}
	return e
}
