package cache

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// The history is kept within its budget in steps of pruneStep records, each a
// commit of its own, so that no request waits long for the lock.
const (
	pruneStep = 256
	// pruneEach is how many versions too many a name gets before it is looked at.
	pruneEach = 32
	// maxRecords bounds the records, whatever the budget allows.
	maxRecords = 500_000
)

// Pruned counts what was given up to stay within the budget, since the volume
// was opened.
type Pruned struct {
	Versions int   `json:"versions"` // of which nothing is known any more
	Contents int   `json:"contents"` // of which only the content is gone
	Bytes    int64 `json:"bytes"`
}

// HistoryUsage is what the history takes.
type HistoryUsage struct {
	Versions int    `json:"versions"` // -1: not counted yet
	Bytes    int64  `json:"bytes"`    // of content, on the disk
	Pruned   Pruned `json:"pruned"`
}

// HistoryUsage says what the history takes, and what was given up.
func (v *Volume) HistoryUsage() HistoryUsage {
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	return HistoryUsage{h.records, v.store.KeptBytes(), h.pruned}
}

// prune keeps the history within its budget.
func (v *Volume) prune() {
	before := v.HistoryUsage()
	if before.Versions < 0 {
		v.countRecords()
	}
	for v.ctx.Err() == nil && (v.pruneOld() || v.pruneLong() || v.pruneBytes(v.o.Policy.History.Bytes)) {
	}
	after := v.HistoryUsage()
	if after.Pruned != before.Pruned {
		v.o.Log.Info("history: kept within its budget",
			"versions", after.Pruned.Versions-before.Pruned.Versions,
			"contents", after.Pruned.Contents-before.Pruned.Contents,
			"bytes", after.Pruned.Bytes-before.Pruned.Bytes)
	}
}

// countRecords counts them once. Those that come meanwhile may count twice.
func (v *Volume) countRecords() {
	count, after := 0, ""
	for done := false; !done && v.ctx.Err() == nil; {
		locked := v.lock()
		step := 0
		locked.table.Scan(history.Prefix, after, func(key string, _ []byte) bool {
			after = key
			step++
			return step < pruneStep
		})
		count += step
		if done = step < pruneStep; done { // the next comes when the lock is free, and counts itself
			v.history.counted(count)
		}
		locked.unlock()
	}
}

func (h *historyState) counted(records int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = records
}

// pruneOld gives up records that are too old, and the oldest when there are
// too many. It reports whether there may be more.
func (v *Volume) pruneOld() bool {
	v.history.mu.Lock()
	excess := v.history.records - maxRecords
	v.history.mu.Unlock()
	limit := v.o.Now().Add(-v.o.Policy.History.Age).UnixNano()
	return v.pruneRecords(func(v *Tx, drop func(id uint64, r *history.Record)) {
		v.table.Scan(history.Prefix, "", func(key string, value []byte) bool {
			r := history.Decode(value)
			if r != nil && excess <= 0 && r.Time > limit {
				return false
			}
			excess--
			drop(history.IDOf(key), r)
			if r != nil {
				v.table.Set(history.PrunedKey, fmt.Appendf(nil, "%x", r.Time))
			}
			return true
		})
	})
}

// pruneLong gives up the oldest versions of names that have too many.
func (v *Volume) pruneLong() bool {
	l, ok := v.history.takeLong()
	if !ok {
		return false
	}
	more := v.pruneRecords(func(v *Tx, drop func(id uint64, r *history.Record)) {
		id := history.HeadOf(v, l).ID
		for i := 0; id != 0; i++ {
			r := history.Get(v, id)
			if r == nil {
				return
			}
			if i >= v.o.Policy.History.Versions {
				drop(id, r)
			}
			id = r.Back
		}
	})
	if more {
		v.history.mu.Lock()
		v.history.long[l] = struct{}{}
		v.history.mu.Unlock()
	}
	return true
}

// reachOf says what is not known of a state to which the history does not reach
// back: of a time, or of what was before the first record that there is.
func (v *Volume) reachOf(s State, before bool) error {
	locked := v.lock()
	defer locked.unlock()
	last, _ := strconv.ParseInt(string(locked.table.Get(history.PrunedKey)), 16, 64)
	switch {
	case last == 0, s.Time.IsZero() && (before || !s.Before), !s.Time.IsZero() && table.Nanoseconds(s.Time) >= last:
		return nil
	}
	return fmt.Errorf("what happened up to %s is not known any more", timeOf(last).Format(time.RFC3339))
}

func (h *historyState) takeLong() (table.Link, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.long {
		delete(h.long, l)
		return l, true
	}
	return table.Link{}, false
}

// pruneRecords drops the records that choose names, a step at most, and reports
// whether the step was not enough.
func (v *Volume) pruneRecords(choose func(v *Tx, drop func(id uint64, r *history.Record))) bool {
	dropped := 0
	var files []uint64
	var bytes int64
	err := v.update(func(v *Tx) error {
		chosen := map[uint64]*history.Record{}
		choose(v, func(id uint64, r *history.Record) {
			if len(chosen) < pruneStep {
				chosen[id] = r
			}
		})
		for id, r := range chosen {
			if at, size := history.Drop(v, id, r); at != 0 {
				files, bytes = append(files, at), bytes+size
			}
		}
		dropped = len(chosen)
		return nil
	})
	v.Ended(chores.Prune, err)
	if err != nil {
		return false
	}
	v.dropFiles(files, bytes, dropped)
	return dropped >= pruneStep
}

// dropFiles unlinks content of which the table does not know any more.
func (v *Volume) dropFiles(files []uint64, bytes int64, records int) {
	for _, id := range files {
		if err := v.store.DropKept(history.StoreID(id)); err != nil {
			v.o.Log.Warn("history: unlink", "version", id, "err", err)
		}
	}
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = max(h.records-records, min(h.records, 0))
	h.pruned.Versions += records
	h.pruned.Contents += len(files)
	h.pruned.Bytes += bytes
}

// pruneBytes gives up content, the oldest first, until it takes no more than
// limit; the records stay. It reports whether there may be more to give up.
func (v *Volume) pruneBytes(limit int64) bool {
	v.history.pruning.Lock()
	defer v.history.pruning.Unlock()
	excess := v.store.KeptBytes() - limit
	if excess <= 0 {
		return false
	}
	var files []uint64
	var bytes int64
	err := v.update(func(v *Tx) error {
		v.table.Scan(history.KeptPrefix, "", func(key string, value []byte) bool {
			id := history.IDOf(key)
			files, bytes = append(files, id), bytes+history.GiveUp(v, id, value)
			return bytes < excess && len(files) < pruneStep
		})
		return nil
	})
	v.Ended(chores.Prune, err)
	if err != nil {
		return false
	}
	v.dropFiles(files, bytes, 0)
	return len(files) > 0
}

// pruneEvery is how often the age of versions is looked at when nothing else
// happens.
const pruneEvery = time.Hour
