package cache

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// recoverLast recovers from the end of the last run.
func (v *Volume) recoverLast() error {
	r := recovery.New(recovery.Options{
		Tree: v.tree, Store: v.store, Open: v.open, Volume: recovering{v}, Dir: v.state.Path,
		Now: v.o.Now, Context: v.ctx, Log: v.o.Log,
	})
	if err := r.Run(); err != nil {
		return err
	}
	v.history.FinishMoves()
	if r.IsToSweep() {
		v.work.Go(r.Sweep)
	}
	return v.tree.View(func(*tree.View) error { return nil }) // fails if the table has failed
}

// recovering adapts a volume for its recovery.
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

// Accept takes suspect content as good, so that it is sent like any other change: a person has
// looked at it, or has nothing better. Paths select it, a directory all below it; none: all. It
// returns the paths that it accepted.
func (v *Volume) Accept(paths ...string) (accepted []string, err error) {
	err = v.update(func(v *Tx) error {
		accepted = offline.Accept(v.Tx, paths...)
		v.wakes = len(accepted) > 0
		return nil
	})
	return accepted, err
}

// Accept does the same as Volume.Accept, in a working copy that is not mounted.
func Accept(stateDir string, paths ...string) (accepted []string, err error) {
	if !state.IsOne(stateDir) {
		return nil, &iofs.PathError{Op: "accept", Path: stateDir, Err: syscall.ENOENT}
	}
	o := Options{StateDir: stateDir}
	o.setDefaults()
	s, err := openState(o)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	v := newVolume(offline.Remote{}, o, s)
	if err = v.recoverLast(); err == nil { // the steps below hide how the last run ended
		accepted, err = v.Accept(paths...)
	}
	if err == nil {
		err = recovery.Sync(v.tree, v.store, s.Path, v.updateTree)
	}
	v.stop()
	v.work.Wait()
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return accepted, nil
}
