package cache

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// dropSet forgets a set that is known not to have been committed.
func (e *engine) dropSet(p pendingSet) error {
	return e.v.update(func() error {
		e.v.table.Set(keySet, nil)
		e.clearAttempts(p)
		return nil
	})
}

// clearAttempts ends those of a set. mu is held, in an update.
func (e *engine) clearAttempts(p pendingSet) {
	for _, name := range p.Names {
		if a := e.record(name.Link).Attempt; a != nil && a.Op == p.Op {
			e.setAttempt(name.Link, nil)
		}
	}
}

// noteSet notes what the backend has since a set was committed.
func (e *engine) noteSet(p pendingSet, result providers.CommitResult, level bool) error {
	v := e.v
	gone, made := slices.Clone(p.Names), slices.Clone(p.Names)
	slices.SortStableFunc(gone, func(a, b *planned) int { return strings.Count(b.Before, "/") - strings.Count(a.Before, "/") })
	slices.SortStableFunc(made, func(a, b *planned) int { return strings.Count(a.After, "/") - strings.Count(b.After, "/") })
	return e.update(func() error {
		for _, name := range gone { // what was below a directory before that
			if rec := e.record(name.Link); rec.Base != nil && (name.Ino == 0 || rec.Base.Ino != name.Ino) {
				e.confirm(name.Link, nil)
			}
		}
		for _, name := range made { // a directory before what is in it
			if name.Ino != 0 {
				e.noteName(name, result.Entries)
			}
		}
		v.table.Set(keySet, nil)
		e.clearAttempts(p)
		if result.Revision != "" {
			e.revision = result.Revision
			v.table.Set(keyRevision, []byte(result.Revision))
		}
		if level {
			v.setLevel(result.Revision)
		}
		v.passed(commitSide)
		e.advanced()
		if result.Committed {
			v.table.Set(keyMerging, nil)
			for _, name := range p.Names {
				v.noteCommit(name.Link, p.Until, result.Revision)
			}
			return v.unpushedMore(1)
		}
		return nil
	})
}

// noteName notes what a set left under a name. mu is held, in an update.
func (e *engine) noteName(p *planned, entries []providers.Info) {
	n := e.v.table.Edit(p.Ino)
	base := &table.Base{Ino: p.Ino, Kind: p.Kind, Gen: p.Gen, AttrGen: p.AttrGen}
	if n == nil {
		base.Ino = 0
	}
	if p.Index >= 0 && p.Index < len(entries) && p.Kind != providers.KindDir {
		info := entries[p.Index]
		base.Version, base.Digest = info.Version, info.Digest
		if n != nil && (n.Gen == p.Gen || n.State == table.Whole) {
			n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, Gen: p.Gen}
		}
	}
	e.confirm(p.Link, base)
}

// openSet is the set whose outcome is open; ok is false when there is none. mu is
// held.
func (e *engine) openSet() (p pendingSet, ok bool) {
	data := e.v.table.Get(keySet)
	if data == nil {
		return p, false
	}
	if err := json.Unmarshal(data, &p); err != nil {
		e.v.o.Log.Error("the record of a commit is damaged", "err", err)
	}
	return p, true
}

// settleSet finds out whether a set whose answer got lost was committed.
func (e *engine) settleSet(ctx context.Context) error {
	e.v.puller.still.Lock()
	defer e.v.puller.still.Unlock()
	return e.settleStill(ctx)
}

// settleStill is settleSet for who holds puller.still. A set that was collected
// and not sent yet is none any more then.
func (e *engine) settleStill(ctx context.Context) error {
	e.v.mu.Lock()
	p, ok := e.openSet()
	e.v.mu.Unlock()
	if !ok {
		return nil
	}
	if p.Op == "" {
		return e.dropSet(p)
	}
	// The set of an operation is committed once: this one cannot be, but tells
	// what became of the first.
	result, err := e.sets.Commit(ctx, providers.ChangeSet{Base: "wsmount: none", Op: p.Op})
	switch {
	case err == nil:
		return e.noteSet(p, result, false) // others may have been there meanwhile
	case maybe(err):
		return err
	}
	return e.dropSet(p)
}
