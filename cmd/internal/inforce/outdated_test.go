package inforce

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host"
)

// What is told is told once, after what is known besides, and not any more when it is over.
func TestOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var o Outdated
		says, told := []string{"", "another", "another", ""}, 0
		look := func(*host.Resolved) (note string) {
			if note, says = says[0], says[1:]; len(says) == 0 {
				cancel()
			}
			return note
		}
		o.Watch(ctx, []Part{{}, {Workspace: &host.Resolved{}}}, look, func(notes []string) {
			if told++; told == 1 {
				assert.Slice(t, o.After([]string{"first"}), []string{"first", "another"})
			}
		})
		assert.Equal(t, told, 2, "changes that were told")
		assert.Slice(t, o.After(nil), nil)
	})
}
