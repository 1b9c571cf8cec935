package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

var conflictPart = regexp.MustCompile(`\.conflict-[0-9a-f]{8,64}`)

// conflictName is the name of a conflict copy: ".conflict-" and the beginning
// of the hash of its content, before the last extension. It depends on nothing
// else, so that every host makes the same copy of the same content. A conflict
// about a conflict copy makes another copy of the first name, so names do not
// grow.
func conflictName(name, hash string) string {
	part := ".conflict-" + hash
	if at := conflictPart.FindStringIndex(name); at != nil && at[0] > 0 {
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

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// freeCopy is the name of a conflict copy of what has a hash, and whether the same
// is there already. Another content of that name (a copy that was edited since, or
// a directory) makes the hash in the name longer, and then another. What must be
// known of all that is in the way is asked at once.
func (m *merge) freeCopy(v *Tx, l table.Link, sum string, dir bool) (name string, exists, ok bool) {
	known := true
	for hash := sum; ; hash = hashOf(hash) {
		for digits := 8; digits <= len(hash); digits *= 2 {
			name = conflictName(l.Name, hash[:digits])
			rec, _ := v.table.Name(l.Dir, name)
			switch {
			case rec.Ino == 0:
				return name, false, known
			case dir: // what is in it cannot be compared
				continue
			}
			same, ok := m.sameSum(v, table.Link{Dir: l.Dir, Name: name}, rec, sum)
			if same {
				return name, true, known
			}
			known = known && ok
		}
	}
}
