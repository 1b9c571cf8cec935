package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// enqueue puts a job at the end of the queue and keeps its inode until it is
// done. v.mu is held.
func (v *Volume) enqueue(verb verb, ino fs.Ino, n *node, paths ...providers.Locator) {
	v.enqueueJob(&job{verb: verb, ino: ino, paths: paths}, n)
}

func (v *Volume) enqueueJob(j *job, n *node) {
	n.pins++
	v.table.save(j.ino, n)
	j.sendable, j.named = v.sendable(n), n.named
	v.queue.add(j)
}

// enqueueSend has the content of an inode sent in the background, unless that
// is going to happen. v.mu is held.
func (v *Volume) enqueueSend(ino fs.Ino, n *node) {
	paths := v.locators(ino, n)
	if n.queued || len(paths) == 0 || !v.sendable(n) {
		return
	}
	n.queued = true
	v.enqueue(verbSend, ino, n, paths...)
}

// run is the worker: it does one job after the other until the volume ends.
func (v *Volume) run() {
	defer v.work.Done()
	for {
		j := v.queue.next(v.ctx)
		if j == nil {
			return
		}
		err := v.retry(v.ctx, func(ctx context.Context) error {
			err := v.do(ctx, j)
			j.unsure = j.unsure || err != nil && maybe(err)
			return err
		})
		if v.ctx.Err() != nil {
			return // the job stays undone
		}
		if err != nil {
			v.failed(j, err)
		}
		v.unpin(j)
		v.queue.finish(j)
	}
}

// unpin lets go of a job's inodes.
func (v *Volume) unpin(j *job) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, ino := range []fs.Ino{j.ino, j.other} {
		if n := v.table.node(ino); n != nil {
			n.pins--
			v.table.save(ino, n)
			v.reap(ino)
		}
	}
}

// do makes one attempt at a job.
func (v *Volume) do(ctx context.Context, j *job) error {
	switch j.verb {
	case verbSend:
		return v.doSend(ctx, j)
	case verbMkdir:
		return v.doMkdir(ctx, j)
	case verbDelete, verbRmdir:
		return v.doDelete(ctx, j.paths[0])
	case verbRename:
		return v.doRename(ctx, j, j.paths[0], j.paths[1])
	case verbExchange:
		return v.doExchange(ctx, j, j.paths[0], j.paths[1])
	case verbLink:
		return v.doLink(ctx, j, j.paths[0], j.paths[1])
	case verbAttr:
		return v.doAttr(ctx, j)
	}
	return fmt.Errorf("no such job: %v", j.verb)
}

func (v *Volume) doSend(ctx context.Context, j *job) error {
	v.mu.Lock()
	n := v.table.node(j.ino)
	if n != nil {
		n.queued = false // what changes from here on needs another job
		v.table.save(j.ino, n)
	}
	needed := n != nil && n.dirty() && (n.present || n.isSymlink())
	v.mu.Unlock()
	if !needed {
		return nil
	}
	return v.sendAll(ctx, j.ino, j.paths, j.named)
}

func (v *Volume) doMkdir(ctx context.Context, j *job) error {
	l := j.paths[0]
	v.mu.Lock()
	n := v.table.node(j.ino)
	attr := v.attrOf(n)
	v.mu.Unlock()
	_, err := v.p.Mkdir(ctx, l, providers.MkdirOptions{Attr: attr})
	if errors.Is(err, providers.ErrUnsupported) && !v.caps.EmptyDirs {
		err = nil // it will be there as soon as something is in it
	}
	if err == nil {
		v.know(l, known{kind: providers.KindDir, ino: j.ino})
	}
	return err
}

// know sets what the backend has at l.
func (v *Volume) know(l providers.Locator, k known) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base.put(l, k)
}

// known is what the backend has at l, once no attempt is open there.
func (v *Volume) known(ctx context.Context, l providers.Locator) (known, bool, error) {
	if err := v.settle(ctx, l); err != nil {
		return known{}, false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.base.get(l); k != nil {
		return *k, true, nil
	}
	return known{}, false, nil
}

// condition is that what is known is still there.
func (k known) condition() providers.Condition {
	if k.kind == providers.KindDir {
		return providers.IfDir()
	}
	return providers.IfVersion(k.version)
}

// doDelete removes what is known at l. What is gone is what we want.
func (v *Volume) doDelete(ctx context.Context, l providers.Locator) error {
	k, ok, err := v.known(ctx, l)
	if !ok || err != nil {
		return err
	}
	err = v.p.Delete(ctx, l, providers.DeleteOptions{If: k.condition()})
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base.remove(l)
	return nil
}

// doLink gives content that the backend has a further name. What it does not
// have yet goes to both names when it is sent.
func (v *Volume) doLink(ctx context.Context, j *job, from, to providers.Locator) error {
	k, ok, err := v.known(ctx, from)
	if !ok || err != nil || k.ino != j.ino {
		return err
	}
	info, err := v.copy(ctx, from, to, k.version, providers.IfAbsent())
	if errors.Is(err, providers.ErrExist) {
		info, err = v.sameEntry(ctx, from, to, k.version, err)
	}
	if err != nil {
		return err
	}
	v.know(to, known{kind: k.kind, version: info.Version, ino: j.ino, gen: k.gen})
	v.sent(j.ino, j.paths, j.named)
	return nil
}

// doAttr sends attributes to every name that the backend has.
func (v *Volume) doAttr(ctx context.Context, j *job) error {
	setter, ok := providers.As[providers.AttrSetter](v.p)
	if !ok {
		return nil
	}
	for _, l := range j.paths {
		k, ok, err := v.known(ctx, l)
		if err != nil {
			return err
		}
		v.mu.Lock()
		n := v.table.node(j.ino)
		attr := v.attrOf(n)
		v.mu.Unlock()
		if !ok || k.ino != j.ino {
			continue
		}
		info, err := setter.SetAttr(ctx, l, providers.SetAttrOptions{If: k.condition(), Attr: attr})
		if errors.Is(err, providers.ErrConflict) && j.unsure {
			info, err = v.attrArrived(ctx, l, k, attr, err)
		}
		if err != nil {
			return err
		}
		k.version = info.Version
		v.know(l, k)
	}
	return nil
}

// attrArrived decides whether an attempt that was not answered did change the
// attributes: then the content is what it was and the attributes are ours.
func (v *Volume) attrArrived(ctx context.Context, l providers.Locator, k known, attr providers.Attr, lost error) (providers.Info, error) {
	info, err := v.p.Stat(ctx, l)
	if err != nil {
		return info, err
	}
	got := info.Attr
	same := info.Version.ETag == k.version.ETag && info.Version.Size == k.version.Size &&
		(!attr.Valid.Has(providers.AttrMode) || got.Mode == attr.Mode) &&
		(!attr.Valid.Has(providers.AttrOwner) || got.UID == attr.UID && got.GID == attr.GID) &&
		(!attr.Valid.Has(providers.AttrModTime) || got.ModTime.Equal(attr.ModTime))
	if !same {
		return info, lost
	}
	return info, nil
}
