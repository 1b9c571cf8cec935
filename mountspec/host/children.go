package host

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// children resolves the workspaces that are mounted below this one. One
// that is optional leaves its error in its place; any other refuses the
// whole mount.
func (s *session) children(l *loaded, out *Resolved) error {
	mounts := l.ws.Mounts
	byUser := len(mounts) // those after it come from the command line
	if len(s.chain) == 1 {
		mounts = append(append([]mountspec.Mount{}, mounts...), s.o.Mounts...)
	}
	seen := map[string]bool{}
	for i, m := range mounts {
		if seen[m.At] {
			return &Error{Class: Invalid, Where: m.Pos.String(), What: "two workspaces are mounted at " + m.At, Hint: "choose another place for one"}
		}
		seen[m.At] = true
		c := Child{At: m.At, Mode: m.Mode, Optional: m.Optional}
		c.Resolved, c.Err = s.mount(l, out, m, i >= byUser)
		if c.Err != nil && !m.Optional {
			return c.Err
		}
		if c.Err != nil {
			s.step("mount "+m.At, "optional, left out: "+c.Err.Error())
		}
		out.Children = append(out.Children, c)
	}
	return nil
}

func (s *session) mount(l *loaded, parent *Resolved, m mountspec.Mount, byUser bool) (*Resolved, error) {
	sub := s.child(m.Source.Value)
	c, err := sub.childCandidate(l, m, byUser)
	if err != nil {
		return nil, sub.chained(err)
	}
	if err := sub.enter(l, c); err != nil {
		return nil, sub.chained(err)
	}
	reasons := append([]Reason{}, parent.ReadOnly.Reasons...)
	for i := range reasons {
		if !strings.HasPrefix(reasons[i].Where, "parent: ") {
			reasons[i].Where = "parent: " + reasons[i].Where
		}
	}
	if m.Mode == mountspec.MountReadOnly {
		reasons = append(reasons, Reason{Source: "mount", Where: "mode read-only at " + m.At})
	}
	got, err := sub.resolve(c, reasons)
	if err != nil {
		return nil, sub.chained(err)
	}
	s.step("mount "+m.At, got.Address.String()+", "+got.Location.String())
	return got, nil
}

// childCandidate finds the workspace that a mount's source names.
func (s *session) childCandidate(l *loaded, m mountspec.Mount, byUser bool) (candidate, error) {
	if m.Source.Kind == mountspec.RefSlug {
		a, err := mountspec.ParseAddress(m.Source.Value)
		if err != nil {
			return candidate{}, unresolvable(CodeStorageRef, m.Pos.String(), "write @owner/slug", "%q is not the address of a workspace", m.Source.Value)
		}
		if !byUser {
			if err := s.refs.mayRefer(l.home, a.Owner, a.Slug, m.Source, refMount); err != nil {
				return candidate{}, err
			}
		}
		return s.finder.find(a)
	}
	if byUser {
		path := m.Source.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.o.Dir, path)
		}
		if !filepath.IsAbs(path) {
			return candidate{}, unresolvable("", m.Source.Value, "write @owner/slug or an absolute path", "not a path")
		}
		return s.finder.byPath(path, s.o.Trust), nil
	}
	return s.pathCandidate(l, m)
}

// pathCandidate finds a workspace by a path of the manifest: below its own
// directory, or a registered sibling. The parent's trust is not the child's.
func (s *session) pathCandidate(l *loaded, m mountspec.Mount) (candidate, error) {
	target := location.Real(filepath.Join(l.home.dir, filepath.FromSlash(m.Source.Value)))
	if !grant.Below(l.home.root, target) {
		if m.Source.Kind != mountspec.RefCrossWorkspace {
			return candidate{}, escapes(m.Source, refMount)
		}
		if _, err := s.refs.sibling(m.Source, target, l.home, refMount); err != nil {
			return candidate{}, err
		}
	}
	return s.finder.byPath(target, false), nil
}

// enter refuses a cycle and too deep a nesting, with the chain.
func (s *session) enter(l *loaded, c candidate) error {
	place := location.Manifest(c.path)
	if place == location.Manifest(orDefault(l.manifest, l.home.root)) || slices.Contains(s.places, place) {
		return unresolvable(CodeStorageRef, "", "remove one of the mounts", "the workspaces mount each other in a circle")
	}
	if len(s.chain) > maxDepth {
		return unresolvable(CodeStorageRef, "", "nest fewer workspaces", "more than %d workspaces lie in each other", maxDepth)
	}
	s.places = append(append([]string{}, s.places...), location.Manifest(orDefault(l.manifest, l.home.root)))
	return nil
}
