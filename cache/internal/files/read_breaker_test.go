package files_test

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/integration/assert"
)

// The first read of an outage is tried for the time of patience, and the next for a
// second, until one is answered or none was tried for that time.
func TestReadBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := files.NewReadBreaker(func() time.Time { return now }, 30*time.Second)
	tries := func() (took time.Duration) {
		began := now
		for b.Refused(began) {
			now = now.Add(100 * time.Millisecond)
		}
		return now.Sub(began)
	}
	assert.Equal(t, tries(), 30*time.Second)
	assert.Equal(t, tries(), time.Second)
	b.Answered()
	assert.Equal(t, tries(), 30*time.Second)
	now = now.Add(31 * time.Second) // it may have been back
	assert.Equal(t, tries(), 30*time.Second)
}
