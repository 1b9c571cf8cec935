package offline

import (
	"errors"

	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Report is the state of a working copy that is not mounted.
type Report struct {
	StateDir string `json:"state_dir"`
	// InUse: another process, a mount or a command, has it. Then no other field is known.
	InUse bool `json:"in_use,omitempty"`
	// Ended is how the last session ended: "clean", "killed" or "power lost"; "" when there was
	// none.
	Ended string `json:"ended,omitempty"`

	// Unsaved are the changes that the remote lacks, in their order; Total counts those that a
	// limit left out, too.
	Unsaved []Unsaved `json:"unsaved,omitempty"`
	Total   int       `json:"total"`

	Files     int   `json:"files"` // whose content is unsaved
	Bytes     int64 `json:"bytes"` // of unsaved content
	Suspect   int   `json:"suspect,omitempty"`
	Conflicts int   `json:"conflicts,omitempty"`
	Held      int   `json:"held,omitempty"` // conflicts included
	Orphans   int   `json:"orphans,omitempty"`

	Unpushed *revision.Unpushed `json:"unpushed,omitempty"` // commits that its remote does not have
	StandsOn providers.Revision `json:"-"`                  // that of its names; "": unknown

	// Recovered are files, below the state directory, whose names a loss of
	// power took.
	Recovered []string `json:"recovered,omitempty"`
}

// Empty reports whether removing the working copy would lose nothing.
func (r *Report) Empty() bool {
	return !r.InUse && r.Total == 0 && r.Unpushed == nil && len(r.Recovered) == 0
}

// Inspect reports on a working copy, with at most limit unsaved entries (0: all). It changes
// nothing that a mount would see, and may run several times at once. io/fs.ErrNotExist when
// stateDir holds none.
func Inspect(stateDir string, limit int) (Report, error) {
	r := Report{StateDir: stateDir}
	w, err := open(stateDir, false, table.Options{ReadOnly: true})
	switch {
	case errors.Is(err, state.ErrInUse):
		r.InUse = true
		return r, nil
	case err != nil:
		return r, err
	}
	defer w.Close()
	err = w.tree.View(func(v *tree.View) error {
		r.Ended = ended(v.Session())
		eachUnsaved(v, func(u Unsaved) {
			r.add(u)
			if limit == 0 || len(r.Unsaved) < limit {
				r.Unsaved = append(r.Unsaved, u)
			}
		})
		r.Orphans, r.Unpushed = len(v.Orphans()), revision.UnpushedOf(v)
		r.StandsOn = revision.Last(v)
		return nil
	})
	var rerr error
	r.Recovered, rerr = recovery.Rescued(stateDir)
	return r, errors.Join(rerr, err)
}

func ended(s table.Session) string {
	switch {
	case s.First:
		return ""
	case s.Clean:
		return "clean"
	case s.Killed():
		return "killed"
	}
	return "power lost"
}

func (r *Report) add(u Unsaved) {
	r.Total++
	if u.Kind == "file" {
		r.Bytes += u.Size // 0 for a deletion
		if u.Change == "created" || u.Change == "changed" {
			r.Files++
		}
	}
	if u.Suspect {
		r.Suspect++
	}
	if u.Conflict {
		r.Conflicts++
	}
	if u.Reason != "" {
		r.Held++
	}
}
