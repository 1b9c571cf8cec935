package reconcile

import (
	"bytes"
	"encoding/gob"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What is held is read again by a later release, however its type is called there.
func TestHeld(t *testing.T) {
	info := providers.Info{Kind: aFile, Size: 3, Version: providers.Version{ETag: "1", Size: 3}, Digest: "sha256:00"}
	type remoteSide struct {
		Info  providers.Info
		Since int64
	}
	var old bytes.Buffer
	assert.OK(t, gob.NewEncoder(&old).Encode(remoteSide{info, 7}))
	for name, data := range map[string][]byte{"now": Held{info, 7}.Encode(), "by another name": old.Bytes()} {
		got, ok := DecodeHeld(data)
		assert.True(t, ok, name)
		assert.Equal(t, got.Info.Version, info.Version, name)
		assert.Equal(t, got.Info.Digest, info.Digest, name)
		assert.Equal(t, got.Since, 7, name)
	}
	_, ok := DecodeHeld([]byte("damaged"))
	assert.False(t, ok, "what is damaged is read")
}
