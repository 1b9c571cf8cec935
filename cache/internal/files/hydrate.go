package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// maxFetches is how many ranges are read at once: the budget bounds their bytes.
const maxFetches = 64

// readerPause is the longest pause between two tries of a read, so that it has its
// content soon after the remote is back.
const readerPause = time.Second

// ErrOutdated says that an inode has another content version than the requested one.
var ErrOutdated = errors.New("the inode has another content version by now")

// Remote is the remote as a Hydrator uses it.
type Remote interface {
	// Read asks for content of an inode at a place. ErrVersionGone says that there is no
	// file at that place any more.
	Read(ctx context.Context, x table.Ino, at providers.Locator, o providers.ReadOptions) (providers.Content, error)
	// Patiently runs do with a context that ends when there was no progress for too long,
	// and then returns that in place of do's error.
	Patiently(ctx context.Context, do func(ctx context.Context, moved func()) error) error
	// Retry runs do until it succeeds or fails for good, with pauses of at most so long.
	// After an error that may pass, hope says whether another try is worth while.
	Retry(ctx context.Context, most time.Duration, hope func(error) bool, do func(ctx context.Context) error) error
}

// HydratorOptions are a Hydrator's settings and dependencies.
type HydratorOptions struct {
	Tree     *tree.Tree
	Remote   Remote
	Names    Revalidator
	Now      func() time.Time
	Patience time.Duration // for a remote that refuses all reads
	Provider string        // in errors
}

// Hydrator fetches content that is not local. A fetch asks the remote and nothing else: it
// neither looks at names nor waits for an operation of ours. When a version is not where it
// was known to be, the caller has to find out why (Follow).
type Hydrator struct {
	o       HydratorOptions
	slots   chan struct{} // fetches under way
	breaker *ReadBreaker
}

// NewHydrator makes one that has fetched nothing.
func NewHydrator(o HydratorOptions) *Hydrator {
	return &Hydrator{o, make(chan struct{}, maxFetches), NewReadBreaker(o.Now, o.Patience)}
}

// Whereabouts is where the remote has the missing content of an inode, and its content version.
type Whereabouts struct {
	At             providers.Locator
	Version        providers.Version
	ContentVersion uint64
	Known          bool // else the remote does not have it
}

// WhereaboutsOf is where the remote is known to have the missing content of an inode.
func WhereaboutsOf(v *tree.View, x table.Ino) (w Whereabouts) {
	if n := v.Inode(x); n != nil {
		w.ContentVersion = tree.MissingVersion(n)
	}
	w.At, w.Version, w.Known = v.OriginAt(x)
	return w
}

// Whereabouts is WhereaboutsOf for callers without the lock.
func (h *Hydrator) Whereabouts(x table.Ino) Whereabouts {
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	return WhereaboutsOf(v, x)
}

// Source gives the missing blocks of a content version of an inode.
func (h *Hydrator) Source(x table.Ino, version uint64) content.Source {
	return func(ctx context.Context, off, n int64, to io.WriterAt) error {
		return h.Fetch(ctx, x, version, off, n, to)
	}
}

// Fetch writes [off, off+n) of a content version of an inode, and of no other, so that
// ranges fetched apart belong together: ErrOutdated says that the inode has another version
// by now, ErrVersionGone that the version is not where it was known to be.
func (h *Hydrator) Fetch(ctx context.Context, x table.Ino, version uint64, off, n int64, to io.WriterAt) error {
	return h.o.Remote.Patiently(ctx, func(ctx context.Context, moved func()) error {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
		got := reach{moved: moved}
		return h.read(ctx, x, version, func(ctx context.Context, was Whereabouts) error {
			got.now = 0
			return h.readRange(ctx, x, was, providers.ReadOptions{Offset: off, Length: n, Version: was.Version}, &got, to)
		})
	})
}

// Ask runs do with the place at which the remote has a content version of an inode, until
// the remote has answered it. Its errors are those of Fetch.
func (h *Hydrator) Ask(ctx context.Context, x table.Ino, version uint64, do func(ctx context.Context, was Whereabouts) error) error {
	return h.o.Remote.Patiently(ctx, func(ctx context.Context, _ func()) error { return h.read(ctx, x, version, do) })
}

// read is Ask, tried again as long as the breaker allows.
func (h *Hydrator) read(ctx context.Context, x table.Ino, version uint64, do func(context.Context, Whereabouts) error) error {
	began, asked, refused := h.o.Now(), false, false
	hope := func(error) bool {
		refused = true
		return h.breaker.Refused(began)
	}
	err := h.o.Remote.Retry(ctx, readerPause, hope, func(ctx context.Context) error {
		refused = false
		return h.tryRead(ctx, x, version, func(ctx context.Context, was Whereabouts) error {
			asked = true
			return do(ctx, was)
		})
	})
	if asked && !refused && (err == nil || ctx.Err() == nil) { // a canceled read says nothing of the remote
		h.breaker.Answered()
	}
	return err
}

// tryRead runs do once for each place that the version turns out to be at: a rename of ours
// may have ended meanwhile.
func (h *Hydrator) tryRead(ctx context.Context, x table.Ino, version uint64, do func(context.Context, Whereabouts) error) error {
	for {
		was := h.Whereabouts(x)
		switch {
		case was.ContentVersion != version:
			return ErrOutdated
		case !was.Known:
			return &GoneError{Ino: x, Was: was}
		}
		err := do(ctx, was)
		switch {
		case !IsElsewhere(err) && !errors.Is(err, ErrVersionGone):
			return err
		case h.Whereabouts(x) == was:
			return &GoneError{x, was, err}
		}
	}
}

// readRange writes one range to its place.
func (h *Hydrator) readRange(ctx context.Context, x table.Ino, was Whereabouts, o providers.ReadOptions, got *reach, to io.WriterAt) error {
	c, err := h.o.Remote.Read(ctx, x, was.At, o)
	if err != nil {
		return err
	}
	defer c.Body.Close()
	got.from = io.LimitReader(c.Body, o.Length+1) // one byte more, so that excess bytes are noticed
	local := &localWriter{to: io.NewOffsetWriter(to, o.Offset)}
	n, err := Copy(local, got, o.Length)
	var errno syscall.Errno
	if errors.As(local.err, &errno) { // the remote has not failed, and asking it again makes no room
		return fmt.Errorf("content cannot be kept: %w", local.err)
	}
	if err == nil && n != o.Length {
		err = fmt.Errorf("%d bytes at %d came instead of %d: %w", n, o.Offset, o.Length, providers.ErrCorrupt)
	}
	return providers.Fail(h.o.Provider, providers.MethodRead, was.At, err, providers.ErrUnavailable)
}

// reach reads the bytes of one range, in several attempts. Only bytes further than any
// attempt before count as progress: a service that breaks off at the same place each time
// does not prolong the wait.
type reach struct {
	from      io.Reader
	now, best int
	moved     func()
}

func (r *reach) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if r.now += n; r.now > r.best {
		r.best = r.now
		r.moved()
	}
	return n, err
}

// localWriter keeps an error of the disk apart from errors of the reader.
type localWriter struct {
	to  io.Writer
	err error
}

func (w *localWriter) Write(b []byte) (n int, err error) {
	n, err = w.to.Write(b)
	w.err = err
	return n, err
}
