package cache

import (
	"strconv"

	"github.com/wsmount/wsmount/cache/internal/history"
)

// goesAway is queued for content that does not go into the history.
const goesAway = "-"

func idText(id uint64) string         { return strconv.FormatUint(id, 10) }
func parseID(s string) (uint64, bool) { id, err := strconv.ParseUint(s, 10, 64); return id, err == nil }

// addRecord appends a record to the history of its name.
func (v *Tx) addRecord(r *history.Record) (id uint64) {
	return v.addBehind(history.HeadOf(v, r.Link()), r)
}

// addBehind is addRecord where the last record of the name is known.
func (v *Tx) addBehind(h history.Head, r *history.Record) (id uint64) {
	at, _ := v.LocalPath(r.Link())
	r.Path, r.Time, r.Actor = at.String(), v.now(), v.history.actor
	v.signRecord(r)
	id = history.Append(v, h, r)
	v.Later(func() { v.recorded(r) })
	return id
}

// recorded has the worker look after a name that got one more version.
func (v *Volume) recorded(r *history.Record) {
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.records >= 0 {
		h.records++
	}
	if limit := uint64(v.o.Policy.History.Versions); r.Number > limit && r.Number%pruneEach == 0 {
		h.long[r.Link()] = struct{}{}
	}
}
