package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// opFor finds the operation id for an attempt: that of one just like it which was found
// not to have happened, else a new one.
func (e *executor) opFor(v *View, s *operation, kind uint8, gen, attrGen uint64) string {
	if old := s.job.attempt; old.Op != "" && old.Kind == kind && old.ContentVersion == gen && old.AttrGen == attrGen {
		return old.Op
	}
	return v.operations.next()
}

// setAttempt records an attempt, or with nil that there is none.
func (v *Tx) setAttempt(l table.Link, a *table.Attempt) {
	if a != nil {
		v.recordSent(v.Record(l).Ino, a)
	}
	v.SetAttempt(l, a)
}

// answered clears an attempt that is known to have come to nothing, and hands
// the error on. While it may have happened, the attempt stays.
func (e *executor) answered(err error, names ...table.Link) error {
	if maybe(err) {
		return err
	}
	return errors.Join(err, e.v.updateOwn(func(v *Tx) error {
		for _, l := range names {
			v.setAttempt(l, nil)
		}
		return nil
	}))
}

// maybe reports whether a change that failed may have happened all the same.
func maybe(err error) bool {
	return errors.Is(err, providers.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// operationIDs gives the ids of the operations of a run.
type operationIDs struct {
	run   string
	given uint64
}

// next is a new operation id.
func (o *operationIDs) next() string {
	o.given++
	return fmt.Sprintf("%s-%d", o.run, o.given)
}
