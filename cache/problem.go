package cache

import (
	"slices"
	"time"
)

// Problem is something about the working copy that a person should know of.
type Problem struct {
	Time time.Time
	Op   string
	Path string // where it was
	Err  error
}

// maxProblems bounds what Status remembers; the log has all.
const maxProblems = 200

// report keeps a failure, or what nobody would expect, for status and log. mu is
// not held.
func (v *Volume) report(op, path string, err error) {
	v.o.Log.Error("the backend and the working copy differ, or will", "op", op, "path", path, "err", err)
	v.mu.Lock()
	if len(v.problems) == maxProblems {
		v.problems = slices.Delete(v.problems, 0, 1)
	}
	v.problems = append(v.problems, Problem{v.o.Now(), op, path, err})
	notify := v.notifier()
	v.mu.Unlock()
	if f, ok := notify.(interface{ Failed(path string, err error) }); ok {
		f.Failed(path, err)
	}
}
