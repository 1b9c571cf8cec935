package cache

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// begin starts a transfer of an inode's content or, of a directory, a listing:
// when nothing that was queued before (with all) or that touches its names is
// still to be done. Then the names that the inode has here are its names at
// the backend.
func (v *Volume) begin(ctx context.Context, ino fs.Ino, all bool) (*transfer, error) {
	var after uint64
	if all {
		after = v.queue.mark()
	}
	for {
		v.mu.Lock()
		n := v.table.node(ino)
		if n == nil {
			v.mu.Unlock()
			return nil, fs.ErrStale
		}
		t := &transfer{paths: v.locators(ino, n), list: n.isDir(), named: n.named}
		busy := v.queue.try(t, after)
		v.mu.Unlock()
		if busy == nil {
			return t, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// load makes sure that the entries of a directory are here, and returns with
// v.mu locked if there is no error.
func (v *Volume) load(op *fs.Op, dir fs.Ino) error {
	for {
		v.mu.Lock()
		n := v.table.node(dir)
		switch {
		case n == nil:
			v.mu.Unlock()
			return fs.ErrStale
		case !n.isDir():
			v.mu.Unlock()
			return syscall.ENOTDIR
		case n.loaded:
			return nil
		}
		v.mu.Unlock()
		if err := v.share(op, dir, func(w *waiting) error { return v.list(w, dir) }); err != nil {
			return err
		}
	}
}

// list fetches the entries of a directory. One that fails half way leaves
// nothing.
func (v *Volume) list(w *waiting, dir fs.Ino) error {
	t, err := v.begin(w, dir, false)
	if err != nil {
		return err
	}
	defer t.end()
	if len(t.paths) == 0 {
		return fs.ErrStale // it was removed
	}
	var entries []providers.Info
	err = v.retry(w, func(ctx context.Context) error {
		entries = nil
		for info, err := range providers.All(ctx, v.p, t.paths[0], providers.ListOptions{}) {
			if err != nil {
				return err
			}
			w.moved()
			entries = append(entries, info)
		}
		return nil
	})
	if errors.Is(err, providers.ErrNotExist) && t.paths[0].IsRoot() {
		err = nil // the root of an empty bucket
	}
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fill(dir, entries)
	return nil
}

// fill adds what was listed. v.mu is held.
func (v *Volume) fill(dir fs.Ino, entries []providers.Info) {
	n := v.table.node(dir)
	if n == nil || n.loaded {
		return
	}
	for _, info := range entries {
		if _, there := v.table.entry(dir, info.Locator.Name()); there {
			v.o.Log.Warn("two entries of one name; the later is hidden", "path", info.Locator)
			continue
		}
		v.add(dir, n, info)
	}
	n.loaded = true
	v.table.save(dir, n)
}

// add gives an entry of the backend an inode. v.mu is held.
func (v *Volume) add(dir fs.Ino, parent *node, info providers.Info) fs.Ino {
	name := info.Locator.Name()
	ino, n := v.table.alloc(), v.nodeOf(info)
	n.links = []link{{dir, name}}
	if n.isDir() {
		parent.subdirs++
	}
	v.table.save(ino, n)
	v.table.setEntry(dir, name, ino)
	v.base.put(info.Locator, known{kind: info.Kind, version: info.Version, ino: ino, gen: n.gen})
	return ino
}

// revive shows what the backend has under a name now, after we were wrong
// about it: the name gets a new inode, unless it was given to something else
// here meanwhile. old is the inode that may lose the name; 0 for none.
func (v *Volume) revive(ctx context.Context, l providers.Locator, old fs.Ino) error {
	info, err := v.p.Stat(ctx, l)
	gone := errors.Is(err, providers.ErrNotExist)
	if err != nil && !gone {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dir, parent := v.find(l.Parent())
	if parent == nil || !parent.loaded {
		return nil
	}
	e, taken := v.table.entry(dir, l.Name())
	switch {
	case taken && e.ino != old:
		return nil
	case taken:
		v.cut(dir, parent, e)
	}
	if gone {
		v.base.remove(l)
		v.table.dropEntry(dir, l.Name())
	} else {
		v.add(dir, parent, info)
	}
	parent.modified(v.now())
	v.table.save(dir, parent)
	if v.notify != nil {
		v.notify.EntryChanged(dir, l.Name())
	}
	return nil
}

// cut takes a name from its inode. The entry stays, for the caller to drop or
// to give to another. v.mu is held.
func (v *Volume) cut(dir fs.Ino, parent *node, e dirent) {
	n := v.table.node(e.ino)
	n.unlink(link{dir, e.name})
	n.changed(v.now())
	if n.isDir() {
		parent.subdirs--
	}
	v.mark(e.ino, n)
	v.table.save(e.ino, n)
	v.reap(e.ino)
}

// find is the directory at a path, as far as it is loaded. v.mu is held.
func (v *Volume) find(l providers.Locator) (fs.Ino, *node) {
	ino := fs.RootIno
	for _, name := range l.Parts() {
		e, ok := v.table.entry(ino, name)
		if !ok {
			return 0, nil
		}
		ino = e.ino
	}
	if n := v.table.node(ino); n.isDir() {
		return ino, n
	}
	return 0, nil
}
