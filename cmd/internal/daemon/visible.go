package daemon

import (
	"fmt"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
)

// A mount can be away from its mount point and yet live: files in it are open, or
// another mount namespace has a copy of it. Another mount may stand in its place
// then, which is not this daemon's to take away. So the device number is compared,
// not only the path.

// standing reports whether the mount of a record is what is seen at its mount point.
func standing(r *state.Record) bool {
	table, err := mountpoint.ReadTable()
	return err != nil || table.Shows(r.Mountpoint, r.Device)
}

// outOfSight are the holders of a mount that is not at its mount point any more,
// and lives on in another mount namespace.
func outOfSight(r *state.Record) []mountpoint.Holder {
	if r == nil || !r.Alive() || standing(r) {
		return nil
	}
	return mountpoint.Elsewhere(r.Device)
}

// A place is this daemon's mount, and the mount point that it should be seen at.
type place struct {
	mountpoint string
	server     *fs.Server // nil: it is not mounted yet
}

func (d *Daemon) place() place { return place{d.tree.Mountpoint, d.server} }

func (p place) device() string {
	if p.server == nil {
		return ""
	}
	return p.server.Device()
}

// visible reports whether this daemon's mount is what is seen at its mount point.
func (p place) visible() bool {
	return standing(&state.Record{Mountpoint: p.mountpoint, Device: p.device()})
}

// unmount takes the mount away, if no program uses it; nothing else that stands in its
// place.
func (p place) unmount() error {
	if !p.visible() {
		return p.notThere()
	}
	return p.server.Unmount()
}

// detach takes the mount out of sight, whoever uses it.
func (p place) detach() error {
	if !p.visible() {
		return p.notThere()
	}
	return mountpoint.Unmount(p.mountpoint, true)
}

func (p place) notThere() error {
	return fmt.Errorf("unmount %s: %w", p.mountpoint, mountpoint.ErrNotMounted)
}

// holders are the programs that use the mount, and the mounts inside.
func (p place) holders() (m mountpoint.Mount, holders []mountpoint.Holder, inside []mountpoint.Mount) {
	table, err := mountpoint.ReadTable()
	if err != nil || !table.Shows(p.mountpoint, p.device()) {
		return m, nil, nil
	}
	m, _ = table.At(p.mountpoint)
	holders, inside, _ = mountpoint.Holders(m)
	return m, holders, inside
}

// elsewhere are those whose mount namespaces keep a mount alive that is out of sight
// here.
func (p place) elsewhere() []mountpoint.Holder {
	if p.server == nil || p.visible() {
		return nil
	}
	return mountpoint.Elsewhere(p.device())
}

// describePlace says where the mount is when it is not where it should be.
func (d *Daemon) describePlace(s *control.Status) {
	p := d.place()
	if p.server == nil || d.isSending() || s.State != control.Ready && s.State != control.Draining || p.visible() {
		return
	}
	if s.State == control.Ready {
		s.State = control.Detached
	}
	s.HeldBy = mountpoint.Elsewhere(p.device())
}
