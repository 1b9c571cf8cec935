// Package inplace says where a mount is, that of this process or of another.
//
// A mount can be away from its mount point and yet live: files in it are open, or another
// mount namespace has a copy of it. Another mount may stand in its place then, which its
// daemon must not take away. So the device number is compared, not only the path.
//
//	m := inplace.Mount{At: "/mnt/ws", Server: server}
//	err := m.Unmount() // mountpoint.ErrNotMounted, whatever else is there
package inplace

import (
	"fmt"

	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
)

// IsStanding reports whether the mount of a record is the one seen at its mount point.
func IsStanding(r *state.Record) bool {
	table, err := mountpoint.ReadTable()
	return err != nil || table.Shows(r.Mountpoint, r.Device)
}

// OutOfSight are the holders of a mount that is not at its mount point any more,
// and lives on in another mount namespace.
func OutOfSight(r *state.Record) []mountpoint.Holder {
	if r == nil || !r.Alive() || IsStanding(r) {
		return nil
	}
	return mountpoint.Elsewhere(r.Device)
}

// A Mount is one that this process serves, and the mount point that it should be seen at.
type Mount struct {
	At     string
	Server *fs.Server // nil: it is not mounted yet
}

func (m Mount) device() string {
	if m.Server == nil {
		return ""
	}
	return m.Server.Device()
}

// IsVisible reports whether the mount is the one seen at its mount point.
func (m Mount) IsVisible() bool {
	return IsStanding(&state.Record{Mountpoint: m.At, Device: m.device()})
}

// Unmount takes the mount away, if no program uses it; nothing else that stands in its
// place.
func (m Mount) Unmount() error {
	if !m.IsVisible() {
		return m.notThere()
	}
	return m.Server.Unmount()
}

// Detach takes the mount out of sight, even if programs use it.
func (m Mount) Detach() error {
	if !m.IsVisible() {
		return m.notThere()
	}
	return mountpoint.Unmount(m.At, true)
}

func (m Mount) notThere() error {
	return fmt.Errorf("unmount %s: %w", m.At, mountpoint.ErrNotMounted)
}

// Holders are the programs that use the mount, as it is in the table of mounts, and the
// mounts inside.
func (m Mount) Holders() (is mountpoint.Mount, holders []mountpoint.Holder, inside []mountpoint.Mount) {
	table, err := mountpoint.ReadTable()
	if err != nil || !table.Shows(m.At, m.device()) {
		return is, nil, nil
	}
	is, _ = table.At(m.At)
	holders, inside, _ = mountpoint.Holders(is)
	return is, holders, inside
}

// Elsewhere are the processes whose mount namespaces keep a mount alive that is out of
// sight in this one.
func (m Mount) Elsewhere() []mountpoint.Holder {
	if m.Server == nil || m.IsVisible() {
		return nil
	}
	return mountpoint.Elsewhere(m.device())
}
