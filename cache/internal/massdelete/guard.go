package massdelete

import (
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// ErrHalted says that a pull or a commit would have deleted so much that it looks like an
// accident. None of it was applied; Confirm allows it.
var ErrHalted = errors.New("stopped: too much would be deleted")

// UnseenError says that too little is known to tell whether too much would be deleted.
type UnseenError struct{ Dirs []table.Ino }

func (e *UnseenError) Error() string {
	return fmt.Sprintf("%d directories were never looked into", len(e.Dirs))
}

// Side is the activity that is halted.
type Side int

// The sides, each of which is halted by itself.
const (
	Pull Side = iota
	Commit
)

func (s Side) String() string { return [...]string{Pull: "pull", Commit: "commit"}[s] }

// Halt is the record of a side that is stopped until Confirm.
type Halt struct {
	Since  time.Time
	Commit bool // else a pull
	Reason string

	Deleted int // names that a pull would have deleted
}

// Guard has the halts that stand, and the confirmations. The zero Guard has none.
type Guard struct {
	halts     [2]*Halt
	kept      [2]*Halt // those that the next run knows of, once unkept is false
	unkept    bool
	confirmed [2]bool
}

// key holds the halts for the next run: a person who has seen one can confirm it without having it
// shown again first.
const key = "pull/halts"

// Load takes over the halts that the last run has kept.
func (g *Guard) Load(v interface{ Get(key string) []byte }) {
	if note := v.Get(key); note != nil && exactjson.Unmarshal(note, &g.kept) != nil {
		g.kept = [2]*Halt{} // damaged, it is as if they were forgotten
	}
	g.halts = g.kept
}

// IsUnkept reports whether the next run would not know the present halts: Keep is to be called.
func (g *Guard) IsUnkept() bool { return g.unkept }

// Keep records the present halts for the next run.
func (g *Guard) Keep(tx interface {
	Set(key string, value []byte)
}) error {
	var note []byte
	if g.kept != [2]*Halt{} {
		var err error
		if note, err = exactjson.Marshal(g.kept); err != nil {
			return err
		}
	}
	tx.Set(key, note)
	g.unkept = false
	return nil
}

func (g *Guard) keep(s Side, h *Halt) {
	if g.kept[s] != h {
		g.kept[s], g.unkept = h, true
	}
}

// Halted is the halt of a side; nil: there is none.
func (g *Guard) Halted(s Side) *Halt { return g.halts[s] }

// All are the halts that stand.
func (g *Guard) All() (all []Halt) {
	for _, h := range g.halts {
		if h != nil {
			all = append(all, *h)
		}
	}
	return all
}

// Check halts a side for a reason, unless that is empty or the halt was confirmed: the error is an
// ErrHalted then. It reports whether that is new.
func (g *Guard) Check(s Side, reason string, deleted int, now time.Time) (isNew bool, err error) {
	if reason == "" || g.confirmed[s] {
		return false, nil
	}
	if g.halts[s] == nil || g.halts[s].Reason != reason {
		g.halts[s] = &Halt{Since: now, Commit: s == Commit, Reason: reason, Deleted: deleted}
		g.keep(s, g.halts[s])
		isNew = true
	}
	return isNew, fmt.Errorf("%w: %s", ErrHalted, reason)
}

// Pass says that a side has done its work: its confirmation is used up. A halt that ends without a
// confirmation is returned.
func (g *Guard) Pass(s Side) (over *Halt) {
	if !g.confirmed[s] {
		over = g.halts[s]
	}
	g.halts[s], g.confirmed[s] = nil, false
	g.keep(s, nil)
	return over
}

// IsConfirmed reports whether the next deletions of a side were confirmed.
func (g *Guard) IsConfirmed(s Side) bool { return g.confirmed[s] }

// Confirm allows the halted deletions, once, and says of which sides. The halt of a pull stands
// until the pull is done.
func (g *Guard) Confirm() (pull, commit bool) {
	pull, commit = g.halts[Pull] != nil, g.halts[Commit] != nil
	g.confirmed[Pull] = g.confirmed[Pull] || pull
	g.confirmed[Commit] = g.confirmed[Commit] || commit
	g.halts[Commit] = nil
	return pull, commit
}
