package providers_test

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A store has of attributes what it keeps, and of what it keeps only what was given; but whether
// a file may be executed is always known.
func TestAttrKeep(t *testing.T) {
	const mode, owner, mtime, exec = providers.AttrMode, providers.AttrOwner, providers.AttrModTime, providers.AttrExec
	now := time.Unix(1, 0)
	all := providers.Attr{Valid: mode | owner | mtime, Mode: 0o4750, UID: 1, GID: 2, ModTime: now}
	for _, c := range []struct {
		name string
		a    providers.Attr
		set  providers.AttrSet
		want providers.Attr
	}{
		{"all", all, mode | owner | mtime, all},
		{"nothing", all, 0, providers.Attr{}},
		{"the owner", all, owner, providers.Attr{Valid: owner, UID: 1, GID: 2}},
		{"the time", all, mtime, providers.Attr{Valid: mtime, ModTime: now}},
		{"not given", providers.Attr{Mode: 0o600, UID: 7}, mode | owner, providers.Attr{}},
		{"executable", all, exec, providers.Attr{Valid: exec, Mode: 0o755}},
		{"executable by others only", providers.Attr{Valid: mode, Mode: 0o655}, exec, providers.Attr{Valid: exec, Mode: 0o644}},
		{"executable, said so", providers.Attr{Valid: exec, Mode: 0o755}, exec, providers.Attr{Valid: exec, Mode: 0o755}},
		{"executable, not given", providers.Attr{Mode: 0o755}, exec, providers.Attr{Valid: exec, Mode: 0o644}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.a.Keep(c.set)
			assert.True(t, got.Equal(c.want), got, c.want)
		})
	}
}
