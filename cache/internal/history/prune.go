package history

import (
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// The history is kept within its budget in steps of pruneStep records, each a transaction of its
// own, so that no request waits long for the lock.
const (
	pruneStep = 256
	// PruneEach is the number of new versions after which a name over its limit is pruned.
	PruneEach = 32
	// maxRecords bounds the records, whatever the budget allows.
	maxRecords = 500_000
)

// Pruned counts the parts that were given up to stay within the budget, since the volume was
// opened.
type Pruned struct {
	Versions int   `json:"versions"` // whose record is gone
	Contents int   `json:"contents"` // whose content is gone
	Bytes    int64 `json:"bytes"`
}

// Usage is the size of a history.
type Usage struct {
	Versions int    `json:"versions"` // -1: not counted yet
	Bytes    int64  `json:"bytes"`    // of content, on the disk
	Pruned   Pruned `json:"pruned"`
}

// Usage gives the size of the history, and counts the parts that were given up.
func (k *Keeper) Usage() Usage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Usage{k.records, k.o.Store.KeptBytes(), k.pruned}
}

// added makes the worker prune a name that has too many versions.
func (k *Keeper) added(r *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.records >= 0 {
		k.records++
	}
	if limit := uint64(k.o.Budget.Versions); r.Number > limit && r.Number%PruneEach == 0 {
		k.long[r.Link()] = struct{}{}
	}
}

// prune keeps the history within its budget.
func (k *Keeper) prune() {
	before := k.Usage()
	if before.Versions < 0 {
		k.countRecords()
	}
	for k.o.Context.Err() == nil && (k.pruneOld() || k.pruneLong() || k.PruneBytes(k.o.Budget.Bytes)) {
	}
	after := k.Usage()
	if after.Pruned != before.Pruned {
		k.o.Log.Info("history: kept within its budget",
			"versions", after.Pruned.Versions-before.Pruned.Versions,
			"contents", after.Pruned.Contents-before.Pruned.Contents,
			"bytes", after.Pruned.Bytes-before.Pruned.Bytes)
	}
}

// countRecords counts the records once. Those that are added meanwhile may count twice.
func (k *Keeper) countRecords() {
	count, after := 0, ""
	for done := false; !done && k.o.Context.Err() == nil; {
		v := k.o.Tree.Lock()
		step := 0
		v.Scan(Prefix, after, func(key string, _ []byte) bool {
			after = key
			step++
			return step < pruneStep
		})
		count += step
		if done = step < pruneStep; done { // later ones come once the lock is free, and are counted
			k.counted(count)
		}
		k.o.Tree.Unlock()
	}
}

func (k *Keeper) counted(records int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = records
}

// pruneOld gives up records that are too old, and the oldest when there are
// too many. It reports whether there may be more.
func (k *Keeper) pruneOld() bool {
	k.mu.Lock()
	excess := k.records - maxRecords
	k.mu.Unlock()
	limit := k.o.Now().Add(-k.o.Budget.Age).UnixNano()
	return k.pruneRecords(func(tx Tx, drop func(id uint64, r *Record)) {
		tx.Scan(Prefix, "", func(key string, value []byte) bool {
			r := Decode(value)
			if r != nil && excess <= 0 && r.Time > limit {
				return false
			}
			excess--
			drop(IDOf(key), r)
			if r != nil {
				tx.Set(PrunedKey, fmt.Appendf(nil, "%x", r.Time))
			}
			return true
		})
	})
}

// pruneLong gives up the oldest versions of names that have too many.
func (k *Keeper) pruneLong() bool {
	l, ok := k.takeLong()
	if !ok {
		return false
	}
	more := k.pruneRecords(func(tx Tx, drop func(id uint64, r *Record)) {
		id := HeadOf(tx, l).ID
		for i := 0; id != 0; i++ {
			r := Get(tx, id)
			if r == nil {
				return
			}
			if i >= k.o.Budget.Versions {
				drop(id, r)
			}
			id = r.Back
		}
	})
	if more {
		k.mu.Lock()
		k.long[l] = struct{}{}
		k.mu.Unlock()
	}
	return true
}

func (k *Keeper) takeLong() (table.Link, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l := range k.long {
		delete(k.long, l)
		return l, true
	}
	return table.Link{}, false
}

// pruneRecords drops the records that choose names, a step at most, and reports
// whether the step was not enough.
func (k *Keeper) pruneRecords(choose func(tx Tx, drop func(id uint64, r *Record))) bool {
	dropped := 0
	var files []uint64
	var bytes int64
	err := k.o.Update(func(tx Tx) error {
		chosen := map[uint64]*Record{}
		choose(tx, func(id uint64, r *Record) {
			if len(chosen) < pruneStep {
				chosen[id] = r
			}
		})
		for id, r := range chosen {
			if at, size := Drop(tx, id, r); at != 0 {
				files, bytes = append(files, at), bytes+size
			}
		}
		dropped = len(chosen)
		return nil
	})
	k.o.Ended(chores.Prune, err)
	if err != nil {
		return false
	}
	k.dropFiles(files, bytes, dropped)
	return dropped >= pruneStep
}

// dropFiles unlinks content that the table does not know any more.
func (k *Keeper) dropFiles(files []uint64, bytes int64, records int) {
	for _, id := range files {
		if err := k.o.Store.DropKept(StoreID(id)); err != nil {
			k.o.Log.Warn("history: unlink", "version", id, "err", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = max(k.records-records, min(k.records, 0))
	k.pruned.Versions += records
	k.pruned.Contents += len(files)
	k.pruned.Bytes += bytes
}

// PruneBytes gives up content, the oldest first, until it takes no more than limit; the records
// stay. It reports whether there may be more to give up.
func (k *Keeper) PruneBytes(limit int64) bool {
	k.pruning.Lock()
	defer k.pruning.Unlock()
	excess := k.o.Store.KeptBytes() - limit
	if excess <= 0 {
		return false
	}
	var files []uint64
	var bytes int64
	err := k.o.Update(func(tx Tx) error {
		tx.Scan(KeptPrefix, "", func(key string, value []byte) bool {
			id := IDOf(key)
			files, bytes = append(files, id), bytes+GiveUp(tx, id, value)
			return bytes < excess && len(files) < pruneStep
		})
		return nil
	})
	k.o.Ended(chores.Prune, err)
	if err != nil {
		return false
	}
	k.dropFiles(files, bytes, 0)
	return len(files) > 0
}

// pruneEvery is how often the age of versions is checked when nothing else happens.
const pruneEvery = time.Hour
