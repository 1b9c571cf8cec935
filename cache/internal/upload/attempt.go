package upload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// IDs gives the ids of the operations of a run.
type IDs struct {
	Run   string
	given uint64
}

// Next is a new operation id.
func (i *IDs) Next(*tree.View) string {
	i.given++
	return fmt.Sprintf("%s-%d", i.Run, i.given)
}

// opFor finds the operation id for an attempt: that of one just like it which was found
// not to have happened, else a new one.
func (x *Executor) opFor(v *tree.View, s *Try, kind uint8, version, attrGen uint64) string {
	if old := s.Unmade; old.Op != "" && old.Kind == kind && old.ContentVersion == version && old.AttrGen == attrGen {
		return old.Op
	}
	return x.o.NewID(v)
}

// SetAttempt records an attempt, or with nil that there is none.
func (tx Tx) SetAttempt(l table.Link, a *table.Attempt) {
	if a != nil {
		tx.Rest.Sending(tx.Record(l).Ino, a)
	}
	tx.Tx.SetAttempt(l, a)
}

// answered clears an attempt that is known to have come to nothing, and returns the error. While
// it may have happened, the attempt stays.
func (x *Executor) answered(err error, names ...table.Link) error {
	if providers.MayHaveHappened(err) {
		return err
	}
	return errors.Join(err, x.o.Volume.Update(func(tx Tx) error {
		for _, l := range names {
			tx.SetAttempt(l, nil)
		}
		return nil
	}))
}

// IsLost reports whether an error says that another change was there first.
func IsLost(err error) bool {
	for _, kind := range []error{providers.ErrConflict, providers.ErrExist, providers.ErrNotExist,
		providers.ErrNotDir, providers.ErrIsDir, providers.ErrNotEmpty} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// isLost is IsLost of an error that does not pass.
func (x *Executor) isLost(err error) bool { return IsLost(err) && !x.o.Passes(err) }

// FormatLink and ParseLink keep a name in Attempt.Other.
func FormatLink(l table.Link) string { return strconv.FormatUint(l.Dir, 10) + "/" + l.Name }

func ParseLink(s string) table.Link {
	dir, name, _ := strings.Cut(s, "/")
	ino, _ := strconv.ParseUint(dir, 10, 64)
	return table.Link{Dir: ino, Name: name}
}

// FormatSent and ParseSent keep in Attempt.Other the inode whose content was sent, and the hash of
// that where no operation id tells it from another's.
func FormatSent(ino table.Ino, digest string) string {
	return strconv.FormatUint(ino, 10) + " " + digest
}

func ParseSent(s string) (ino table.Ino, digest string) {
	num, digest, _ := strings.Cut(s, " ")
	ino, _ = strconv.ParseUint(num, 10, 64)
	return ino, digest
}
