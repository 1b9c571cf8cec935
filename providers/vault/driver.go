package vault

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Driver opens vaults under the name "vault", from the key "vault_path". With "granted",
// a device's and an inode's number as "dev:ino", it opens that directory alone, whatever
// has its name by now.
func Driver() providers.Driver {
	keys := []string{"vault_path", "granted"}
	return providers.Driver{
		Name: name, Text: "a directory that agentm writes too, and that something may replicate", Promises: capabilities(), Keys: keys,
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			p, err := openSettings(ctx, s, keys)
			if err != nil { // a typed nil would be no nil
				return nil, translate(providers.MethodOpen, providers.Locator{}, err)
			}
			return p, nil
		},
	}
}

func openSettings(ctx context.Context, s providers.Settings, keys []string) (*Provider, error) {
	if err := s.CheckKeys(keys...); err != nil {
		return nil, err
	}
	if s.Config["vault_path"] == "" {
		return nil, fmt.Errorf("config needs vault_path: %w", providers.ErrInvalid)
	}
	p, err := Open(ctx, s.Config["vault_path"], Options{ReadOnly: s.ReadOnly, Logger: s.Logger, granted: s.Config["granted"]})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// isGranted refuses a directory that is not the granted one, if one was granted.
func (o Options) isGranted(st *unix.Stat_t) error {
	if is := fmt.Sprintf("%d:%d", st.Dev, st.Ino); o.granted != "" && o.granted != is {
		return fmt.Errorf("the directory was replaced since it was granted: %w", providers.ErrPermission)
	}
	return nil
}
