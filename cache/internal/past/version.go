package past

import (
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Version is one entry of the history.
type Version struct {
	// ID names it. Later entries have greater numbers.
	ID string `json:"id"`
	// Number counts the entries of one name, from 1 on.
	Number uint64 `json:"number"`
	Change string `json:"change"`        // Made, Written, Ended or Moved
	New    bool   `json:"new,omitempty"` // the file was made since the version before, if any
	// Why tells more: "closed", "removed", "pulled" ...
	Why string `json:"why,omitempty"`

	// Path is the present path of the file, or its last one.
	Path string `json:"path"`
	// Was is the path at that time, if it was another; From, of a move, the path before.
	Was  string `json:"was,omitempty"`
	From string `json:"from,omitempty"`

	Time time.Time `json:"time"`
	history.Actor
	UID     uint32 `json:"uid,omitempty"`
	PID     uint32 `json:"pid,omitempty"`
	Command string `json:"command,omitempty"` // of that process

	Mode   uint32 `json:"mode"` // type and permissions, as in stat
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // "" when not computed
	// Base is the version at the remote that it was made against; "" for none.
	Base string `json:"base,omitempty"`
	// Commit is the revision of the store that this change went into; "" while it
	// is in none, or where the store has none.
	Commit string `json:"commit,omitempty"`
	// Kept says that Content gives it (a bucket's versions are not checked for that), Current that
	// it is the file's present state.
	Kept    bool `json:"kept"`
	Current bool `json:"current,omitempty"`
}

// versionOf is the Version of a record.
func versionOf(v *tree.View, id uint64, r *history.Record) Version {
	ver := Version{ID: idText(id), Number: r.Number, New: r.New, Change: r.Change, Why: r.Why,
		Time: time.Unix(0, r.Time), Actor: r.Actor, UID: r.UID, PID: r.PID, Command: r.Cmd,
		Mode: r.Mode, Size: r.Size, SHA256: r.SHA, Base: r.Base, Commit: r.Commit}
	ver.Path = r.Where(v)
	if ver.Path != r.Path {
		ver.Was = r.Path
	}
	if r.From != nil {
		ver.From = r.From.Path
	}
	if of := history.Get(v, r.Of); of != nil && ver.SHA256 == "" {
		ver.SHA256 = of.SHA
	}
	src := contentOf(v, id, r)
	ver.Kept = src.kind != contentGone && (src.kind != contentPast || src.revision != "")
	ver.Current = r.IsCurrent(v)
	return ver
}

func idText(id uint64) string         { return strconv.FormatUint(id, 10) }
func parseID(s string) (uint64, bool) { id, err := strconv.ParseUint(s, 10, 64); return id, err == nil }
