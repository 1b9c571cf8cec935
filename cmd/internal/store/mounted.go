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

// mounted is a place in a mount: who serves that refuses, records and sends what is done
// there as for any program.
type mounted struct {
	seam.Conditional        // the directory
	dir              string // its real name
	plain            bool   // no symbolic link leads to what is changed
	root             string // that of the mount
	daemon           *control.Client
	parts            layout
}

// through opens a place in a mount that is so. plain: no symbolic link leads to what is changed.
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

// at is the path in the mount of what has a real name.
func (m *mounted) at(name string) (string, error) {
	at, outside := mounts.Relative(m.root, name)
	if outside != nil {
		return "", outside // a nil *exit.Error would be no nil
	}
	return at, nil
}

// layout is what a mount shows, by paths in it.
type layout []control.Part

// within are the part that has a place, and those that lie below it.
func (l layout) within(at string) (list layout) {
	around := l.part(at)
	for _, p := range l {
		if p.Unavailable == "" && (p.At == around.At || mountpoint.Within(p.At, path.Join("/", at))) {
			list = append(list, p)
		}
	}
	return list
}

// behind are the directories of this machine that a place shows, its own and those of parts
// below it.
func (l layout) behind(at string) (dirs []string) {
	for _, p := range l.within(at) {
		if p.Path != "" {
			rel, _ := mounts.Relative(p.At, path.Join("/", at)) // "" of a part below
			dirs = append(dirs, filepath.Join(p.Path, rel))
		}
	}
	return dirs
}

// part is the part that lies at a path of the mount.
func (l layout) part(at string) (found control.Part) {
	for _, p := range l {
		if mountpoint.Within(path.Join("/", at), p.At) && len(p.At) > len(found.At) {
			found = p
		}
	}
	return found
}

// find is the path in the mount that l has once symbolic links are followed, which may lead
// into another part.
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

// real is l once symbolic links are followed on the way there: what rules of the place are about.
// None leads into another part, which has its own.
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

// later reports whether what programs change in a part is sent later than they are told.
func later(p control.Part) bool {
	return p.Copy != nil && (p.Copy.WriteBack || p.Mode == string(mountspec.ModePullPush))
}

// WriteIf implements seam.Conditional. What a working copy shows is not what its store has by
// now, so whoever has both is asked.
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

// believed is how long a mount of a local directory shows what others have replaced there.
const believed = time.Second

// catchUp waits until the mount does not show any more what a condition asked for, and who then
// reads again gets something else.
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

// Lock implements devicelocal.Mount. What the mount shows of a local directory is believed for
// a while, so the daemon compares, and locks, what is there. A store that has a working copy is
// changed without a lock.
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
