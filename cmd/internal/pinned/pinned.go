// Package pinned keeps the files at the pinned paths of a working copy on the local disk: it
// fetches them when a path is pinned, when the mount begins, and when others change them.
//
// It reads a volume as the kernel would, and does not know how that keeps content. A failed
// fetch is tried again, and reported meanwhile. Only callers of Fetch wait for it.
//
//	k := pinned.Start(pinned.Options{Pins: set, Fetch: fetch, Ended: ended})
//	files, err := pinned.Fetch(ctx, volume, "docs", nil)
//	k.Changed("docs/a.md") // another writer made it
package pinned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/fs"
)

// Volume is the source of the content.
type Volume interface {
	fs.Volume
	fs.Describer
}

// Fetched counts the files that Fetch has found.
type Fetched struct {
	Files int   // regular ones, now on the local disk
	Bytes int64 // in them
}

// Progress is how much of a fetch is done while a caller waits.
type Progress struct{ Done, All atomic.Int64 } // bytes

// Fetch makes all content at a path of a volume, and below, local. A file that fails is left, and
// the rest is fetched all the same. A path without a file is syscall.ENOENT. told counts
// meanwhile how far it is; nil: it is not counted.
func Fetch(ctx context.Context, v Volume, at string, told *Progress) (f Fetched, err error) {
	w := walk{Volume: v, ctx: ctx, op: fs.Op{Cancel: ctx.Done()}, told: told}
	ino, mode, size := fs.RootIno, uint32(syscall.S_IFDIR), uint64(0)
	for _, name := range strings.Split(at, "/") {
		if name == "" {
			continue
		}
		e, err := v.Lookup(&w.op, ino, name)
		if err == nil && e.Ino == 0 {
			err = syscall.ENOENT
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", at, err)
		}
		defer v.Forget(e.Ino, 1)
		ino, mode, size = e.Ino, e.Attr.Mode, e.Attr.Size
	}
	if told != nil {
		w.counts = true
		_ = w.at(at, ino, mode, size) // a failure now recurs below
		w.counts, w.found = false, Fetched{}
		defer func() { told.Done.Add(-w.done); told.All.Add(-w.all) }()
	}
	err = w.at(at, ino, mode, size)
	return w.found, err
}

// A walk visits the files below a path.
type walk struct {
	Volume
	ctx   context.Context
	op    fs.Op
	found Fetched

	told      *Progress // nil: progress is not counted
	counts    bool      // it only counts the bytes to fetch
	done, all int64     // bytes that were added to told
}

func (w *walk) at(at string, ino fs.Ino, mode uint32, size uint64) (err error) {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return w.dir(at, ino)
	case syscall.S_IFREG:
		if err = w.file(ino, size); err == nil {
			w.found.Files, w.found.Bytes = w.found.Files+1, w.found.Bytes+int64(size)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// dir lists a directory to its end before it goes into anything.
func (w *walk) dir(at string, ino fs.Ino) error {
	names, err := fs.Names(w.Volume, &w.op, ino)
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join("/", at), err)
	}
	var errs []error
	for _, name := range names {
		if w.ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(w.ctx))...)
		}
		e, err := w.Lookup(&w.op, ino, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path.Join(at, name), err))
		}
		if err != nil || e.Ino == 0 { // it went meanwhile
			continue
		}
		errs = append(errs, w.at(path.Join(at, name), e.Ino, e.Attr.Mode, e.Attr.Size))
		w.Forget(e.Ino, 1)
	}
	return errors.Join(errs...)
}

// file reads a file of which content is missing.
func (w *walk) file(ino fs.Ino, size uint64) error {
	if !w.isRemote(ino) {
		return nil
	}
	if w.counts {
		w.all += int64(size)
		w.told.All.Add(int64(size))
		return nil
	}
	err := w.read(ino)
	if err == nil && w.isRemote(ino) { // it was read, and not kept
		err = syscall.ENOSPC
	}
	return err
}

func (w *walk) read(ino fs.Ino) error {
	o, err := w.Open(&w.op, ino, syscall.O_RDONLY)
	if err != nil {
		return err
	}
	defer o.File.Release()
	buf := make([]byte, 1<<20)
	for off := int64(0); ; {
		d, err := o.File.Read(&w.op, buf, off)
		n := max(len(d.Bytes), d.N)
		if err != nil || n == 0 {
			return err
		}
		if w.told != nil {
			w.done += int64(n)
			w.told.Done.Add(int64(n))
		}
		if off += int64(n); w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
	}
}

// isRemote reports whether content of a file is not on the local disk.
func (w *walk) isRemote(ino fs.Ino) bool {
	state, _ := w.Describe(&w.op, ino, "state")
	return state == "remote"
}

// Options of a Keeper.
type Options struct {
	Pins  *pins.Set
	Fetch func(ctx context.Context, path string) error
	Ended func(err error) // called with the result of each round
	pause time.Duration   // after a failure; 0: a minute
}

// A Keeper fetches in the background. Its methods may be called concurrently.
type Keeper struct {
	o      Options
	ctx    context.Context
	stop   context.CancelFunc
	done   chan struct{}
	wake   chan struct{}
	mu     sync.Mutex // guards wanted
	wanted map[string]bool
}

// Start begins with all that is pinned.
func Start(o Options) *Keeper {
	if o.pause == 0 {
		o.pause = time.Minute
	}
	k := &Keeper{o: o, wanted: map[string]bool{}, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	k.ctx, k.stop = context.WithCancel(context.Background())
	go k.run()
	for _, pin := range o.Pins.List() {
		k.Changed(pin)
	}
	return k
}

// Changed has the files at a path fetched soon, if it is pinned. It returns at once.
func (k *Keeper) Changed(at string) {
	if k == nil || !k.o.Pins.Holds(at) {
		return
	}
	k.want(at)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) want(at string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted[at] = true // a pull may bring a hundred thousand
}

// Stop ends it, and waits for the fetch under way to end.
func (k *Keeper) Stop() {
	if k != nil {
		k.stop()
		<-k.done
	}
}

func (k *Keeper) run() {
	defer close(k.done)
	var again <-chan time.Time
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.wake:
		case <-again:
		}
		again = nil
		if !k.round() {
			again = time.After(k.o.pause)
		}
	}
}

// round fetches the wanted paths, and reports whether it has all. A path that failed, and is still
// pinned, stays wanted.
func (k *Keeper) round() bool {
	k.mu.Lock()
	wanted := slices.Sorted(maps.Keys(k.wanted))
	clear(k.wanted)
	k.mu.Unlock()
	var errs []error
	for _, at := range wanted {
		if !k.o.Pins.Holds(at) {
			continue
		}
		err := k.o.Fetch(k.ctx, at)
		if err == nil || errors.Is(err, syscall.ENOENT) { // a new file there is reported again
			continue
		}
		if errs = append(errs, err); k.ctx.Err() != nil {
			return true
		}
		k.want(at)
	}
	k.o.Ended(errors.Join(errs...))
	return len(errs) == 0
}
