package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

var copyPart = regexp.MustCompile(`\.conflict-[0-9a-f]{8,64}`)

// CopyNames are the names that a conflict copy of content with a hash (sha256 in hex) may
// have, the best first, without an end. Where one is taken by another content (a copy that
// was edited since, or a directory), the next has more of the hash, and then another.
func CopyNames(name, hash string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			for digits := 8; digits <= len(hash); digits *= 2 {
				if !yield(copyName(name, hash[:digits])) {
					return
				}
			}
			sum := sha256.Sum256([]byte(hash))
			hash = hex.EncodeToString(sum[:])
		}
	}
}

// EmptyHash is the hash of no bytes. It stands for that of a directory, whose copies on all hosts
// are to become one.
const EmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// copyName is the name of a conflict copy: ".conflict-" and the beginning of the hash of
// its content, before the last extension. It depends on nothing else, so that every host
// makes the same copy of the same content. A conflict about a conflict copy makes another
// copy of the first name, so names do not grow.
func copyName(name, hash string) string {
	part := ".conflict-" + hash
	if at := copyPart.FindStringIndex(name); at != nil && at[0] > 0 {
		name = name[:at[0]] + name[at[1]:]
	}
	stem, ext := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && strings.Trim(name[:dot], ".") != "" {
		stem, ext = name[:dot], name[dot:]
	}
	if len(ext)+len(part) > providers.MaxName/2 {
		stem, ext = name, ""
	}
	return cutName(stem, providers.MaxName-len(part)-len(ext)) + part + ext
}

// cutName is name in at most limit bytes, without half a character at its end.
func cutName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	for limit > 0 && name[limit]&0xC0 == 0x80 {
		limit--
	}
	return name[:limit]
}
