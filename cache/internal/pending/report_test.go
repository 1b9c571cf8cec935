package pending_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/integration/assert"
)

// A reason of all that is unsaved is told once, and one of a file's own with the file.
func TestUnsavedErrorText(t *testing.T) {
	halted := errors.New("too much would be deleted")
	e := &pending.UnsavedError{Err: fmt.Errorf("commit: %w", halted), Count: 2, Files: []pending.HeldBack{{Path: "f", Reason: halted.Error()}, {Path: "g", Reason: "too large"}}}
	want := "2 changes are not in the store: commit: " + halted.Error() + "\n\tf\n\tg: too large"
	assert.Equal(t, e.Error(), want)
	one := &pending.UnsavedError{Count: 1, Files: []pending.HeldBack{{Path: "g", Reason: "too large"}}}
	assert.Equal(t, one.Error(), "1 change is not in the store\n\tg: too large")
}
