package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// errVersionGone says that the remote does not have a version where it was known to be.
var errVersionGone = errors.New("the listed version is gone")

// goneError is errVersionGone of the content of an inode. Its cause does not say what
// kind of error it is: a version that is elsewhere is no conflict.
type goneError struct {
	ino   table.Ino
	was   whereabouts // where it was looked for
	cause error       // nil: it was known to be nowhere
}

func (e *goneError) Error() string {
	if e.cause == nil {
		return errVersionGone.Error()
	}
	return fmt.Sprintf("%v: %v", errVersionGone, e.cause)
}

func (e *goneError) Is(target error) bool { return target == errVersionGone }

// source gives bytes of content that is not local.
type source interface {
	// Fetch writes [off, off+n) of a content version of an inode, and of no other, so that
	// ranges fetched apart belong together: errOutdated says that the inode has another
	// one by now. It asks the remote and nothing else. It neither looks at names nor waits
	// for an operation of ours: errVersionGone says that the version is not where it was
	// known to be, which the caller may look into (Volume.fetching).
	Fetch(ctx context.Context, x table.Ino, version uint64, off, n int64, to io.WriterAt) error
}

// maxFetches is how many ranges a volume reads at once: what they hold is for the
// budget to bound.
const maxFetches = 64

// hydrator fetches content.
type hydrator struct {
	v       *Volume
	slots   chan struct{} // fetches under way
	breaker *files.ReadBreaker
}

var _ source = (*hydrator)(nil)

func newHydrator(v *Volume) *hydrator {
	return &hydrator{v: v, slots: make(chan struct{}, maxFetches), breaker: files.NewReadBreaker(v.o.Now, v.o.Patience/2)}
}

// of gives the missing blocks of a content version of an inode.
func (h *hydrator) of(x table.Ino, version uint64) content.Source {
	return func(ctx context.Context, off, n int64, to io.WriterAt) error {
		return h.Fetch(ctx, x, version, off, n, to)
	}
}

// Fetch implements source.
func (h *hydrator) Fetch(ctx context.Context, x table.Ino, version uint64, off, n int64, to io.WriterAt) error {
	w := h.v.wait(nil, h.v.o.Patience/2)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	release, err := h.slot(w)
	if err != nil {
		return translate(w.cause(err))
	}
	defer release()
	var got reach
	err = h.read(w, x, version, func(was whereabouts) error {
		got.again()
		o := providers.ReadOptions{Offset: off, Length: n, Version: was.version}
		return h.readRange(w, x, was.at, o, func(n int) { progressed(w, &got, n) }, to)
	})
	return translate(w.cause(err))
}

// fetchTarget fetches the target of a symbolic link. Its errors are those of
// [source.Fetch].
func (h *hydrator) fetchTarget(ctx context.Context, x table.Ino) error {
	w := h.v.wait(nil, h.v.o.Patience/2)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	was := h.v.whereabouts(x)
	if !was.ok {
		return fs.ErrStale
	}
	var target []byte
	err := h.read(w, x, was.gen, func(was whereabouts) (err error) {
		target, _, err = providers.Fetch(w, h.v.p, was.at, providers.ReadOptions{Version: was.version, Length: maxTarget + 1})
		return err
	})
	if err != nil {
		return translate(w.cause(err))
	}
	if len(target) == 0 || len(target) > maxTarget {
		return fmt.Errorf("%s: a link with a target of %d bytes: %w", was.at, len(target), providers.ErrCorrupt)
	}
	return h.v.update(func(v *Tx) error {
		if n := v.table.Edit(x); n != nil && n.Target == "" {
			n.Target, n.Size = string(target), int64(len(target))
		}
		return nil
	})
}

// maxTarget is the longest target of a symbolic link that Linux takes.
const maxTarget = 4095

// slot waits until not too many read at once.
func (h *hydrator) slot(ctx context.Context) (release func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readerPause is the longest pause between two tries of a read, so that it has its
// content soon after the remote is back.
const readerPause = time.Second

// read runs do until the remote has answered it, as long as the breaker allows.
func (h *hydrator) read(ctx context.Context, x table.Ino, version uint64, do func(whereabouts) error) error {
	began := h.v.o.Now()
	hope := func(error) bool { return h.breaker.Refused(began) }
	return h.v.retryWhile(ctx, readerPause, hope, func(context.Context) error {
		err := h.tryRead(x, version, do)
		if err == nil || !again(err) {
			h.breaker.Answered()
		}
		return err
	})
}

// tryRead runs do for where the remote has a content version. Where that is it asks anew
// each time: a rename of ours may have ended meanwhile.
func (h *hydrator) tryRead(x table.Ino, version uint64, do func(whereabouts) error) error {
	for {
		was := h.v.whereabouts(x)
		switch {
		case was.gen != version:
			return errOutdated
		case !was.ok:
			return &goneError{ino: x, was: was}
		}
		err := do(was)
		switch {
		case !isElsewhere(err) && !errors.Is(err, errVersionGone):
			return err
		case h.v.whereabouts(x) == was:
			return &goneError{x, was, err}
		}
	}
}

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

// isElsewhere reports whether an error says that a version is not at a place any
// more: something else is, or there is no such place.
func isElsewhere(err error) bool {
	return errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrIsDir) || notThere(err)
}

// readRange writes one range to its place.
func (h *hydrator) readRange(w *waiting, x table.Ino, at providers.Locator, o providers.ReadOptions, got func(n int), to io.WriterAt) error {
	v := h.v
	began, asked := time.Now(), v.remoteAttrGen(x, at)
	c, err := v.p.Read(w, at, o)
	if err != nil {
		return err
	}
	v.prefetch.Took(time.Since(began))
	defer c.Body.Close()
	if err := v.attrsFetched(x, at, asked, c.Info); err != nil && !errors.Is(err, errOvertaken) {
		return err
	}
	// One byte more than asked for, so that too much is seen too.
	body := io.LimitReader(&progress{got, c.Body}, o.Length+1)
	here := &localWriter{to: io.NewOffsetWriter(to, o.Offset)}
	n, err := files.Copy(here, body, o.Length)
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
