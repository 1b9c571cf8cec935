package local

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"

	"github.com/wsmount/wsmount/providers"
)

// tempForm is what tempName makes: the name, the process, a random number. A
// fixed name would let two writers write into one file.
var tempForm = regexp.MustCompile(`(?s)^.*\.[0-9]+\.[0-9a-f]{16}\.tmp$`)

// tempName is a new name for content on its way to name, which is cut where
// the whole would be longer than POSIX allows.
func tempName(name string) string {
	var random [8]byte
	rand.Read(random[:]) // never fails
	tail := fmt.Sprintf(".%d.%s.tmp", os.Getpid(), hex.EncodeToString(random[:]))
	return name[:min(len(name), providers.MaxName-len(tail))] + tail
}

func isTemp(name string) bool { return tempForm.MatchString(name) }
