package arch

import (
	"path"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// rooms are the packages of the working copy, from the ground up: each imports those of lines above
// its own alone, so that a room is read with no more than what it stands on.
var rooms = [][]string{
	{"budget", "chores", "content", "exactjson", "exiting", "gopath", "ignore", "lines", "needle", "quota"},
	{"pins", "reconcile", "table"},
	{"attrs", "massdelete", "state", "tree"},
	{"files", "pending", "rules"},
	{"errno", "history", "revision"},
	{"historytest", "local", "past", "recovery", "upload"},
	{"commit", "describe", "drain", "merge", "offline", "show", "waiting"},
	{"listing"},
	{"ops"},
}

// outward are the rooms that know the words of the kernel's side (package fs): what programs ask,
// and the errors that they get.
var outward = []string{"describe", "errno", "listing", "local", "merge", "ops", "waiting"}

func floor(room string) int {
	return slices.IndexFunc(rooms, func(line []string) bool { return slices.Contains(line, room) })
}

func TestRooms(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		from := house(p.ImportPath)
		if !under(from, "cache") || from == "cache" {
			continue
		}
		room := path.Base(from)
		assert.True(t, floor(room) >= 0, from, "has no line in rooms")
		seen++
		for _, imported := range p.Imports {
			switch to := house(imported); {
			case to == "fs":
				assert.True(t, slices.Contains(outward, room), from, "imports fs, and is not outward")
			case under(to, "cache"):
				assert.True(t, to != "cache" && floor(path.Base(to)) < floor(room), from, "imports", to, "which does not lie below it")
			}
		}
	}
	listed := 0
	for _, line := range rooms {
		listed += len(line)
	}
	assert.Equal(t, listed, seen, "rooms that there are")
}
