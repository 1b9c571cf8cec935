package providers

import "regexp"

// conflictCopy matches the names that replications give to a second version of a file that was
// changed in two places: Dropbox, Nextcloud and Drive's like "note (Ann's conflicted copy
// 2026-01-31).md", Syncthing "note.sync-conflict-20260131-120000-ABCDEFG.md".
var conflictCopy = regexp.MustCompile(`(?i)\([^()]*\bconflicted copy\b[^()]*\)|\.sync-conflict-`)

// IsConflictCopy reports whether a name is one that a replication gives to the copy which it
// keeps of a file that was changed in two places. Such files appear with
// Capabilities.ConflictFiles. A person compares and removes them.
func IsConflictCopy(name string) bool { return conflictCopy.MatchString(name) }
