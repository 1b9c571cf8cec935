package all

import (
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/devicelocal"
)

// Backends is a new registry of what memory can be kept in by name.
func Backends() *seam.Registry {
	r := &seam.Registry{}
	if err := r.Register(devicelocal.Protocol, devicelocal.Class()); err != nil {
		panic(err) // as for Registry
	}
	return r
}
