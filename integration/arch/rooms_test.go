package arch

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A room is a package of the working copy with the other rooms that it stands on. An import that is
// not in its line makes the room harder to read: add it with the reason in the package comment, or
// find the interface that is missing.
type room struct{ name, on string }

// rooms are all of them, from the ground up.
var rooms = []room{
	{"budget", ""},
	{"chores", ""},
	{"content", ""},
	{"exactjson", ""},
	{"exiting", ""},
	{"gopath", ""},
	{"ignore", ""},
	{"lines", ""},
	{"needle", ""},
	{"quota", ""},
	{"pins", "exactjson"},
	{"reconcile", "lines"},
	{"table", "gopath"},
	{"attrs", "table"},
	{"massdelete", "exactjson table"},
	{"state", "content quota table"},
	{"tabletest", "table"},
	{"tree", "table"},
	{"files", "content pins table tree"},
	{"pending", "table tree"},
	{"rules", "ignore table tree"},
	{"errno", "files"},
	{"history", "chores content exactjson files table tree"},
	{"revision", "attrs chores pending table tree"},
	{"drain", "pending revision table tree"},
	{"historytest", "chores content files history table tree"},
	{"local", "attrs history revision rules table tree"},
	{"past", "attrs content exactjson files history table tree"},
	{"recovery", "content files history table tree"},
	{"upload", "attrs content files pending revision table tree"},
	{"commit", "exactjson files history massdelete needle pending revision rules table tree upload"},
	{"describe", "pending revision table tree upload"},
	{"merge", "attrs content errno exactjson files history local massdelete past pending reconcile revision table tree upload"},
	{"offline", "attrs content files history pins recovery revision state table tree"},
	{"show", "past revision"},
	{"waiting", "content errno exiting pending table tree upload"},
	{"listing", "attrs errno files merge pending revision rules table tree waiting"},
	{"ops", "attrs content errno files history listing local table tree"},
}

// outward are the rooms that know the words of the kernel's side (package fs): what programs ask,
// and the errors that they get.
var outward = []string{"describe", "errno", "listing", "local", "merge", "ops", "waiting"}

// storing are the rooms that know the words of the remote (package providers).
var storing = []string{"attrs", "chores", "commit", "content", "errno", "files", "history", "historytest", "listing", "local", "merge", "offline", "ops",
	"past", "pending", "reconcile", "recovery", "revision", "rules", "show", "table", "tree", "upload", "waiting"}

// outside are the modules that rooms import; of any other room there is none.
var outside = map[string]string{
	"commit": "golang.org/x/sys", "content": "golang.org/x/sys", "files": "golang.org/x/sys", "ops": "golang.org/x/sys", "quota": "golang.org/x/sys", "recovery": "golang.org/x/sys",
	"historytest": "github.com/cockroachdb/pebble", "table": "github.com/cockroachdb/pebble", "tabletest": "github.com/cockroachdb/pebble",
	"past": "github.com/rogpeppe/go-internal", "revision": "golang.org/x/sync",
}

func TestRooms(t *testing.T) {
	left := map[string]string{}
	for _, r := range rooms {
		left[r.name] = r.on
	}
	for _, p := range packages(t) {
		from := house(p.ImportPath)
		if !under(from, "cache") || from == "cache" {
			continue
		}
		name := path.Base(from)
		on, known := left[name]
		assert.True(t, known, from, "has no line in rooms, or two packages have its name")
		delete(left, name)
		var others []string
		for _, imported := range p.Imports {
			switch to := house(imported); {
			case to == "fs":
				assert.True(t, slices.Contains(outward, name), from, "imports fs, and is not outward")
			case to == "providers":
				assert.True(t, slices.Contains(storing, name), from, "imports providers, and is not storing")
			case to == "" && strings.Contains(imported, "."):
				assert.True(t, outside[name] != "" && under(imported, outside[name]), from, "imports", imported)
			case to == "cache":
				t.Errorf("%s imports cache, which is made of it", from)
			case under(to, "cache"):
				others = append(others, path.Base(to))
			}
		}
		slices.Sort(others)
		assert.Equal(t, strings.Join(others, " "), on, "what", from, "stands on")
	}
	assert.Equal(t, len(left), 0, "rooms that there are not", left)
}
