package daemon

import (
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/inplace"
)

// place is this daemon's mount.
func (d *Daemon) place() inplace.Mount { return inplace.Mount{At: d.tree.Mountpoint, Server: d.server} }

// describePlace says where the mount is when it is not where it should be.
func (d *Daemon) describePlace(s *control.Status) {
	p := d.place()
	if p.Server == nil || d.isSending() || s.State != control.Ready && s.State != control.Draining || p.IsVisible() {
		return
	}
	if s.State == control.Ready {
		s.State = control.Detached
	}
	s.HeldBy = p.Elsewhere()
}
