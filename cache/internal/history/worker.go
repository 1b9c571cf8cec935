package history

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Run is the worker, until the context ends.
func (k *Keeper) Run() {
	for {
		next, some := k.Work()
		if !some {
			next = pruneEvery
		}
		timer := time.NewTimer(next)
		select {
		case <-k.o.Context.Done():
			timer.Stop()
			return
		case <-k.kick:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Work does the work that is due, and returns the time until more is due, if any is expected. When
// it returns all due work is done, including that of another Work under way.
func (k *Keeper) Work() (next time.Duration, some bool) {
	k.working.Lock()
	defer k.working.Unlock()
	k.ForgetMoved()
	due := k.takeDue()
	var errs []error
	for _, d := range due {
		if k.o.Context.Err() != nil {
			return 0, false
		}
		if err := k.lookAt(d.ino, d.expected); err != nil {
			errs = append(errs, fmt.Errorf("content %d: %w", d.ino, err))
		}
	}
	if len(due) > 0 {
		k.o.Ended(chores.Keep, errors.Join(errs...))
	}
	k.prune()
	k.mu.Lock()
	defer k.mu.Unlock()
	next = keepPause
	for _, p := range k.expected {
		next = min(next, max(p.due.Sub(k.o.Now()), 10*time.Millisecond))
	}
	return next, len(k.expected) > 0
}

// ForgetMoved takes away the notes of moves that are done.
func (k *Keeper) ForgetMoved() {
	k.mu.Lock()
	moved := k.moved
	k.moved = nil
	k.mu.Unlock()
	if len(moved) == 0 {
		return
	}
	err := k.o.Update(func(tx Tx) error {
		for _, ino := range moved {
			tx.Set(QueueKey(ino), nil)
		}
		return nil
	})
	if err != nil {
		k.o.Log.Warn("history", "err", err)
	}
}

type due struct {
	ino table.Ino
	expected
}

// takeDue takes the due entries out of the map, the oldest first.
func (k *Keeper) takeDue() (list []due) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	for ino, p := range k.expected {
		if !p.due.After(now) {
			list = append(list, due{ino, p})
			delete(k.expected, ino)
		}
	}
	slices.SortFunc(list, func(a, b due) int { return a.due.Compare(b.due) })
	return list
}

// lookAt hashes a version that was left alone, and copies it if it is too large to be copied when
// it is changed.
func (k *Keeper) lookAt(ino table.Ino, p expected) error {
	n, busy := k.stillThere(ino, p)
	if busy {
		k.expect(ino, expected{p.id, p.gen, k.o.Now().Add(keepPause)})
		return nil
	}
	if n == nil {
		return nil
	}
	copies := n.Size > k.o.Small && n.Size <= k.o.Budget.Bytes/8
	if sum, ok := strings.CutPrefix(k.knownDigest(n), "sha256:"); ok && !copies {
		return k.setSum(p.id, sum)
	}
	return k.keepCopy(ino, p.gen, func(snap *content.Snapshot) (bool, error) {
		sum, err := snap.Digest(k.o.Context)
		if err != nil {
			return false, err
		}
		return copies, k.setSum(p.id, strings.TrimPrefix(sum, "sha256:"))
	})
}

// setSum adds the hash to a record.
func (k *Keeper) setSum(id uint64, sum string) error {
	return k.o.Update(func(tx Tx) error {
		if r := Get(tx, id); r != nil {
			r.SHA = sum
			Put(tx, id, r)
		}
		return nil
	})
}

// stillThere is the inode when it is still in the state of a version; busy asks to come again.
func (k *Keeper) stillThere(ino table.Ino, p expected) (n *table.Inode, busy bool) {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	n = v.Inode(ino)
	switch {
	case n == nil || n.ContentVersion != p.gen || len(n.Links) == 0 || n.State != table.Whole:
		return nil, false
	case n.Writing:
		return nil, true
	}
	c := *n
	return &c, false
}

// knownDigest is the digest that the remote gave for the content of an inode.
func (k *Keeper) knownDigest(n *table.Inode) string {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	for _, l := range n.RemoteLinks {
		if b := v.Record(l).Remote; b != nil && b.ContentVersion == n.ContentVersion {
			return b.Digest
		}
	}
	return ""
}

// FinishMoves moves content into the history, or away, where the table says that it is to go and
// the last run did not get to it.
func (k *Keeper) FinishMoves() {
	type move struct {
		ino table.Ino
		id  string
	}
	var moves []move
	v := k.o.Tree.Lock()
	v.Scan(QueuePrefix, "", func(key string, value []byte) bool {
		if ino := IDOf(key); v.Inode(ino) == nil || v.Inode(ino).State == table.None {
			moves = append(moves, move{ino, string(value)})
		}
		return true
	})
	k.o.Tree.Unlock()
	if len(moves) > 0 && k.o.Tree.Sync() != nil {
		return
	}
	for _, m := range moves {
		var err error
		if m.id == goesAway {
			k.o.Store.Remove(m.ino)
		} else {
			err = k.o.Store.Keep(m.ino, m.id)
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			k.o.Log.Warn("history: content was not kept", "ino", m.ino, "err", err)
		}
		k.Removed(m.ino)
	}
	k.ForgetMoved()
}

// wake makes the worker look at due work. It never blocks.
func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}
