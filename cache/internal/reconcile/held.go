package reconcile

import (
	"bytes"
	"encoding/gob"

	"github.com/wsmount/wsmount/providers"
)

// Held is the known remote side of a conflict that is held.
type Held struct {
	Info  providers.Info
	Since int64 // nanoseconds since 1970
}

// Encode is h in the form that the record of a name keeps.
func (h Held) Encode() []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(h); err != nil {
		return nil
	}
	return b.Bytes()
}

// DecodeHeld reads the result of Encode; false: it is damaged.
func DecodeHeld(data []byte) (h Held, ok bool) {
	err := gob.NewDecoder(bytes.NewReader(data)).Decode(&h)
	return h, err == nil
}
