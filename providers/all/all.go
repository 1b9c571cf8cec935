// Package all is the one list of the providers that are built into wsmount.
//
// It knows their packages and nothing about them. Validation, doctor and mount
// all ask the registry that it fills, so they agree on the set. Directories of
// this machine are no provider: they are served in place (fs/direct), unless their other
// writers need a protocol (vault).
//
//	driver, err := all.Registry().Select("cloud-bucket", providers.Capabilities{})
package all

import (
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/vault"
)

// Registry is a new registry with everything that is built in.
func Registry() *providers.Registry {
	r := &providers.Registry{}
	must := func(err error) {
		if err != nil {
			panic(err) // two packages claim one name: no program should start
		}
	}
	for _, d := range slices.Concat(buckets(), git.Drivers()) {
		must(r.RegisterStandard(d))
	}
	must(r.Register(memory.Driver()))
	must(r.Register(vault.Driver()))
	return r
}
