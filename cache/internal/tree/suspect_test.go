package tree

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// What a loss of power left is whole when it was synced and is as long as it was then; else
// it is suspect, and of another length a state of its own.
func TestSurvived(t *testing.T) {
	const file, version, size = 10, 2, 5
	for what, c := range map[string]struct {
		synced  uint64
		size    int64
		suspect bool
		version uint64
	}{
		"synced":                      {version, size, false, version},
		"synced, and longer":          {version, size + 2, true, version + 1},
		"synced before, and changed":  {version - 1, size, true, version},
		"synced before, and is short": {version - 1, size - 1, true, version + 1},
	} {
		newTree(t, Options{}).do(t, func(tx *Tx) {
			tx.Put(file, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: version, Synced: c.synced, Size: size})
			assert.Equal(t, tx.Survived(file, c.size), c.suspect, what, "is suspect")
			n := tx.Inode(file)
			assert.True(t, n.Suspect == c.suspect && n.ContentVersion == c.version && n.Size == c.size, what, *n)
		})
	}
}
