package all

import (
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/devicelocal"
	"github.com/wsmount/wsmount/providers/vault"
)

// Backends is a new registry of what memory can be kept in by name.
func Backends() *seam.Registry {
	r := &seam.Registry{}
	for protocol, class := range map[string]seam.Class{
		devicelocal.Protocol: devicelocal.Class(),
		seam.Vault: seam.Over(vault.Driver(), func(s seam.Settings) map[string]string {
			return map[string]string{"vault_path": s.Vault}
		}),
	} {
		if err := r.Register(protocol, class); err != nil {
			panic(err) // as for Registry
		}
	}
	return r
}
