package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// errMoved says that the version that was listed is not there any more.
var errMoved = errors.New("the listed version is gone")

// maxFetches is how many ranges a volume reads at once: what they hold is for the
// budget to bound.
const maxFetches = 64

// source gives the missing blocks of an inode's content. What it reads is pinned
// to one version, so that ranges read apart belong together. When a pull has given
// the inode another version than that of oi, which is nil for who opened none, the
// error is errOutdated. A version
// that is gone at the backend is looked into before the error is told: then the
// name leads to the new one, and the error is fs.ErrStale, once.
func (v *Volume) source(x table.Ino, oi *openInode) content.Source {
	return func(ctx context.Context, off, n int64, to io.WriterAt) error {
		w := v.wait(nil, v.o.Patience/2)
		defer w.close()
		defer context.AfterFunc(ctx, w.close)()
		w.later = ctx.Value(lookLater{}) != nil
		release, err := v.fetchSlot(w)
		if err != nil {
			return translate(w.cause(err))
		}
		defer release()
		for try := 1; ; try++ {
			was := v.whereabouts(x)
			err = w.cause(v.fetchRange(w, x, oi, off, n, to))
			switch {
			case !errors.Is(err, errMoved):
				return translate(err)
			case w.later:
				return err
			}
			elsewhere, err := v.moved(w, x, oi, was, err)
			if !elsewhere || try == maxTries {
				return err
			}
		}
	}
}

// lookLater is the key of a context whose owner has a set under way, under
// puller.headLock: what is not where it was cannot be looked for before that is over,
// so the error is errMoved.
type lookLater struct{}

// whereabouts is where the backend has the missing content of an inode, and of
// which state that is.
type whereabouts struct {
	at      providers.Locator
	version providers.Version
	gen     uint64
	ok      bool
}

func (v *Volume) whereabouts(x table.Ino) whereabouts {
	locked := v.lock()
	defer locked.unlock()
	return locked.whereaboutsOf(x)
}

// whereaboutsOf is whereabouts under the lock.
func (v *View) whereaboutsOf(x table.Ino) (o whereabouts) {
	if n := v.table.Inode(x); n != nil {
		o.gen = tree.MissingVersion(n)
	}
	o.at, o.version, o.ok = v.OriginAt(x)
	return o
}

