package cache

import (
	"encoding/json"
	"fmt"
)

// keyMissed holds the paths of the conflicts that no report has told of yet: those
// of files without a name, which a close finds while nobody waits for a report.
// It is written in the update that decides them, so that whoever asks next hears of
// them after a restart too.
const keyMissed = "told/missed"

// maxMissed bounds the conflicts that are kept for whoever asks next; the log
// has all.
const maxMissed = 1000

// miss keeps conflicts for the next report. mu is held, in an update.
func (v *Volume) miss(paths []string) {
	if len(paths) == 0 {
		return
	}
	all := names(v.missed(), paths)
	data, err := json.Marshal(all[:min(len(all), maxMissed)])
	if err == nil {
		v.table.Set(keyMissed, data)
	}
}

// missed are the conflicts that are kept. mu is held.
func (v *Volume) missed() (paths []string) {
	if data := v.table.Get(keyMissed); data != nil {
		if err := json.Unmarshal(data, &paths); err != nil {
			v.o.Log.Warn("the conflicts that nobody was told of cannot be read", "err", err)
		}
	}
	return paths
}

// Missed are the conflicts that no report has told of yet, for who follows an event
// without a Commit or a Pull. It tells of each once, and again only where the
// disk will not note that it did.
func (v *Volume) Missed() []string { return v.tellMissed(nil) }

// tellMissed adds to a report what nobody was told of yet.
func (v *Volume) tellMissed(conflicts []string) []string {
	all := names(conflicts, nil)
	v.mu.Lock()
	none := v.table.Get(keyMissed) == nil
	v.mu.Unlock()
	if none {
		return all
	}
	err := v.update(func() error {
		all = names(all, v.missed())
		v.table.Set(keyMissed, nil)
		return nil
	})
	if err != nil {
		v.o.Log.Warn("conflicts will be told of again", "err", fmt.Errorf("note that they were: %w", err))
	}
	return all
}
