package upload

import (
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// FormatLink and ParseLink keep a name in Attempt.Other.
func FormatLink(l table.Link) string { return strconv.FormatUint(l.Dir, 10) + "/" + l.Name }

func ParseLink(s string) table.Link {
	dir, name, _ := strings.Cut(s, "/")
	ino, _ := strconv.ParseUint(dir, 10, 64)
	return table.Link{Dir: ino, Name: name}
}

// FormatSent and ParseSent keep there what was sent: whose content, and its
// hash where nothing else will tell it from another's.
func FormatSent(ino table.Ino, digest string) string {
	return strconv.FormatUint(ino, 10) + " " + digest
}

func ParseSent(s string) (ino table.Ino, digest string) {
	num, digest, _ := strings.Cut(s, " ")
	ino, _ = strconv.ParseUint(num, 10, 64)
	return ino, digest
}
