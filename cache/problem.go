package cache

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Problem is a change that the backend does not have and a person should know
// of.
type Problem struct {
	Time time.Time
	Op   string
	Path string // where it was
	Err  error
}

// maxProblems bounds what Status remembers; the log has all.
const maxProblems = 200

// Status says how far the backend is behind.
type Status struct {
	Queued   int       // changes of names and attributes on their way
	Unsaved  int       // inodes whose content the backend does not have
	Problems []Problem // the newest last
}

// Status reports the state of the working copy. It does no I/O.
func (v *Volume) Status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Status{Queued: v.queue.length(), Unsaved: len(v.unsaved), Problems: append([]Problem(nil), v.problems...)}
}

// problem keeps a failure for status and log.
func (v *Volume) problem(ino fs.Ino, op string, err error) {
	path, _ := v.Path(ino)
	v.report(Problem{v.o.Now(), op, path, err})
}

func (v *Volume) report(p Problem) {
	v.o.Log.Error("the backend does not have a change", "op", p.Op, "path", p.Path, "err", p.Err)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.problems) == maxProblems {
		v.problems = append(v.problems[:0], v.problems[1:]...)
	}
	v.problems = append(v.problems, p)
}

// failed deals with a job that the backend refused for good. No byte may hang
// on it: content that is here stays unsaved and listed, and a name that the
// backend has and we wrongly gave up comes back.
func (v *Volume) failed(j *job, err error) {
	v.report(Problem{v.o.Now(), j.verb.String(), j.paths[0].String(), err})
	switch j.verb {
	case verbSend:
		v.unsentForGood(j.ino, err)
	case verbDelete, verbRmdir:
		v.takeBack(j.paths[0], 0)
	case verbRename:
		v.undoRename(j)
	case verbExchange:
		v.resendHere(j.ino)
		v.resendHere(j.other)
	}
}

// takeBack shows what the backend has at l after all.
func (v *Volume) takeBack(l providers.Locator, old fs.Ino) {
	err := v.retry(v.ctx, func(ctx context.Context) error { return v.revive(ctx, l, old) })
	if err != nil {
		v.report(Problem{v.o.Now(), "stat", l.String(), err})
	}
}

// undoRename deals with a rename that the backend refused. Content that is
// here is sent to the new name; what only the backend has goes back to its old
// one, since the new one would lead nowhere.
func (v *Volume) undoRename(j *job) {
	if !v.resendHere(j.ino) {
		v.takeBack(j.paths[1], j.ino)
	}
	v.takeBack(j.paths[0], 0)
}

// resendHere has content sent that the backend has under another name. false
// says that it is not here.
func (v *Volume) resendHere(ino fs.Ino) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n != nil && n.present {
		n.sent = 0
		v.mark(ino, n)
		v.enqueueSend(ino, n)
	}
	return n == nil || n.present || !n.isRegular()
}

// unsentForGood keeps the reason; the next close or fsync tries again.
func (v *Volume) unsentForGood(ino fs.Ino, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.table.node(ino); n != nil && n.dirty() {
		n.conflict = errors.Is(err, providers.ErrConflict)
		n.extra().reason = err.Error()
		v.table.save(ino, n)
	}
}
