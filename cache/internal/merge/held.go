package merge

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// A heldConflict is the error of close and fsync for a name that is held. To the engine it is the
// remote's conflict, to the kernel the front's.
type heldConflict struct{ path, reason string }

func (c *heldConflict) Error() string { return c.path + ": " + c.reason }

func (c *heldConflict) Unwrap() []error { return []error{fs.ErrConflict, providers.ErrConflict} }

// infoOf is the known remote entry of a name.
func (v view) infoOf(l table.Link, rec table.Name) providers.Info {
	at, _ := v.RemotePath(l)
	b := rec.Remote
	return providers.Info{Locator: at, Kind: b.Kind, Size: b.Version.Size, Version: b.Version, Digest: b.Digest}
}
