package cache

import (
	"bytes"
	"encoding/gob"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

type heldConflict struct{ path, reason string }

func (c *heldConflict) Error() string { return c.path + ": " + c.reason }

func (c *heldConflict) Unwrap() []error { return []error{fs.ErrConflict, providers.ErrConflict} }

// conflictError is what close and fsync say of a name that is held. To the
// engine it is the backend's conflict, to the kernel the front's.
func conflictError(path, reason string) error { return &heldConflict{path, reason} }

// remoteSide is what a conflict that is held knows of theirs.
type remoteSide struct {
	Info  providers.Info
	Since int64
}

func encodeInfo(r *providers.Info, since int64) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(remoteSide{*r, since}); err != nil {
		return nil
	}
	return b.Bytes()
}

func decodeSide(data []byte) (remoteSide, bool) {
	var s remoteSide
	err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s)
	return s, err == nil
}

func decodeInfo(data []byte) (providers.Info, bool) {
	s, ok := decodeSide(data)
	return s.Info, ok
}

// infoOf is what the backend is known to have under a name.
func (v *View) infoOf(l table.Link, rec table.Name) providers.Info {
	at, _ := v.RemotePath(l)
	b := rec.Remote
	return providers.Info{Locator: at, Kind: b.Kind, Size: b.Version.Size, Version: b.Version, Digest: b.Digest}
}
