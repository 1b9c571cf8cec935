package cache

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// keepLoop is the history's worker.
func (v *Volume) keepLoop() {
	for {
		next, some := v.keepDue()
		if !some {
			next = pruneEvery
		}
		timer := time.NewTimer(next)
		select {
		case <-v.ctx.Done():
			timer.Stop()
			return
		case <-v.history.kick:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// keepDue does what is due in the history, and says how long until there is
// more, if there is anything.
func (v *Volume) keepDue() (next time.Duration, some bool) {
	v.forgetMoved()
	due := v.takeDue()
	var errs []error
	for _, d := range due {
		if v.ctx.Err() != nil {
			return 0, false
		}
		if err := v.lookAt(d.ino, d.expected); err != nil {
			errs = append(errs, fmt.Errorf("content %d: %w", d.ino, err))
		}
	}
	if len(due) > 0 {
		v.Ended(chores.Keep, errors.Join(errs...))
	}
	v.prune()
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	next = keepPause
	for _, p := range h.expected {
		next = min(next, max(p.due.Sub(v.o.Now()), 10*time.Millisecond))
	}
	return next, len(h.expected) > 0
}

// forgetMoved takes away the notes of moves that are done.
func (v *Volume) forgetMoved() {
	h := &v.history
	h.mu.Lock()
	moved := h.moved
	h.moved = nil
	h.mu.Unlock()
	if len(moved) == 0 {
		return
	}
	err := v.update(func(v *Tx) error {
		for _, ino := range moved {
			v.table.Set(history.QueueKey(ino), nil)
		}
		return nil
	})
	if err != nil {
		v.o.Log.Warn("history", "err", err)
	}
}

type due struct {
	ino table.Ino
	expected
}

// takeDue takes what is due out of the map, the oldest first.
func (v *Volume) takeDue() (list []due) {
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	now := v.o.Now()
	for ino, p := range h.expected {
		if !p.due.After(now) {
			list = append(list, due{ino, p})
			delete(h.expected, ino)
		}
	}
	slices.SortFunc(list, func(a, b due) int { return a.due.Compare(b.due) })
	return list
}

// lookAt hashes a version that was left alone, and copies it if it is too large
// to be copied when it is changed.
func (v *Volume) lookAt(ino table.Ino, p expected) error {
	n, busy := v.stillThere(ino, p)
	if busy {
		v.history.expect(ino, expected{p.id, p.gen, v.o.Now().Add(keepPause)})
		return nil
	}
	if n == nil {
		return nil
	}
	copies := n.Size > keepSmall && n.Size <= v.o.Policy.History.Bytes/8
	if sum, ok := strings.CutPrefix(v.knownDigest(n), "sha256:"); ok && !copies {
		return v.setSum(p.id, sum)
	}
	return v.keepCopy(ino, p.gen, func(snap *content.Snapshot) (bool, error) {
		sum, err := snap.Digest(v.ctx)
		if err != nil {
			return false, err
		}
		return copies, v.setSum(p.id, strings.TrimPrefix(sum, "sha256:"))
	})
}

// setSum adds the hash to a record.
func (v *Volume) setSum(id uint64, sum string) error {
	return v.update(func(v *Tx) error {
		if r := history.Get(v, id); r != nil {
			r.SHA = sum
			history.Put(v, id, r)
		}
		return nil
	})
}

// stillThere is the inode when it is in the state of a version still, or else
// whether to come again.
func (v *Volume) stillThere(ino table.Ino, p expected) (n *table.Inode, busy bool) {
	locked := v.lock()
	defer locked.unlock()
	n = locked.table.Inode(ino)
	switch {
	case n == nil || n.ContentVersion != p.gen || len(n.Links) == 0 || n.State != table.Whole:
		return nil, false
	case n.Writing:
		return nil, true
	}
	c := *n
	return &c, false
}

// knownDigest is what the backend said of the content that an inode has.
func (v *Volume) knownDigest(n *table.Inode) string {
	locked := v.lock()
	defer locked.unlock()
	for _, l := range n.RemoteLinks {
		if rec, ok := locked.table.Name(l.Dir, l.Name); ok && rec.Remote != nil && rec.Remote.ContentVersion == n.ContentVersion {
			return rec.Remote.Digest
		}
	}
	return ""
}

// finishMoves moves content into the history, or away, where the table says that
// it is to go and the last run did not come to it.
func (v *Volume) finishMoves() {
	type move struct {
		ino table.Ino
		id  string
	}
	var moves []move
	locked := v.lock()
	locked.table.Scan(history.QueuePrefix, "", func(key string, value []byte) bool {
		if ino := history.IDOf(key); locked.table.Inode(ino) == nil || locked.table.Inode(ino).State == table.None {
			moves = append(moves, move{ino, string(value)})
		}
		return true
	})
	locked.unlock()
	if len(moves) > 0 && v.tree.Sync() != nil {
		return
	}
	for _, m := range moves {
		var err error
		if m.id == goesAway {
			v.store.Remove(m.ino)
		} else {
			err = v.store.Keep(m.ino, m.id)
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			v.o.Log.Warn("history: content was not kept", "ino", m.ino, "err", err)
		}
		v.history.moved = append(v.history.moved, m.ino)
	}
	v.forgetMoved()
}
