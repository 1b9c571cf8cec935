package cache

import (
	"encoding/json"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/providers"
)

// Unpushed is what is known of commits that the remote does not have. It is kept
// with the working copy: a kill loses nothing of it.
type Unpushed struct {
	Commits int       `json:"commits"` // 0: nobody has counted them
	Since   time.Time `json:"since"`   // of the oldest
	// Owed is when a push of them was begun that has not succeeded; zero: none
	// was, since nobody has asked for it.
	Owed  time.Time `json:"owed,omitzero"`
	Error string    `json:"error,omitempty"` // why it has not
}

// unpushedOf is what the table says; nil: all that was committed is pushed.
func (v *View) unpushedOf() *Unpushed {
	data := v.table.Get(keyUnpushed)
	if data == nil {
		return nil
	}
	u := &Unpushed{}
	if err := json.Unmarshal(data, u); err != nil { // there are some, whatever they are
		return &Unpushed{}
	}
	return u
}

// setUnpushed notes it.
func (v *Tx) setUnpushed(u *Unpushed) error {
	if u == nil {
		v.table.Set(keyUnpushed, nil)
		v.failing.Succeeded(chores.Push) // none is owed
		return nil
	}
	data, err := json.Marshal(u)
	v.table.Set(keyUnpushed, data)
	return err
}

// unpushedMore notes that there are more commits to push. A store without a remote has
// all that it was given.
func (v *Tx) unpushedMore(n int) error {
	if _, ok := providers.As[providers.Pusher](v.p); !ok {
		return v.setUnpushed(nil)
	}
	v.pushes.commits += uint64(n)
	u := v.unpushedOf()
	if u == nil {
		u = &Unpushed{}
	}
	if u.Since.IsZero() {
		u.Since = v.o.Now()
	}
	u.Commits += n
	return v.setUnpushed(u)
}

// anotherLine notes that commits were made anew, or are about to be: a push that is
// under way sends what they were before.
func (v *Tx) anotherLine() error {
	v.pushes.lines++
	if v.unpushedOf() != nil {
		return nil
	}
	return v.setUnpushed(&Unpushed{Since: v.o.Now()})
}

// noneUnpushed notes that there are no commits of ours left here, though a push may be
// owed.
func (v *Tx) noneUnpushed() error {
	u := v.unpushedOf()
	if u == nil {
		return nil
	}
	u.Commits = 0
	return v.setUnpushed(u)
}

// owe notes that a push was begun, or why it failed: who comes after a kill knows
// that one is owed.
func (v *Volume) owe(cause error) error {
	return v.update(func(v *Tx) error {
		u := v.unpushedOf()
		if u == nil || cause == nil && !u.Owed.IsZero() {
			return nil
		}
		if u.Owed.IsZero() {
			u.Owed = v.o.Now()
		}
		if cause != nil {
			u.Error = cause.Error()
		}
		return v.setUnpushed(u)
	})
}

// notPushed keeps why a push failed, and reports it, once for each reason. That
// it was broken off, to be made again, is none.
func (v *Volume) notPushed(cause error) {
	if v.brokenOff(cause) {
		return
	}
	v.Ended(chores.Push, cause)
	if err := v.owe(cause); err != nil {
		v.o.Log.Error("why a push failed cannot be kept", "err", err)
	}
}
