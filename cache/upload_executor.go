package cache

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// uploading adapts a volume for its uploads. The methods that ask the remote about names and
// content are in merge.go.
type uploading struct{ v *Volume }

var _ interface {
	upload.Volume
	upload.Names
	upload.Content
	upload.Host
	upload.Judge
	upload.Guard
	upload.Monitor
} = uploading{}

// Update implements upload.Volume.
func (u uploading) Update(do func(upload.Tx) error) error {
	return u.v.updateOwn(func(v *Tx) error { return do(uploadTx(v)) })
}

// Retry implements upload.Volume.
func (u uploading) Retry(ctx context.Context, do func(ctx context.Context) error) error {
	return u.v.waits.Retry(ctx, do)
}

// Report implements upload.Volume.
func (u uploading) Report(op, path string, err error) { u.v.chores.Report(op, path, err) }

// List implements upload.Names.
func (u uploading) List(dir table.Ino) error { return u.v.listings.Load(nil, dir) }

// FetchTarget implements upload.Names.
func (u uploading) FetchTarget(ctx context.Context, ino table.Ino) error {
	return u.v.fetchTarget(ctx, ino)
}

// Open implements upload.Content.
func (u uploading) Open(ino table.Ino) (*files.OpenInode, error) {
	oi, err := u.v.openContent(ino, files.ForUs)
	if errors.Is(err, fs.ErrStale) && u.v.gone(ino) {
		err = upload.ErrMoot // it was removed just now
	}
	return oi, err
}

// Release implements upload.Content.
func (u uploading) Release(oi *files.OpenInode) { u.v.opener.Release(oi) }

// Renamed implements upload.Content.
func (u uploading) Renamed(_ *tree.View, ino table.Ino, was, now string) {
	u.v.store.Renamed(ino, was, now)
}

// Go implements upload.Host.
func (u uploading) Go(f func()) { u.v.work.Go(f) }

// Pause implements upload.Host.
func (u uploading) Pause(ctx context.Context, d time.Duration) { _ = u.v.pause(ctx, d) }

// Patiently implements upload.Host.
func (u uploading) Patiently(do func(ctx context.Context, moved func()) error) error {
	w := u.v.waits.For(nil, u.v.o.Patience)
	defer w.Close()
	return w.Cause(do(w, w.Moved))
}

// Abandon implements upload.Host.
func (u uploading) Abandon(dirs []table.Ino) { u.v.abandon(dirs...) }

// MayBegin implements upload.Judge.
func (u uploading) MayBegin(at *tree.View) bool { return u.v.held.Of(at).mayBegin() }

// Requested implements upload.Guard.
func (u uploading) Requested(at *tree.View) { u.v.held.Of(at).deletions.recheckAll() }

// Halted implements upload.Guard.
func (u uploading) Halted(at *tree.View) error { return u.v.held.Of(at).deletions.err }

// PreconditionFailed implements upload.Judge.
func (u uploading) PreconditionFailed(ctx context.Context, l table.Link, cause error) error {
	return u.v.merger.PreconditionFailed(ctx, l, cause)
}

// Refused implements upload.Judge.
func (u uploading) Refused(t *upload.Job) { u.v.holds.Record(t) }

// Advanced implements upload.Monitor.
func (u uploading) Advanced(at *tree.View) { u.v.doing.advanced(at, u.v.pending) }

// Moving implements upload.Monitor: while bytes move no caller gives up for want of patience. It
// informs the waiters at most once in an interval.
func (u uploading) Moving() {
	v := u.v
	if !v.doing.isNews(min(time.Second, v.o.Patience/8)) {
		return
	}
	v.doing.alive()
	locked := v.lock()
	defer locked.unlock()
	v.doing.advanced(locked.View, v.pending)
}

// wait is upload.CommitterOptions.Wait.
func (u uploading) wait(w *pending.Waiter) error { return u.v.sent.Late(u.v.sent.For(nil, w)) }

// Ended implements upload.Monitor.
func (u uploading) Ended(_ *tree.View, err error) { u.v.chores.Note(chores.Upload, err) }

// uploadTx is a transaction that records the outcome of an operation.
func uploadTx(v *Tx) upload.Tx { return upload.Tx{Tx: v.Tx, Rest: uploadRest{v}} }

// uploadRest implements upload.Rest: the effects of such a transaction on the volume.
type uploadRest struct{ v *Tx }

// Sending implements upload.Rest.
func (r uploadRest) Sending(ino table.Ino, a *table.Attempt) {
	if a.Kind == upload.AttemptWrite || a.Kind == upload.AttemptSet {
		r.v.notes.Sent(ino, a.ContentVersion)
	}
}

// Resurrected implements upload.Rest.
func (r uploadRest) Resurrected(l table.Link, dir table.Ino) {
	v := r.v
	v.local.SetLocal(l, dir)
	v.notes.Made(l, dir, history.WhyRevived)
	v.local.TellEntry(l)
}

// Succeeded implements upload.Rest, after dir took the place of old: orphaned files that lost a
// name in old have it in dir, and changes seen in old during listings count for dir.
func (r uploadRest) Succeeded(old, dir table.Ino) {
	v := r.v
	v.Succeed(old, dir)
	for _, x := range append(merge.OrphanConflicts(v.Tx.View), v.open.Inos(v.Tx.View)...) {
		if n := v.Inode(x); n != nil && n.LostName != nil && n.LostName.Dir == old {
			v.Edit(x).LostName.Dir = dir
		}
	}
}

// Wake implements upload.Rest.
func (r uploadRest) Wake() { r.v.wakes = true }

// HydrateBeforeDelete implements upload.Content. It fetches the whole content of a file that lost
// its name while a program still reads it, before the remote loses it too. It is called before a
// change at the remote of the entry with the name l.
func (u uploading) HydrateBeforeDelete(ctx context.Context, l table.Link) error {
	v := u.v
	locked := v.lock()
	rec, _ := locked.Name(l.Dir, l.Name)
	nameless := false
	if b := rec.Remote; b != nil && b.Ino != rec.Ino {
		n := locked.Inode(b.Ino)
		nameless = n != nil && len(n.Links) == 0 && len(n.RemoteLinks) < 2
	}
	locked.unlock()
	if !nameless {
		return nil
	}
	return v.hydrateNameless(ctx, rec.Remote.Ino, l.Name, func(do func() error) error { return v.hydrator.Follow(ctx, do) })
}

// hydrateNameless fetches all content of a file without a local name that a program has open, by a
// call of fetching. Content that is gone on the remote is no error; content that may come later
// is.
func (v *Volume) hydrateNameless(ctx context.Context, x table.Ino, name string, fetching func(func() error) error) error {
	oi := v.opener.IfOpen(x)
	if oi == nil {
		return nil
	}
	defer v.opener.Release(oi)
	locked := v.lock()
	f := oi.Content()
	locked.unlock()
	if f == nil || f.Whole() {
		return nil
	}
	err := fetching(func() error { return f.FetchAll(ctx) })
	isGone := errors.Is(err, files.ErrVersionGone)
	if err != nil && (ctx.Err() != nil || errors.Is(err, fs.ErrUnavailable) && !isGone) {
		return err
	}
	if err != nil {
		v.o.Log.Warn("a file that was removed while it is read cannot be read to its end", "name", name, "err", err)
	}
	return nil
}
