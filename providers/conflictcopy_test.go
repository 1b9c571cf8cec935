package providers_test

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestIsConflictCopy(t *testing.T) {
	for name, want := range map[string]bool{
		"note (conflicted copy).md":                     true,
		"note (Ann's conflicted copy 2026-01-31).md":    true,
		"note (Conflicted copy 2026-01-31 120000).md":   true,
		"note.sync-conflict-20260131-120000-ABCDEFG.md": true,
		"note.sync-conflict-20260131-120000-ABCDEFG":    true,
		"note.md":                       false,
		"conflicted copy.md":            false,
		"on the (unconflicted copy).md": false,
		"sync-conflict-howto.md":        false,
		"note.conflict-20260131.md":     false,
	} {
		assert.Equal(t, providers.IsConflictCopy(name), want, name)
	}
}
