package integration

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// fixedTime is a time stamp that no clock gives.
var fixedTime = time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)

func itoa(n int) string { return strconv.Itoa(n) }

// contains says whether a text has all of some parts.
func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	assert.OK(t, err)
	return string(text)
}
