package providers

import (
	"strings"
	"unicode"
)

// IsDotGit reports whether a system on which a repository may be checked out treats a name as
// ".git". Git makes no such entry, and servers refuse them.
func IsDotGit(name string) bool {
	// HFS+ ignores some characters, and NTFS dots and spaces at the end and everything after a
	// colon; NTFS also has a second name for it.
	seen := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name))
	for part := range strings.SplitSeq(seen, "\\") {
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRightFunc(part, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}
