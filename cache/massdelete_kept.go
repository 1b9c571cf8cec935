package cache

import (
	"encoding/json"
	"errors"
	"time"
)

// keyMassDeletes are the halts that stand, for the next run: who has seen one and
// confirms it need not see it again first.
const keyMassDeletes = "pull/halts"

// halts is what stands until a person has confirmed it.
type halts struct {
	of        [2]*MassDelete
	kept      [2]*MassDelete // those that the next run knows of, as soon as not unkept
	unkept    bool
	confirmed [2]bool
	widening  bool          // looks have had a pull begun
	widened   time.Time     // when the last one of those ended
	widen     time.Duration // when the next may begin after that
}

// loadMassDeletes takes over what the last run has kept.
func (v *Volume) loadMassDeletes() {
	locked := v.lock()
	defer locked.unlock()
	p := &locked.halts
	if note := locked.table.Get(keyMassDeletes); note != nil && json.Unmarshal(note, &p.kept) != nil {
		p.kept = [2]*MassDelete{} // damaged, it is as if they were forgotten
	}
	p.of = p.kept
	if v.engine.isUnguarded() { // it was another policy
		locked.passed(commitSide)
	}
}

// keepMassDelete has the halt of a side kept, nil for none, soon.
func (v *View) keepMassDelete(side int, h *MassDelete) {
	p := &v.halts
	if p.kept[side] == h {
		return
	}
	p.kept[side], p.unkept = h, true
	v.background(func() {
		if err := v.keepMassDeletes(); err != nil {
			v.o.Log.Error("a halt cannot be kept", "err", err)
		}
	})
}

// keepMassDeletes keeps what is not kept yet.
func (v *Volume) keepMassDeletes() error {
	locked := v.lock()
	unkept := locked.halts.unkept
	locked.unlock()
	if !unkept {
		return nil
	}
	return v.update(func(v *Tx) error {
		var note []byte
		p := &v.halts
		if p.kept != [2]*MassDelete{} {
			var err error
			if note, err = json.Marshal(p.kept); err != nil {
				return err
			}
		}
		v.table.Set(keyMassDeletes, note)
		p.unkept = false
		return nil
	})
}

// massDeleteKept has what an outcome says of halts kept before it is told.
func (v *Volume) massDeleteKept(outcome error) error {
	if err := v.keepMassDeletes(); err != nil {
		return errors.Join(outcome, err)
	}
	return outcome
}