// fetchSlot waits until not too many read at once.
func (v *Volume) fetchSlot(ctx context.Context) (release func(), err error) {
	select {
	case v.puller.slots <- struct{}{}:
		return func() { <-v.puller.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetchRange reads a range, again when it breaks off. Where it is read is asked
// anew each time: a rename of ours may be on its way.
func (v *Volume) fetchRange(w *waiting, x table.Ino, oi *openInode, off, n int64, to io.WriterAt) error {
	var last providers.Locator
	var got reach
	return v.retryRead(w, func(ctx context.Context) error {
		for {
			locked := v.lock()
			o, outdated := locked.whereaboutsOf(x), oi != nil && oi.outdated(locked.table.Inode(x))
			locked.unlock()
			switch {
			case outdated:
				return errOutdated
			case !o.ok:
				return errMoved
			}
			at := o.at
			got.again()
			opts := providers.ReadOptions{Offset: off, Length: n, Version: o.version}
			err := v.readRange(w, x, at, opts, func(n int) { progressed(w, &got, n) }, to)
			if !isElsewhere(err) {
				return err
			}
			switch {
			case w.later:
				return fmt.Errorf("%w: %w", errMoved, err)
			case v.waitForPlace(w, x): // a rename of ours was on its way
				if w.Err() != nil {
					return err
				}
			case at == last:
				return fmt.Errorf("%w: %w", errMoved, err)
			default:
				last = at
			}
		}
	})
}

// isElsewhere reports whether an error says that a version is not at a place any
// more: something else is, or there is no such place.
func isElsewhere(err error) bool {
	return errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrIsDir) || notThere(err)
}

// readRange writes one range to its place.
func (v *Volume) readRange(w *waiting, x table.Ino, at providers.Locator, o providers.ReadOptions, got func(n int), to io.WriterAt) error {
	began, asked := time.Now(), v.remoteAttrGen(x, at)
	c, err := v.p.Read(w, at, o)
	if err != nil {
		return err
	}
	v.tookRead(time.Since(began))
	defer c.Body.Close()
	if err := v.attrsFetched(x, at, asked, c.Info); err != nil && !errors.Is(err, errOvertaken) {
		return err
	}
	// One byte more than asked for, so that too much is seen too.
	body := io.LimitReader(&progress{got, c.Body}, o.Length+1)
	here := &localWriter{to: io.NewOffsetWriter(to, o.Offset)}
	n, err := pour(here, body, o.Length)
	var errno syscall.Errno
	if errors.As(here.err, &errno) { // the backend has not failed, and asking it again makes no room
		return fmt.Errorf("content cannot be kept: %w", here.err)
	}
	if err == nil && n != o.Length {
		err = fmt.Errorf("%d bytes at %d came instead of %d: %w", n, o.Offset, o.Length, providers.ErrCorrupt)
	}
	return providers.Fail(v.o.Provider, providers.MethodRead, at, err, providers.ErrUnavailable)
}

// localWriter keeps an error of the disk here apart from those of what is read.
type localWriter struct {
	to  io.Writer
	err error
}

func (w *localWriter) Write(b []byte) (n int, err error) {
	n, err = w.to.Write(b)
	w.err = err
	return n, err
}

// pieces are what content is carried in: of 32 KiB, as io.Copy has them, a fast
// backend would need too many system calls.
var pieces = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// pour copies all of from, about size bytes, in pieces that are as full as can
// be.
func pour(to io.Writer, from io.Reader, size int64) (n int64, err error) {
	if size < 32<<10 {
		return io.Copy(to, from)
	}
	piece := pieces.Get().(*[256 << 10]byte)
	defer pieces.Put(piece)
	for err == nil {
		got := 0
		for got < len(piece) && err == nil {
			var more int
			more, err = from.Read(piece[got:])
			got += more
		}
		if _, werr := to.Write(piece[:got]); werr != nil {
			return n, werr
		}
		n += int64(got)
	}
	if err == io.EOF { // and no other: one with a cause is no end
		err = nil
	}
	return n, err
}

// progressed tells whoever waits of something that came.
func progressed(w *waiting, got *reach, n int) {
	if got.by(n) {
		w.moved()
	}
}

// progress tells of every read that brought something.
type progress struct {
	got func(n int)
	r   io.Reader
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.got(n)
	}
	return n, err
}

// moved looks at what the backend has where an inode's version was. Elsewhere
// says that a change of ours was under way: it has the same at another place by
// now. fs.ErrStale sends the kernel to look the name up again; an inode for
// which that was said already, and that is as it was then, keeps its version, of
// which some is nowhere any more. It is not said for what is fetched ahead, of which nobody hears.
func (v *Volume) moved(ctx context.Context, x table.Ino, oi *openInode, was whereabouts, cause error) (elsewhere bool, err error) {
	for unsettled := true; unsettled; {
		for _, l := range v.remoteLinksOf(x) {
			if err := v.revalidate(ctx, l, false); err != nil {
				return false, translate(err)
			}
		}
		switch now := v.whereabouts(x); {
		case now.ok && now.gen != was.gen:
			return false, errOutdated
		case now.ok && now != was:
			return true, fmt.Errorf("%w: %v", fs.ErrUnavailable, cause) // it must not count as a conflict
		}
		// While a change of ours is under way there, or meets the other's, the name
		// is left alone.
		unsettled = v.waitForPlace(ctx, x) && ctx.Err() == nil
	}
	locked := v.lock()
	defer locked.unlock()
	kind := fs.ErrUnavailable
	if !oi.isUnasked() && locked.tellStale(x) {
		kind = fs.ErrStale
	}
	if _, _, there := locked.OriginAt(x); !there {
		kind = fmt.Errorf("%w: %w", kind, errPartial)
	}
	return false, fmt.Errorf("%w: %v", kind, cause) // as above
}

// toldStale is the state of an inode of which somebody was sent back to its name.
type toldStale struct {
	whereabouts
	named bool
}

// tellStale reports whether whoever opens an inode is to be sent back to its name, which
// leads elsewhere now: once, as long as nothing becomes of it. A file that a sandbox has
// bind-mounted leads to the old inode however often it is looked up.
func (v *View) tellStale(x table.Ino) bool {
	told, n := v.pulls.told, v.table.Inode(x)
	state := toldStale{v.whereaboutsOf(x), n != nil && len(n.Links) > 0}
	if before, was := told[x]; was && before == state {
		return false
	}
	if len(told) > 4096 {
		for ino := range told {
			if v.table.Inode(ino) == nil {
				delete(told, ino)
			}
		}
	}
	told[x] = state
	return true
}

// maxTarget is the longest target of a symbolic link that Linux takes.
const maxTarget = 4095

// fetchTarget brings the target of a symbolic link here.
func (v *Volume) fetchTarget(op *fs.Op, x table.Ino) error {
	w := v.wait(op, v.o.Patience/2)
	defer w.close()
	was := v.whereabouts(x)
	if !was.ok {
		return fs.ErrStale
	}
	var target []byte
	err := w.cause(v.retryRead(w, func(ctx context.Context) (err error) {
		target, _, err = providers.Fetch(ctx, v.p, was.at, providers.ReadOptions{Version: was.version, Length: maxTarget + 1})
		return err
	}))
	switch {
	case isElsewhere(err):
		elsewhere, err := v.moved(w, x, nil, was, err)
		if elsewhere {
			return fs.ErrStale // the kernel comes again
		}
		return err
	case err != nil:
		return translate(err)
	case len(target) == 0 || len(target) > maxTarget:
		return fmt.Errorf("%s: a link with a target of %d bytes: %w", was.at, len(target), providers.ErrCorrupt)
	}
	return v.update(func(v *Tx) error {
		if n := v.table.Edit(x); n != nil && n.Target == "" {
			n.Target, n.Size = string(target), int64(len(target))
		}
		return nil
	})
}
