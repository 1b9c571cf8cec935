package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// mounted is a place in a mount, whose daemon refuses, records and sends changes
// as for any program.
type mounted struct {
	seam.Conditional        // the directory
	dir              string // its real name
	plain            bool   // no symbolic link may lead to a changed file
	root             string // root of the mount
	daemon           *control.Client
	parts            layout
}

// through opens a place in a mount with status s. plain: no symbolic link may
// lead to a changed file.
func through(r *state.Record, s control.Status, place string, plain bool) (*mounted, error) {
	if err := mounts.Usable(s); err != nil {
		return nil, err
	}
	m := &mounted{dir: host.Real(place), plain: plain, root: r.Mountpoint, daemon: control.NewClient(r.SocketPath()), parts: s.Parts}
	if _, outside := m.at(m.dir); outside != nil {
		return nil, outside
	}
	dir, err := all.Mounted(m.dir, m, plain)
	if err != nil {
		return nil, err
	}
	m.Conditional = dir
	return m, nil
}

// at returns the path in the mount of a real name.
func (m *mounted) at(name string) (string, error) {
	at, outside := mounts.Relative(m.root, name)
	if outside != nil {
		return "", outside // a nil *exit.Error in err would not be nil
	}
	return at, nil
}

// layout is the parts of a mount, by their paths in it.
type layout []control.Part

// within returns the part that contains a place, and the parts below the place.
func (l layout) within(at string) (list layout) {
	around := l.part(at)
	for _, p := range l {
		if p.Unavailable == "" && (p.At == around.At || mountpoint.Within(p.At, path.Join("/", at))) {
			list = append(list, p)
		}
	}
	return list
}

// behind returns the local directories that a place shows: its own, and those of parts below it.
func (l layout) behind(at string) (dirs []string) {
	for _, p := range l.within(at) {
		if p.Path != "" {
			rel, _ := mounts.Relative(p.At, path.Join("/", at)) // "" of a part below
			dirs = append(dirs, filepath.Join(p.Path, rel))
		}
	}
	return dirs
}

// part returns the part that contains a path of the mount.
func (l layout) part(at string) (found control.Part) {
	for _, p := range l {
		if mountpoint.Within(path.Join("/", at), p.At) && len(p.At) > len(found.At) {
			found = p
		}
	}
	return found
}

// find returns the path of l in the mount after symbolic links, which may lead into another part.
func (m *mounted) find(l seam.Locator) (string, error) {
	asked := filepath.Join(m.dir, filepath.FromSlash(l.Key()))
	name := asked
	if l != (seam.Locator{}) {
		name = filepath.Join(host.Real(filepath.Dir(name)), l.Name())
	}
	if m.plain && name != asked {
		return "", refuse(providers.MethodWrite, l, providers.ErrUnsupported, "a symbolic link is on the way, to %s", name)
	}
	if !mountpoint.Within(name, m.dir) {
		return "", refuse(providers.MethodWrite, l, providers.ErrPermission, "a symbolic link leads outside, to %s", name)
	}
	return m.at(name)
}

// real is l after symbolic links, the locator to which the place's rules apply. Links into
// another part are refused: it has rules of its own.
func (m *mounted) real(l seam.Locator) (seam.Locator, error) {
	at, err := m.find(l)
	if err != nil {
		return seam.Locator{}, err
	}
	root, _ := m.at(m.dir) // which is known to be in the mount
	if in := m.parts.part(at); in.At != m.parts.part(path.Join(root, l.Key())).At {
		return seam.Locator{}, refuse(providers.MethodWrite, l, providers.ErrPermission, "a symbolic link leads into another workspace, %s", in.Name)
	}
	rel, _ := mounts.Relative(path.Join("/", root), path.Join("/", at))
	return seam.ParseLocator(rel)
}

// Capabilities implements seam.Backend: those of the part that is at the place.
func (m *mounted) Capabilities() seam.Capabilities {
	at, _ := m.at(m.dir) // which is known to be in the mount
	return m.promisesOf(m.parts.part(at))
}

func (m *mounted) promisesOf(p control.Part) seam.Capabilities {
	if p.Copy == nil {
		return m.Conditional.Capabilities()
	}
	return copyPromises(p.Provider, later(p))
}

// later reports whether changes in a part are sent after the programs' calls have returned.
func later(p control.Part) bool {
	return p.Copy != nil && (p.Copy.WriteBack || p.Mode == string(mountspec.ModePullPush))
}

// WriteIf implements seam.Conditional. A working copy may be older than its store, so the
// daemon, which has both, checks the condition.
func (m *mounted) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	at, err := m.find(l)
	if err != nil {
		return seam.Locator{}, err
	}
	if m.parts.part(at).Copy == nil {
		got, err := m.Conditional.WriteIf(ctx, l, old, content)
		if errors.Is(err, providers.ErrConflict) {
			m.catchUp(ctx, l, old)
		}
		return got, err
	}
	if err = seam.CheckText(l, content); err == nil {
		err = m.daemon.Replace(ctx, control.ReplaceRequest{Path: at, Old: old.String()}, strings.NewReader(content))
	}
	if err != nil {
		return seam.Locator{}, err
	}
	return l, nil
}

// believed is how long a mount of a local directory shows a file that another
// program has replaced.
const believed = time.Second

// catchUp waits until the mount no longer shows the content with the etag old, so that the next
// read returns the new content.
func (m *mounted) catchUp(ctx context.Context, l seam.Locator, old seam.ETag) {
	began := time.Now()
	for pause := time.Millisecond; time.Since(began) <= believed; pause *= 2 {
		text, err := m.Conditional.Read(ctx, l)
		now := seam.ETagOf(text)
		if errors.Is(err, providers.ErrNotExist) {
			now, err = seam.None, nil
		}
		if err != nil || now != old {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Sends implements devicelocal.Mount.
func (m *mounted) Sends(dir string) bool {
	at, err := m.at(dir)
	return err == nil && m.parts.part(at).Copy != nil
}

// Lock implements devicelocal.Mount. A mount of a local directory may be
// outdated for a while, so the daemon compares, and locks, the file itself. A
// store that has a working copy is changed without a lock.
func (m *mounted) Lock(ctx context.Context, dir, name string, old *seam.ETag) (unlock func(), err error) {
	at, err := m.at(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrPermission, err)
	}
	r := control.ReplaceRequest{Path: path.Join(at, name)}
	switch copied := m.parts.part(at).Copy != nil; {
	case copied && old != nil: // WriteIf did not find it there
		return nil, fmt.Errorf("a symbolic link was changed meanwhile: %w", providers.ErrConflict)
	case copied:
		return func() {}, nil
	case old != nil:
		r.Old = old.String()
	}
	return m.daemon.Lock(ctx, r)
}
