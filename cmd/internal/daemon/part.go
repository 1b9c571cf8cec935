package daemon

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
)

const (
	maxFailures    = 200 // kept for errors.log, per part
	recentFailures = 10  // of them shown in status
)

// A part is one volume of the running tree and what is remembered of it.
type part struct {
	Source
	name   string // unique in this mount
	volume fs.Volume
	syncer *syncer // of a working copy
	inside []*part // what is mounted right inside it

	access atomic.Pointer[fs.Access] // what the policy takes away now; nil: nothing

	failed     atomic.Uint64
	background atomic.Uint64 // reports of the working copy, which keeps the last of them

	mu       sync.Mutex // guards what follows
	failures []fs.Failure
	kinds    map[string]uint64 // failures by kind
}

// inBackground is the Op of a failure that no request of a program met.
const inBackground = "background"

// fail remembers a failed request. What a working copy reports, it remembers by
// itself: see known.
func (p *part) fail(f fs.Failure) {
	if _, ok := p.volume.(*workingCopy); ok && f.Op == inBackground {
		p.background.Add(1)
		return
	}
	p.failed.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kinds == nil {
		p.kinds = map[string]uint64{}
	}
	p.kinds[failureKind(f)]++
	if len(p.failures) == maxFailures {
		p.failures = append(p.failures[:0], p.failures[1:]...)
	}
	p.failures = append(p.failures, f)
}

// failureKind names why a request failed, in the few words that metrics use.
func failureKind(f fs.Failure) string {
	switch {
	case errors.Is(f.Err, fs.ErrUnavailable):
		return "unavailable"
	case errors.Is(f.Err, fs.ErrConflict):
		return "conflict"
	case f.Errno == syscall.ENOSPC, f.Errno == syscall.EDQUOT:
		return "space"
	case f.Errno == syscall.EMFILE, f.Errno == syscall.ENFILE:
		return "descriptors"
	case f.Errno == syscall.EACCES, f.Errno == syscall.EPERM:
		return "denied"
	}
	return "io"
}

// failureKinds returns the number of failures by kind: of calls of the store,
// where there is one apart from this machine.
func (p *part) failureKinds() map[string]uint64 {
	if w, ok := p.volume.(*workingCopy); ok {
		return w.answers.Summary().Failed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.kinds)
}

// known returns the newest failures, the newest last: requests of programs, with
// their errno, and what happened to the working copy. total counts them all.
func (p *part) known(most int) (list []control.Failure, total uint64) {
	p.mu.Lock()
	for _, f := range p.failures {
		list = append(list, failure(f))
	}
	total = p.failed.Load()
	p.mu.Unlock()
	if w, ok := p.volume.(*workingCopy); ok {
		problems := w.Status().Problems
		total += max(p.background.Load(), uint64(len(problems))) // it has some before there is a front to tell
		for _, f := range problems {
			list = append(list, control.Failure{Time: f.Time, Op: f.Op, Path: cmp.Or(f.Path, "/"), Error: f.Err.Error()})
		}
		slices.SortStableFunc(list, func(a, b control.Failure) int { return a.Time.Compare(b.Time) })
	}
	return list[max(0, len(list)-most):], total
}

// status describes the part as it is now. open are the files that are open in
// it; refused counts the changes that being read-only has refused.
func (p *part) status(open []fs.OpenFile, refused uint64) control.Part {
	s := control.Part{
		Name: p.Name, At: "/" + p.At, Provider: p.Provider, Mode: p.Mode, Path: p.Path, Store: p.Store, Nested: p.nested(),
		Unverified: p.Unverified, Code: p.Code, Authors: p.Authors, Unavailable: p.Unavailable, ReadOnly: p.readOnly(), Closed: p.closed(), Refused: refused,
		Governing: p.Governing, Exclude: p.Exclude, Durability: p.Durability, OpenFiles: len(open), IOMode: ioMode(open),
		Watch: control.Watch{State: "off"},
	}
	s.Recent, s.Errors = p.known(recentFailures)
	s.StoreErrors, s.Reachable = p.failureKinds(), p.Unavailable == ""
	switch v := p.volume.(type) {
	case *direct.Volume:
		st := v.Status()
		s.Watch = control.Watch{State: st.Watch, Reason: st.WatchWhy, Directories: st.Watched}
		s.Moved, s.Reachable = st.Moved, st.Moved == ""
		s.Inodes, s.NotEntered, s.OtherMounts = st.Inodes, st.Refused, st.OtherMounts
	case *workingCopy:
		v.describe(&s)
	}
	return s
}

func failure(f fs.Failure) control.Failure {
	out := control.Failure{Time: f.Time, Op: f.Op, Path: f.Path, Errno: f.Errno.Error()}
	if f.Op == inBackground {
		out.Errno = "" // no program got it
	}
	if f.Err != nil {
		out.Error = f.Err.Error()
	}
	return out
}

// ioMode sums up how the open files are read and written.
func ioMode(open []fs.OpenFile) string {
	mode := "none"
	for _, f := range open {
		switch mode {
		case "none":
			mode = f.Mode
		case f.Mode:
		default:
			return "mixed"
		}
	}
	return mode
}

// errorLog is one line per failure: time, operation, path, errno if a program
// got one, reason. What keeps the whole part away, and what fails until now, comes
// first.
func (p *part) errorLog() []byte {
	var b bytes.Buffer
	if p.Unavailable != "" {
		fmt.Fprintf(&b, "# not available: %q\n", p.Unavailable)
	}
	for _, f := range p.failing() {
		fmt.Fprintf(&b, "# %s fails since %s: %q\n", f.Activity, f.Since.UTC().Format(time.RFC3339), f.Error)
	}
	kept, n := p.known(maxFailures)
	if n > uint64(len(kept)) {
		fmt.Fprintf(&b, "# the last %d of %d failures\n", len(kept), n)
	}
	for _, f := range kept {
		fmt.Fprintf(&b, "%s %s %q", f.Time.UTC().Format(time.RFC3339Nano), f.Op, f.Path)
		if f.Errno != "" {
			fmt.Fprintf(&b, ": %s", f.Errno)
		}
		if f.Error != "" {
			fmt.Fprintf(&b, ": %q", f.Error)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
