package cache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What a scan brings back is sent as what is new: beside what the remote has, if that is another.
func TestScan(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("theirs", "theirs", "d/theirs", "theirs", "d/both", "theirs", "read", "read"))
	w.get("read")
	w.do("put d/both ours", "put d/new new", "mkdir e", "put e/same sent")
	w.ok(w.sendAll())
	w.ok(w.put("d/new", "newer"))
	w.tamper("d/both", "changed by another")
	w.stop()
	assert.OK(t, os.WriteFile(filepath.Join(w.o.StateDir, "names", "format"), []byte("no format"), 0o600))
	assert.Must(t, assert.ErrOf(Open(t.Context(), w.p, w.o)) != nil, "a damaged database opened")
	r := assert.Of(Scan(t.Context(), w.o.StateDir, false, nil)).OK(w)
	assert.Slice(t, sorted(r.Restored), []string{"d/both", "d/new", "e/same"}, "restored")
	w.start()
	w.ok(w.sendAll())
	w.ok(w.sendAll()) // the conflict copies that the first made
	got := listBackend(w.p)
	for _, line := range []string{"d/both: changed by another", "d/theirs: theirs", "e/same: sent", "read: read", "theirs: theirs"} {
		assert.True(t, slices.Contains(got, line), "the backend does not have", line, got)
	}
	for _, content := range []string{"ours", "newer"} { // beside what the backend has
		if !slices.ContainsFunc(got, func(line string) bool {
			return strings.Contains(line, ".conflict-") && strings.HasSuffix(line, ": "+content)
		}) {
			t.Errorf("%q is not there: %q", content, got)
		}
	}
}
