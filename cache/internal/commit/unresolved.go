package commit

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// Keys of the table for a set whose outcome is open.
const (
	keySet   = "engine/set"     // the operation
	keyNames = "engine/set/"    // the names, in pieces
	keyCount = "engine/counted" // the set is counted as a commit to push
)

// Unresolved is a set whose outcome is open: the changes to note if it was committed. It is in the
// table before the set is sent, so that after a kill the next run knows which operation to ask
// about, and stays until its result is noted. There may be very many names in it, so the table is
// changed in pieces, each in a transaction of its own, and other requests have their turn in
// between:
//
//   - first the record of the set, with its operation. Each piece then puts some of the names
//     beside it, and the attempts of these. After a kill in between the operation was never sent,
//     and its traces are dropped;
//   - the result, name by name. After a kill in between the record is still there: the remote is
//     asked once more, and all is noted again, which changes nothing that was noted;
//   - at the end, with all facts about the set as a whole, the record goes.
type Unresolved struct {
	Op    string
	Names []*Planned `json:",omitempty"` // in the record itself only as earlier versions wrote it
	Until uint64     `json:",omitempty"` // history records of the names before it are of the set

	made bool // in this run: Planned.Rec is valid
}

// Unresolved is the set as one that an operation is about to send.
func (s *Set) Unresolved(op string) Unresolved { return Unresolved{op, s.Order, s.Until, true} }

// IsUnresolved reports whether there is a set whose outcome is open.
func IsUnresolved(v *tree.View) bool { return v.Get(keySet) != nil }

// IsMade reports whether the set was made in this run: else the Rec of its names has to be read.
func (u Unresolved) IsMade() bool { return u.made }

// IsRecorded reports whether the table has the record of this set; for the zero value, whether it
// has none.
func (u Unresolved) IsRecorded(v *tree.View) bool {
	data := v.Get(keySet)
	if data == nil || u.Op == "" {
		return data == nil && u.Op == ""
	}
	var is Unresolved
	return exactjson.Unmarshal(data, &is) == nil && is.Op == u.Op
}

// Record puts the record of the set into the table.
func (u Unresolved) Record(tx upload.Tx) error {
	data, err := exactjson.Marshal(Unresolved{Op: u.Op, Until: u.Until})
	tx.Set(keySet, data)
	return err
}

// Piece is some of the names of a set.
type Piece struct {
	i     int
	names []*Planned
	data  []byte
}

// NewPiece makes one of number i. It needs no lock.
func NewPiece(i int, names []*Planned) (Piece, error) {
	data, err := exactjson.Marshal(names)
	return Piece{i, names, data}, err
}

func pieceKey(i int) string { return fmt.Sprintf("%s%08x", keyNames, i) }

// Add puts some of the names into the table, and marks the set as an attempt at each: the remote's
// state of it is not news then.
func (u Unresolved) Add(tx upload.Tx, p Piece) {
	tx.Set(pieceKey(p.i), p.data)
	for _, name := range p.names {
		tx.SetAttempt(name.Link, &table.Attempt{Op: u.Op, ContentVersion: name.Gen, AttrGen: name.AttrGen, Kind: upload.AttemptSet})
	}
}

// EndAttempt ends the set's attempt at a name.
func (u Unresolved) EndAttempt(tx upload.Tx, l table.Link) {
	if a := tx.Record(l).Attempt; a != nil && a.Op == u.Op {
		tx.SetAttempt(l, nil)
	}
}

// CountOnce reports whether the set that has a record is to be counted as a commit to push: once,
// even when its result is noted again after a kill.
func CountOnce(tx upload.Tx) bool {
	if tx.Get(keyCount) != nil {
		return false
	}
	tx.Set(keyCount, []byte{1})
	return true
}

// Forget removes the record of a set, and the names beside it.
func Forget(tx upload.Tx) {
	tx.Set(keySet, nil)
	tx.Set(keyCount, nil)
	tx.Scan(keyNames, "", func(key string, _ []byte) bool {
		tx.Set(key, nil)
		return true
	})
}

// ReadUnresolved reads the set whose outcome is open, by one call of get for each piece; ok is
// false when there is none. An error says which part of it is damaged: all else was read.
func ReadUnresolved(get func(key string) []byte) (u Unresolved, ok bool, err error) {
	data := get(keySet)
	if data == nil {
		return u, false, nil
	}
	err = exactjson.Unmarshal(data, &u)
	for i := 0; ; i++ {
		if data = get(pieceKey(i)); data == nil {
			return u, true, err
		}
		var names []*Planned
		if damage := exactjson.Unmarshal(data, &names); damage != nil {
			err = errors.Join(err, fmt.Errorf("piece %d: %w", i, damage))
		}
		u.Names = append(u.Names, names...)
	}
}
