package commit

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// keys of what the table has of a set whose outcome is open.
const (
	keySet   = "engine/set"     // the operation
	keyNames = "engine/set/"    // the names, in pieces
	keyCount = "engine/counted" // it is counted as a commit to push
)

// Unresolved is a set whose outcome is open: what is to be noted if it was committed. It is
// in the table before the set is sent, so that whoever comes after a kill knows what to ask
// about, and until what it left is noted. There may be very many names in it, so all that is
// said of them is said in pieces, each in a transaction of its own between which others have
// their turn:
//
//   - first the record of the set, with its operation. Each piece then puts some of the
//     names beside it, and the attempts of these. After a kill in between the operation was
//     never sent, and what there is of it is dropped;
//   - what it left, name by name. After a kill in between the record is there still: the
//     remote is asked once more, and all is noted again, which changes nothing of what was;
//   - at the end, with all that holds for the set as a whole, the record goes.
type Unresolved struct {
	Op    string
	Names []*Planned `json:",omitempty"` // in the record itself only as versions before wrote it
	Until uint64     `json:",omitempty"` // records of them before it tell of what is in the set

	made bool // in this run: Planned.Rec is
}

// Unresolved is the set as one that an operation is about to send.
func (s *Set) Unresolved(op string) Unresolved { return Unresolved{op, s.Order, s.Until, true} }

// IsUnresolved reports whether there is a set whose outcome is open.
func IsUnresolved(v *tree.View) bool { return v.Get(keySet) != nil }

// IsMade reports whether the set was made in this run: else the Rec of its names is to be
// looked at.
func (u Unresolved) IsMade() bool { return u.made }

// IsRecorded reports whether the table has the record of this set; of none (the zero value)
// it is when there is no other.
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

// Add puts some of the names into the table, and says of each that the set is an attempt
// at it: what the remote shows of it is not news.
func (u Unresolved) Add(tx upload.Tx, p Piece) {
	tx.Set(pieceKey(p.i), p.data)
	for _, name := range p.names {
		tx.SetAttempt(name.Link, &table.Attempt{Op: u.Op, ContentVersion: name.Gen, AttrGen: name.AttrGen, Kind: upload.AttemptSet})
	}
}

// EndAttempt ends that of a name.
func (u Unresolved) EndAttempt(tx upload.Tx, l table.Link) {
	if a := tx.Record(l).Attempt; a != nil && a.Op == u.Op {
		tx.SetAttempt(l, nil)
	}
}

// CountOnce reports whether the set that has a record is to be counted as a commit to push:
// once, also when what it left is noted again after a kill.
func CountOnce(tx upload.Tx) bool {
	if tx.Get(keyCount) != nil {
		return false
	}
	tx.Set(keyCount, []byte{1})
	return true
}

// Forget takes the record of a set away, and the names beside it.
func Forget(tx upload.Tx) {
	tx.Set(keySet, nil)
	tx.Set(keyCount, nil)
	tx.Scan(keyNames, "", func(key string, _ []byte) bool {
		tx.Set(key, nil)
		return true
	})
}

// ReadUnresolved reads the set whose outcome is open, by one call of get for each piece; ok
// is false when there is none. An error says what of it is damaged: all else was read.
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
