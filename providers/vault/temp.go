package vault

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

// temps are the temporary files that this provider is writing. The zero value is none.
type temps struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// begin makes the name of a new one; end takes it back.
func (t *temps) begin(name string) (temp string, end func()) {
	temp = tempName(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]struct{}{}
	}
	t.names[temp] = struct{}{}
	return temp, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.names, temp)
	}
}

// has reports whether name is one. Names never repeat, so the directory does not matter.
func (t *temps) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.names[name]
	return ok
}

// tempName is a new name for content on its way to name, which is cut, not within a character,
// where the whole would be longer than POSIX allows. With a fixed name two writers could write
// into one file.
func tempName(name string) string {
	var random [16]byte
	rand.Read(random[:]) // never fails
	tail := fmt.Sprintf(".%d.%s.tmp", os.Getpid(), hex.EncodeToString(random[:]))
	if room := providers.MaxName - len(tail); len(name) > room {
		for room > 0 && utf8.ValidString(name) && !utf8.RuneStart(name[room]) {
			room--
		}
		name = name[:room]
	}
	return name + tail
}
