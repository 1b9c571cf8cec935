package merge

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/pending"
)

// keyUnreported holds the paths of the conflicts that no report has told of yet: those of files
// without a name, which a close finds while no caller waits for a report. It is written in the
// update that decides them, so that the next report has them after a restart too.
const keyUnreported = "told/missed"

// maxUnreported bounds the conflicts that are kept for the next report; the log has all.
const maxUnreported = 1000

// addUnreported keeps conflicts for the next report.
func (v *Tx) addUnreported(paths []string) {
	if len(paths) == 0 {
		return
	}
	all := pending.Paths(v.unreported(), paths)
	data, err := exactjson.Marshal(all[:min(len(all), maxUnreported)])
	if err == nil {
		v.Set(keyUnreported, data)
	}
}

// KeepUnreported keeps conflicts for the next report.
func (v *Merger) KeepUnreported(paths []string) error {
	return v.update(func(v *Tx) error {
		v.addUnreported(paths)
		return nil
	})
}

// unreported are the conflicts that are kept.
func (v view) unreported() (paths []string) {
	if data := v.Get(keyUnreported); data != nil {
		if err := exactjson.Unmarshal(data, &paths); err != nil {
			v.o.Side.Log.Warn("the unreported conflicts cannot be read", "err", err)
		}
	}
	return paths
}

// UnreportedConflicts are the conflicts that no report has told of yet, for a caller that follows
// an event without a Commit or a Pull. It returns each once, and again only if the disk fails to
// note that it did.
func (c *Conflicts) UnreportedConflicts() []string { return c.v.ReportConflicts(nil) }

// ReportConflicts adds the unreported conflicts to a report.
func (v *Merger) ReportConflicts(conflicts []string) []string {
	all := pending.Paths(conflicts, nil)
	locked := v.lock()
	none := locked.Get(keyUnreported) == nil
	locked.unlock()
	if none {
		return all
	}
	err := v.update(func(v *Tx) error {
		all = pending.Paths(all, v.unreported())
		v.Set(keyUnreported, nil)
		return nil
	})
	if err != nil {
		v.o.Side.Log.Warn("conflicts will be told of again", "err", fmt.Errorf("note that they were: %w", err))
	}
	return all
}
