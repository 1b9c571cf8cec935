package past

import (
	"cmp"
	"strings"

	"github.com/wsmount/wsmount/cache"
)

// Kinds of changes of a file.
const (
	Created  = "created"
	Changed  = "changed"
	Removed  = "removed"
	Replaced = "replaced"
	Renamed  = "renamed"
	Pulled   = "pulled"
	Earlier  = "earlier" // the content before
)

// Change names the change of a file in a word, and gives the reason, unless the word says it.
func Change(v cache.Version) (word, reason string) {
	reason, known := reasons[v.Why]
	if !known {
		reason = v.Why
	}
	switch {
	case v.Why == "pulled" && v.Change == cache.Ended:
		return Pulled, "what was there before"
	case v.Why == "pulled":
		return Pulled, ""
	case v.Change == cache.Moved:
		return Renamed, reason
	case v.Change == cache.Ended && v.Why == "removed":
		return Removed, ""
	case v.Change == cache.Ended && v.Why == "changed":
		return Earlier, ""
	case v.Change == cache.Ended:
		return Replaced, reason
	case v.Change == cache.Made, v.New:
		return Created, reason
	}
	return Changed, reason
}

// reasons are those of the history that a word says already, or that want more words.
var reasons = map[string]string{
	"made": "", "written": "", "renamed": "", "linked": "",
	"replaced":    "another file was renamed to its name",
	"overwritten": "it came from others, and the local file went over it",
	"restored":    "restore",
	"recovered":   "recovered after a crash",
	"revived":     "others had put something into it",
}

// Path is where a file was when a version came about; of a move, from where to where.
func Path(v cache.Version) string {
	if v.Change == cache.Moved && v.From != "" {
		return v.From + " -> " + cmp.Or(v.Was, v.Path)
	}
	return cmp.Or(v.Was, v.Path)
}

// By says why and on whose behalf a version came about. The reason is the one of Change.
func By(v cache.Version, reason string) string {
	var said []string
	for _, f := range []struct{ name, value string }{
		{"", reason}, {"commit ", v.Commit}, {"by ", v.Name}, {"event ", v.Event}, {"turn ", v.Turn}, {"conversation ", v.Conversation}, {"command ", v.Command}} {
		if f.value != "" {
			said = append(said, f.name+f.value)
		}
	}
	return strings.Join(said, ", ")
}
