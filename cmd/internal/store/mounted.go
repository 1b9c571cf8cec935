package store

import (
	"context"
	"path"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// mounted is a place in a mount: who serves that refuses, records and sends what is done
// there as for any program.
type mounted struct {
	seam.Conditional // the directory
	daemon           *control.Client
	parts            []control.Part
	at               string // the place, as a path of the mount
}

// through opens a place in a mount.
func through(ctx context.Context, r *state.Record, place string) (seam.Backend, error) {
	s := mounts.Look(ctx, r)
	if err := mounts.Usable(s); err != nil {
		return nil, err
	}
	at, outside := mounts.Relative(r.Mountpoint, place)
	if outside != nil {
		return nil, outside
	}
	m := &mounted{daemon: control.NewClient(r.SocketPath()), parts: s.Parts, at: at}
	dir, err := all.Mounted(place, func(l seam.Locator) bool { return m.part(l).Copy != nil })
	if err != nil {
		return nil, err
	}
	m.Conditional = dir
	return m, nil
}

// part is the part of the mount that l lies in.
func (m *mounted) part(l seam.Locator) (found control.Part) {
	for _, p := range m.parts {
		if mountpoint.Within(path.Join("/", m.at, l.Key()), p.At) && len(p.At) > len(found.At) {
			found = p
		}
	}
	return found
}

// Capabilities implements seam.Backend: those of the part that is at the place.
func (m *mounted) Capabilities() seam.Capabilities {
	p := m.part(seam.Locator{})
	if p.Copy == nil {
		return m.Conditional.Capabilities()
	}
	return copyPromises(p.Provider, p.Copy.WriteBack || p.Mode == string(mountspec.ModePullPush))
}

// copyPromises are what a working copy of a store promises: what replicates the store
// replicates what is sent there. What is sent later than it was written, other processes
// overwrite meanwhile. Its content is on the disks of this machine as it is, and a conflict may
// leave copies in it.
func copyPromises(provider string, later bool) (c seam.Capabilities) {
	if d, known := all.Registry().Get(provider); known {
		c = seam.PromisesOf(d.Promises)
	}
	c.Encryption, c.ConflictFiles = false, true
	c.ConcurrentWriters = c.ConcurrentWriters && !later
	return c
}

// WriteIf implements seam.Conditional. What a working copy shows is not what its store has by
// now, so whoever has both is asked.
func (m *mounted) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	if m.part(l).Copy == nil {
		return m.Conditional.WriteIf(ctx, l, old, content)
	}
	err := seam.CheckText(l, content)
	if err == nil {
		err = m.daemon.Replace(ctx, control.ReplaceRequest{Path: path.Join(m.at, l.Key()), Old: old.String()}, strings.NewReader(content))
	}
	if err != nil {
		return seam.Locator{}, err
	}
	return l, nil
}
