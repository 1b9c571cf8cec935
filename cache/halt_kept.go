package cache

import (
	"encoding/json"
	"errors"
)

// keyHalts are the halts that stand, for the next run: who has seen one and
// confirms it need not see it again first.
const keyHalts = "pull/halts"

// loadHalts takes over what the last run has kept.
func (v *Volume) loadHalts() {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := &v.puller
	if note := v.table.Get(keyHalts); note != nil && json.Unmarshal(note, &p.kept) != nil {
		p.kept = [2]*Halt{} // damaged, it is as if they were forgotten
	}
	p.halts = p.kept
	if v.engine.haltless() { // it was another policy
		v.passed(commitSide)
	}
}

// keepHalt has the halt of a side kept, nil for none, soon. mu is held.
func (v *Volume) keepHalt(side int, h *Halt) {
	p := &v.puller
	if p.kept[side] == h {
		return
	}
	p.kept[side], p.unkept = h, true
	v.background(func() {
		if err := v.keepHalts(); err != nil {
			v.o.Log.Error("a halt cannot be kept", "err", err)
		}
	})
}

// keepHalts keeps what is not kept yet.
func (v *Volume) keepHalts() error {
	v.mu.Lock()
	unkept := v.puller.unkept
	v.mu.Unlock()
	if !unkept {
		return nil
	}
	return v.update(func() error {
		var note []byte
		p := &v.puller
		if p.kept != [2]*Halt{} {
			var err error
			if note, err = json.Marshal(p.kept); err != nil {
				return err
			}
		}
		v.table.Set(keyHalts, note)
		p.unkept = false
		return nil
	})
}

// haltKept has what an outcome says of halts kept before it is told.
func (v *Volume) haltKept(outcome error) error {
	if err := v.keepHalts(); err != nil {
		return errors.Join(outcome, err)
	}
	return outcome
}
