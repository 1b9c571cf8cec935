package cache

import (
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// recoverLast deals with what the last run left.
func (v *Volume) recoverLast() error {
	r := recovery.New(recovery.Options{
		Tree: v.tree, Store: v.store, Open: v.held.open, Volume: recovering{v}, Dir: v.state.Path,
		Now: v.o.Now, Context: v.ctx, Log: v.o.Log,
	})
	if err := r.Run(); err != nil {
		return err
	}
	v.history.FinishMoves()
	if r.IsToSweep() {
		v.background(r.Sweep)
	}
	return v.tree.View(func(*tree.View) error { return nil }) // fails where the table has
}

// recovering is a volume as its recovery needs it.
type recovering struct{ v *Volume }

// Update implements recovery.Volume.
func (r recovering) Update(do func(recovery.Tx) error) error {
	return r.v.update(func(v *Tx) error { return do(recoveredTx{contentTx{v}}) })
}

// Report implements recovery.Volume.
func (r recovering) Report(op, path string, err error) { r.v.chores.Report(op, path, err) }

// recoveredTx is a transaction about content that was recovered.
type recoveredTx struct{ contentTx }

// Recovered implements recovery.Tx.
func (t recoveredTx) Recovered(ino table.Ino, n *table.Inode) {
	t.v.notes.Version(n, ino, "recovered")
}

// Orphaned implements recovery.Tx.
func (t recoveredTx) Orphaned(ino table.Ino) { merge.NoteOrphanConflict(t.v.Tx, ino) }
