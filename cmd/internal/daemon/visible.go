package daemon

import (
	"fmt"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
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

func (d *Daemon) device() string {
	if d.server == nil {
		return ""
	}
	return d.server.Device()
}

// visible reports whether this daemon's mount is what is seen at its mount point.
func (d *Daemon) visible() bool {
	return standing(&state.Record{Mountpoint: d.tree.Mountpoint, Device: d.device()})
}

// detach takes the mount out of sight, whoever uses it; nothing else that stands
// in its place.
func (d *Daemon) detach() error {
	if !d.visible() {
		return notThere(d.tree.Mountpoint)
	}
	return mountpoint.Unmount(d.tree.Mountpoint, true)
}

func notThere(path string) error {
	return fmt.Errorf("unmount %s: %w", path, mountpoint.ErrNotMounted)
}

// heldElsewhere are those whose mount namespaces keep a mount alive that is out of
// sight here.
func (d *Daemon) heldElsewhere() []mountpoint.Holder {
	if d.server == nil || d.uploads || d.visible() {
		return nil
	}
	return mountpoint.Elsewhere(d.device())
}

// describePlace says where the mount is when it is not where it should be.
func (d *Daemon) describePlace(s *control.Status) {
	if d.server == nil || d.isSending() || s.State != control.Ready && s.State != control.Draining || d.visible() {
		return
	}
	if s.State == control.Ready {
		s.State = control.Detached
	}
	s.HeldBy = mountpoint.Elsewhere(d.device())
}
