package all

import (
	"context"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/devicelocal"
	"github.com/wsmount/wsmount/providers/vault"
)

// Backends is a new registry of the backends for memory, by name.
func Backends() *seam.Registry {
	r := &seam.Registry{}
	vaults := seam.Class{
		Promises: seam.PromisesOf(vault.Driver().Promises),
		Dir:      func(s seam.Settings) string { return s.Vault },
		Look: func(ctx context.Context, s seam.Settings) providers.Finding {
			return vault.Look(ctx, s.Vault, s.ReadOnly)
		},
		Open: openVault,
	}
	for protocol, class := range map[string]seam.Class{devicelocal.Protocol: devicelocal.Class(), seam.Vault: vaults} {
		if err := r.Register(protocol, class); err != nil {
			panic(err) // as for Registry
		}
	}
	return r
}

func openVault(ctx context.Context, s seam.Settings) (seam.Backend, error) {
	p, err := vault.Open(ctx, s.Vault, vault.Options{ReadOnly: s.ReadOnly})
	if err != nil {
		return nil, err // a nil *Store would be no nil
	}
	return s.Through(ctx, s.Vault, seam.New(p), p.Exclusively)
}

// VaultLocks is where the locks of vaults are.
func VaultLocks() (string, error) { return vault.Locks() }

// Directory is memory in an existing directory.
func Directory(dir string) (seam.Backend, error) { return directory(dir, devicelocal.Granted{}) }

// Mounted is memory in a directory of a mount; plain: see devicelocal.OpenMounted.
func Mounted(dir string, m devicelocal.Mount, plain bool) (seam.Conditional, error) {
	b, err := devicelocal.OpenMounted(dir, m, plain)
	if err != nil {
		return nil, err // as below
	}
	return b, nil
}

// LockGranted takes the lock that a change of l takes in a GrantedDirectory, until unlock: see
// devicelocal.Backend.Lock.
func LockGranted(ctx context.Context, dir string, dev, ino uint64, l seam.Locator, old *seam.ETag) (unlock func(), err error) {
	b, err := devicelocal.OpenGranted(dir, devicelocal.Granted{Dev: dev, Ino: ino})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // nothing is written by it
	return b.Lock(ctx, l, old)
}

// GrantedDirectory is Directory for the one with these numbers of a device and an inode,
// whichever directory has its name by now.
func GrantedDirectory(dir string, dev, ino uint64) (seam.Backend, error) {
	return directory(dir, devicelocal.Granted{Dev: dev, Ino: ino})
}

func directory(dir string, g devicelocal.Granted) (seam.Backend, error) {
	b, err := devicelocal.OpenGranted(dir, g)
	if err != nil {
		return nil, err // a nil *Backend would be no nil
	}
	return b, nil
}
