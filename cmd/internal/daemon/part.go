package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/inforce"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
)

const (
	maxFailures    = 200 // kept for errors.log, per part
	recentFailures = 10  // of them shown in status
)

// A part is one volume of the running tree, with its state and its failures.
type part struct {
	Source
	name   string // unique in this mount
	volume fs.Volume
	syncer *syncer // of a working copy
	inside []*part // the parts that are mounted right inside it

	access atomic.Pointer[fs.Access] // what the policy forbids now; nil: nothing

	failed     atomic.Uint64
	background atomic.Uint64 // reports by the working copy, which keeps the last ones

	mu       sync.Mutex // guards the fields below
	failures []fs.Failure
	kinds    map[string]uint64 // failures by kind
}

// inBackground is the Op of a failure outside of any program's request.
const inBackground = "background"

// fail keeps a failed request. A working copy keeps its own reports: see known.
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

// failureKinds returns the number of failures by kind. For a working copy these are
// failures of calls to its store, else of requests.
func (p *part) failureKinds() map[string]uint64 {
	if w, ok := p.volume.(*workingCopy); ok {
		return w.answers.Summary().Failed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.kinds)
}

// known returns the newest failures, the newest last: failed requests of programs,
// with their errno, and problems of the working copy. total counts them all.
func (p *part) known(most int) (list []control.Failure, total uint64) {
	p.mu.Lock()
	for _, f := range p.failures {
		list = append(list, failure(f))
	}
	total = p.failed.Load()
	p.mu.Unlock()
	if w, ok := p.volume.(*workingCopy); ok {
		problems := w.Status().Problems
		total += max(p.background.Load(), uint64(len(problems))) // some came before the front could count them
		for _, f := range problems {
			list = append(list, control.Failure{Time: f.Time, Op: f.Op, Path: cmp.Or(f.Path, "/"), Error: f.Err.Error()})
		}
		slices.SortStableFunc(list, func(a, b control.Failure) int { return a.Time.Compare(b.Time) })
	}
	return list[max(0, len(list)-most):], total
}

// status describes the part as it is now. open are its open files; refused counts
// the changes that were refused because it is read-only.
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
		out.Errno = "" // no program received an errno
	}
	if f.Err != nil {
		out.Error = f.Err.Error()
	}
	return out
}

// ioMode is the I/O mode that the open files share, "mixed" or "none".
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
// received one, reason. Before them come the reason why the whole part is
// unavailable, and the activities that still fail.
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

// openParts opens every volume. Until the front takes them over, the daemon closes them.
func (d *Daemon) openParts(ctx context.Context) error {
	for _, s := range d.tree.Sources {
		p := &part{Source: s}
		p.ReadOnly, p.name = s.Stays, d.uniqueName(s)
		if err := d.openPart(ctx, p); err != nil {
			return err
		}
		d.noteHidden(p)
		d.parts, d.byName[p.name] = append(d.parts, p), p
	}
	nest(d.parts)
	d.room.Opened()
	for i, a := range inforce.Begun(d.underPolicy()) {
		d.parts[i].access.Store(&a)
	}
	return nil
}

// noteHidden adds a note if a local store has a .wsmount of its own, which the mount hides.
func (d *Daemon) noteHidden(p *part) {
	name := cmp.Or(d.opts.ControlDir, ".wsmount")
	if _, ok := p.volume.(*direct.Volume); !ok {
		return
	}
	if _, err := os.Lstat(filepath.Join(p.Path, name)); err == nil {
		d.tree.note("%s has a %s of its own: it is hidden in the mount", p.name, name)
	}
}

func (d *Daemon) openPart(ctx context.Context, p *part) error {
	if p.Open == nil {
		return nil
	}
	e := Env{Log: d.log, Host: d.tree.host, Room: d.room, NoPassthrough: d.opts.NoPassthrough, Copy: d.opts.Copy, ReadOnly: p.ReadOnly != "", Now: d.opts.Now}
	if !d.tree.ReadOnly() && d.nudger != nil {
		e.Pulled = func(file string) { d.nudger.Pulled(p.At, file) }
	}
	err := d.tree.LostCommits(p.Source)
	if err == nil && !d.uploads { // also if the storage is a local directory now
		err = d.tree.OthersUnsaved(p.Source)
	}
	if p.Cached && err == nil {
		e.StateDir, err = d.stateOf(p)
		e.SharedDir = state.Shared(d.tree.StateRoot)
		if err == nil {
			err = d.dir.WhileFull(func() error { return os.MkdirAll(e.SharedDir, 0o700) })
		}
	}
	if err == nil {
		p.volume, err = p.Open(ctx, e)
	}
	if w, ok := p.volume.(*workingCopy); ok && err == nil {
		if err = d.keep(p, w); err != nil {
			p.volume, err = nil, errors.Join(err, w.Volume.Close(), w.provider.Close())
		} else {
			d.room.Add(w)
		}
	}
	if err == nil {
		return nil
	}
	if !p.Optional {
		return err
	}
	d.log.Warn("an optional part is left out", "part", p.Name, "at", p.At, "err", err)
	p.Unavailable = err.Error()
	return nil
}

// stateOf locks the state directory of a working copy. The root's is locked already.
func (d *Daemon) stateOf(p *part) (string, error) {
	place, provider := p.resolved.Location.String(), p.resolved.Storage.Provider
	if p.At == "" {
		return d.dir.Path(), d.dir.SaveStorage(place, provider)
	}
	dir, err := state.Open(d.tree.StateRoot, p.Place[0], p.Place[1], p.Place[2], d.room)
	var locked *state.LockedError
	if errors.As(err, &locked) {
		return "", exit.New(exit.Failed, "%w", err).Hint("unmount that first: `wsmount status` lists what is mounted")
	}
	if err != nil {
		return "", err
	}
	d.onClose(dir.Close)
	return dir.Path(), errors.Join(dir.SaveParent(d.dir, p.At), dir.SaveStorage(place, provider))
}

// keep gives a working copy its syncer.
func (d *Daemon) keep(p *part, w *workingCopy) error {
	if err := d.openAudit(); err != nil {
		return err
	}
	w.ending = func() context.Context {
		if d.getState() == control.Starting {
			return nil
		}
		d.sends()
		return d.drain
	}
	k, err := newSyncer(p.resolved, w, syncerOptions{bus: d.bus, log: d.log, audit: d.audit,
		now: d.opts.Now, identity: d.tree.host.Identity})
	if err != nil {
		return exit.New(exit.Manifest, "%s: %w", p.Name, err).Hint("correct sync or identity, in %s", p.resolved.Written())
	}
	p.syncer = k
	d.syncers = append(d.syncers, k)
	return nil
}

func (d *Daemon) uniqueName(s Source) string {
	if _, taken := d.byName[s.Name]; !taken {
		return s.Name
	}
	return s.Name + " at /" + s.At
}
