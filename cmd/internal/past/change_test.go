package past

import (
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestChange(t *testing.T) {
	for _, tt := range []struct {
		v            cache.Version
		word, reason string
	}{
		{cache.Version{Change: cache.Made, Why: "made", New: true}, "created", ""},
		{cache.Version{Change: cache.Written, Why: "written", New: true}, "created", ""},
		{cache.Version{Change: cache.Written, Why: "written"}, "changed", ""},
		{cache.Version{Change: cache.Written, Why: "restored"}, "changed", "restore"},
		{cache.Version{Change: cache.Written, Why: "pulled"}, "pulled", ""},
		{cache.Version{Change: cache.Ended, Why: "pulled"}, "pulled", "what was there before"},
		{cache.Version{Change: cache.Ended, Why: "removed"}, "removed", ""},
		{cache.Version{Change: cache.Ended, Why: "changed"}, "earlier", ""},
		{cache.Version{Change: cache.Ended, Why: "replaced"}, "replaced", "another file was renamed to its name"},
		{cache.Version{Change: cache.Moved, Why: "renamed"}, "renamed", ""},
		{cache.Version{Change: cache.Moved, Why: "conflict"}, "renamed", "conflict"},
	} {
		word, reason := Change(tt.v)
		assert.Equal(t, word+": "+reason, tt.word+": "+tt.reason, tt.v)
	}
}
