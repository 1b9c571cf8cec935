package past

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Of a revision only the content is given that the history remembers there.
func TestPastOfOtherContent(t *testing.T) {
	w := newWorld(t, "put f 1")
	w.commit("one")
	version := history.VersionText(w.Inode("f").Origin.Version)
	for _, c := range []struct {
		p   history.Past
		err error
	}{
		{history.Past{Revision: "one", Path: "f", Version: version}, nil},
		{history.Past{Revision: "one", Path: "f", Version: "another"}, history.ErrNotKept},
		{history.Past{Revision: "one", Path: "gone", Version: version, Size: 1}, history.ErrNotKept},
		{history.Past{Revision: "gone", Path: "f", Version: version, Size: 1}, history.ErrNotKept},
	} {
		r, _, err := w.past.open(pastSource(&c.p, 1))
		assert.Is(t, err, c.err, c.p)
		if err == nil {
			assert.Equal(t, historytest.ReadAll(t, r, err), "1")
		}
	}
}

// What was never local is found among the versions that the remote keeps, however it was lost.
// What it has not, does not tell, or cannot tell now is skipped, and said.
func TestRestoreAsksForVersions(t *testing.T) {
	for name, lose := range map[string][]string{
		"removed":               {"rm d/f"},
		"overwritten":           {"put d/f ours"},
		"replaced by a rename":  {"mv g d/f"},
		"moved and overwritten": {"mv d/f f", "put f ours"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "mkdir d", "sent", "theirs d/f old", "theirs g another", "turn 1", "put mine mine", "turn 2")
			w.Do(lose...)
			w.Do("sent", "turn 3")
			for refuses, says := range map[error]string{
				nil:                      history.ErrNotKept.Error(),
				providers.ErrPermission:  "not kept here, and the store's past cannot be asked: \"d/f\": permission denied",
				providers.ErrUnsupported: "the store's past cannot be asked",
				providers.ErrUnavailable: "storage is not available",
			} {
				w.commits.refuses = refuses
				for _, dry := range []bool{true, false} {
					r := w.restore(RestoreOptions{Path: "d/f", To: State{Turn: "1"}, DryRun: dry})
					assert.True(t, len(r.Restored) == 0 && len(r.Skipped) == 1 && r.Skipped[0].Path == "d/f" && strings.Contains(r.Skipped[0].Reason, says), refuses, "dry run:", dry, r)
				}
			}
			w.commits.refuses, w.commits.had = nil, map[string]string{"d/f": "old"}
			w.goesBack(State{Turn: "1"}, "d/", "d/f: old", "g: another", "mine: mine")
		})
	}
}

// Kept content that a loss of power, or a fault of the disk, has left as something else is not
// given for what was kept.
func TestKeptContentThatIsNotWhole(t *testing.T) {
	for name, left := range map[string]string{"cut off": "o", "empty": "", "other bytes": "OLD"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "put f old", "wait", "put f new", "wait")
			id := ""
			for _, v := range assert.Of(w.past.Log(t.Context(), LogFilter{Path: "f"})).OK(t) {
				if v.Kept && v.SHA256 != "" && v.Change == history.Written {
					id = v.ID // of the oldest
				}
			}
			r, _, err := w.past.Content(id)
			assert.Equal(t, historytest.ReadAll(t, r, err), "old")
			damaged := 0
			for _, path := range assert.Of(filepath.Glob(filepath.Join(w.Dir, "history", "*", "*"))).OK(t) {
				if string(assert.Of(os.ReadFile(path)).OK(t)) == "old" {
					assert.OK(t, os.WriteFile(path, []byte(left), 0o600))
					damaged++
				}
			}
			assert.AtLeast(t, damaged, 1, "kept files")
			r, _, err = w.past.Content(id)
			if err == nil {
				_, err = io.ReadAll(r)
				assert.OK(t, r.Close())
			}
			assert.Is(t, err, history.ErrNotKept)
			report := w.restore(RestoreOptions{Path: "f", To: State{Version: id}})
			assert.True(t, len(report.Restored) == 0 && len(report.Skipped) == 1, "restored", report)
		})
	}
}
