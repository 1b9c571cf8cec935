package revision

import (
	"encoding/json"
	"time"
)

const keyUnpushed = "engine/unpushed"

// Unpushed is the known state of commits that the remote does not have. It is kept with the
// working copy: a kill loses nothing of it.
type Unpushed struct {
	Commits int       `json:"commits"` // 0: not counted
	Since   time.Time `json:"since"`   // of the oldest
	// Owed is when a push of them was begun that has not succeeded; zero: none was, since none was
	// asked for.
	Owed  time.Time `json:"owed,omitzero"`
	Error string    `json:"error,omitempty"` // why it has not
}

// UnpushedOf is the record in the table; nil: all commits are pushed.
func UnpushedOf(v Reader) *Unpushed {
	data := v.Get(keyUnpushed)
	if data == nil {
		return nil
	}
	u := &Unpushed{}
	if err := json.Unmarshal(data, u); err != nil { // there are some, but no details
		return &Unpushed{}
	}
	return u
}

// SetUnpushed records it.
func SetUnpushed(tx Writer, u *Unpushed) error {
	if u == nil {
		tx.Set(keyUnpushed, nil)
		return nil
	}
	data, err := json.Marshal(u)
	if err == nil {
		tx.Set(keyUnpushed, data)
	}
	return err
}

// KeepUnpushed copies the record of unpushed commits into a rebuilt table, and the revision that
// the old table stood on: one of them.
func KeepUnpushed(tx Writer, was Reader) error {
	u := UnpushedOf(was)
	if at := Last(was); u != nil && at != "" {
		SetCommitted(tx, at)
	}
	return SetUnpushed(tx, u)
}

// Committed adds commits.
func (u *Unpushed) Committed(n int, now time.Time) *Unpushed {
	if u == nil {
		u = &Unpushed{}
	}
	if u.Since.IsZero() {
		u.Since = now
	}
	u.Commits += n
	return u
}

// Owe notes that a push was begun, or with a cause why it failed: after a kill the next run knows
// that one is owed. It reports whether that is news.
func (u *Unpushed) Owe(cause error, now time.Time) (news bool) {
	if cause == nil && !u.Owed.IsZero() {
		return false
	}
	if u.Owed.IsZero() {
		u.Owed = now
	}
	if cause != nil {
		u.Error = cause.Error()
	}
	return true
}
