package seam

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/wsmount/wsmount/providers"
)

// A backend that makes a file whole before it gets its name uses a name of its own until then,
// which no locator of a write may have and no listing shows.
var temporary = regexp.MustCompile(`^\.wsmount-[0-9a-f]{32}\.tmp$`)

// ErrTemporary refuses a name that is one for temporary files.
var ErrTemporary = fmt.Errorf("the name is one for temporary files: %w", providers.ErrInvalid)

// TemporaryName is a new one.
func TemporaryName() string {
	random := make([]byte, 16)
	rand.Read(random)
	return ".wsmount-" + hex.EncodeToString(random) + ".tmp"
}

// IsTemporary reports whether a name is one.
func IsTemporary(name string) bool { return temporary.MatchString(name) }
