package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// alsoLate are the cases of TestThreeWays in which a change of ours may come too late, without a
// pull before it, and the remote refuses it.
var alsoLate = []string{"both changed", "same change", "changed here, deleted there", "deleted here, changed there",
	"renamed here, changed there", "directory deleted here, new in it there", "changed below here, a file there"}

// Each case of what happened on both sides, and what they become. The start is the same for all:
// a.txt and d/b, whose names are known. What then differs can be sent, and another pull finds
// nothing.
func TestThreeWays(t *testing.T) {
	names := strings.NewReplacer(", ", "\n", "HASH", short("ours"), "EMPTYFULL", reconcile.EmptyHash[:16], "EMPTY", reconcile.EmptyHash[:8])
	for _, c := range []struct{ name, there, here, want string }{
		{"nothing", "", "", "a.txt: 1, d/, d/b: 2"},
		{"changed there", "put a.txt theirs", "", "a.txt: theirs, d/, d/b: 2"},
		{"new there", "put d/n theirs, mkdir e", "", "a.txt: 1, d/, d/b: 2, d/n: theirs, e/"},
		{"deleted there", "rm a.txt", "", "d/, d/b: 2"},
		{"directory deleted there", "rm d", "", "a.txt: 1"},
		{"same change", "put a.txt ours", "put a.txt ours", "a.txt: ours, d/, d/b: 2"},
		{"same new file", "put n ours", "put n ours", "a.txt: 1, d/, d/b: 2, n: ours"},
		{"both changed", "put a.txt theirs", "put a.txt ours", "a.conflict-HASH.txt: ours, a.txt: theirs, d/, d/b: 2"},
		{"both made", "put n theirs", "put n ours", "a.txt: 1, d/, d/b: 2, n: theirs, n.conflict-HASH: ours"},
		{"both made a directory", "put e/x theirs", "mkdir e, put e/y ours", "a.txt: 1, d/, d/b: 2, e/, e/x: theirs, e/y: ours"},
		{"deleted here, changed there", "put a.txt theirs", "rm a.txt", "a.txt: theirs, d/, d/b: 2"},
		{"directory deleted here, changed there", "put d/b theirs", "rm d/b, rmdir d", "a.txt: 1, d/, d/b: theirs"},
		{"directory deleted here, new in it there", "put d/n theirs", "rm d/b, rmdir d", "a.txt: 1, d/, d/n: theirs"},
		{"directory made anew here, new in it there", "put d/n theirs", "rm d/b, rmdir d, mkdir d, put d/y ours",
			"a.txt: 1, d/, d/n: theirs, d/y: ours"},
		{"changed here, deleted there", "rm a.txt", "put a.txt ours", "a.txt: ours, d/, d/b: 2"},
		{"changed here, directory deleted there", "rm d", "put d/b ours", "a.txt: 1, d/, d/b: ours"},
		{"new here, directory deleted there", "rm d", "put d/y ours", "a.txt: 1, d/, d/y: ours"},
		{"deleted here and there", "rm a.txt", "rm a.txt", "d/, d/b: 2"},
		{"renamed here, changed there", "put a.txt theirs", "mv a.txt c", "c: theirs, d/, d/b: 2"},
		{"renamed and changed here, changed there", "put a.txt theirs", "put a.txt ours, mv a.txt c", "a.txt: theirs, c: ours, d/, d/b: 2"},
		{"renamed here, deleted there", "rm a.txt", "read a.txt, mv a.txt c", "c: 1, d/, d/b: 2"},
		{"directory renamed here, changed in it there", "put d/b theirs, put d/n theirs", "mv d e", "a.txt: 1, e/, e/b: theirs, e/n: theirs"},
		{"directory renamed here, to one that is new there", "put e/n theirs", "mv d e", "a.txt: 1, e/, e/b: 2, e/n: theirs"},
		{"directory renamed here, to one that was removed, and is changed there", "put e/n theirs", "rmdir e, mv d e",
			"a.txt: 1, e/, e/b: 2, e/n: theirs"},
		{"renamed over here, changed there", "put a.txt theirs", "put t ours, mv t a.txt", "a.conflict-HASH.txt: ours, a.txt: theirs, d/, d/b: 2"},
		{"file became a directory there", "rm a.txt, put a.txt/x theirs", "", "a.txt/, a.txt/x: theirs, d/, d/b: 2"},
		{"directory became a file there", "rm d, put d theirs", "", "a.txt: 1, d: theirs"},
		{"file became a link there", "rm a.txt, sym d/b a.txt", "", "a.txt -> d/b, d/, d/b: 2"},
		{"changed here, a directory there", "rm a.txt, put a.txt/x theirs", "put a.txt ours",
			"a.conflict-HASH.txt: ours, a.txt/, a.txt/x: theirs, d/, d/b: 2"},
		{"changed below here, a file there", "rm d, put d theirs", "put d/b ours", "a.txt: 1, d: theirs, d.conflict-EMPTY/, d.conflict-EMPTY/b: ours"},
		{"changed below here, a file there, and one that has the copy's name", "rm d, put d theirs, put d.conflict-EMPTY", "put d/b ours",
			"a.txt: 1, d: theirs, d.conflict-EMPTY: , d.conflict-EMPTYFULL/, d.conflict-EMPTYFULL/b: ours"},
		{"a file here, a directory there, both new", "put n/x theirs", "put n ours", "a.txt: 1, d/, d/b: 2, n/, n/x: theirs, n.conflict-HASH: ours"},
		{"same link", "sym a.txt l", "sym a.txt l", "a.txt: 1, d/, d/b: 2, l -> a.txt"},
		{"other link", "sym elsewhere l", "sym ours l", "a.txt: 1, d/, d/b: 2, l -> elsewhere, l.conflict-HASH -> ours"},
		{"conflict of a conflict copy", "put x.conflict-01234567.go theirs", "put x.conflict-01234567.go ours",
			"a.txt: 1, d/, d/b: 2, x.conflict-01234567.go: theirs, x.conflict-HASH.go: ours"},
		{"the conflict copy is there already", "put a.txt theirs, put a.conflict-HASH.txt ours", "put a.txt ours",
			"a.conflict-HASH.txt: ours, a.txt: theirs, d/, d/b: 2"},
	} {
		for _, late := range []bool{false, true} {
			if late && !slices.Contains(alsoLate, c.name) {
				continue
			}
			t.Run(fmt.Sprint(c.name, map[bool]string{true: ", late"}[late]), func(t *testing.T) {
				lines := func(script string) []string { return strings.Split(names.Replace(script), "\n") }
				w := newCopy(t, memory.Options{}, reconcile.Split, "a.txt", "1", "d/b", "2")
				if strings.Contains(c.name, "was removed") {
					w.theirs("mkdir e")
					w.pull()
					w.lines() // or it is not known what is in it
				}
				w.ours(lines(c.here)...)
				w.theirs(lines(c.there)...)
				if late {
					w.ok(w.refused())
				}
				w.pull()
				w.sees(lines(c.want)...)
				w.sendable()
				r := w.pull()
				assert.Equal(t, r.Changed+r.Deleted+len(r.Conflicts), 0, "another pull finds", r)
				w.sees(lines(c.want)...)
			})
		}
	}
}
