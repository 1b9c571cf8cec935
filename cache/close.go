package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/fs"
)

// settled returns when the backend has every change of names and attributes
// that was made before.
func (v *Volume) settled(op *fs.Op) error {
	w := v.wait(op, v.o.Patience)
	defer w.close()
	return translate(w.cause(v.queue.wait(w, v.queue.mark())))
}

// Close implements fs.Closer: it sends what is unsaved, for as long as
// Options.Patience each time that nothing moves, and frees the volume. It
// fails when something is not at the backend, with an error per file; the
// content files of those stay in the state directory. Only the first Close
// does anything.
func (v *Volume) Close() error {
	v.mu.Lock()
	done := v.closed
	v.mu.Unlock()
	if done {
		return nil
	}
	err := v.flush()
	v.stop()
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.work.Wait()
	v.clean()
	if err != nil {
		err = fmt.Errorf("cache: close: %w", err)
	}
	return errors.Join(err, v.store.close())
}

// flush sends what is unsaved.
func (v *Volume) flush() error {
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	var errs []error
	for _, ino := range v.dirty() {
		err := v.commit(nil, ino)
		if path, named := v.Path(ino); err != nil && named {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		w.moved()
	}
	for left := v.queue.length(); left > 0; left = v.queue.length() {
		if err := v.queue.wait(w, v.queue.first()); err != nil {
			errs = append(errs, fmt.Errorf("%d changes of names are not at the backend: %w", left, context.Cause(w)))
			break
		}
		w.moved()
	}
	return errors.Join(errs...)
}

// dirty lists the inodes whose content is not at the backend.
func (v *Volume) dirty() []fs.Ino {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []fs.Ino
	for ino := range v.unsaved {
		if n := v.table.node(ino); n != nil && n.dirty() && v.sendable(n) {
			all = append(all, ino)
		}
	}
	return all
}

// clean removes all content files but those that are the only copy.
func (v *Volume) clean() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.files {
		c.f.Close()
	}
	v.store.each(func(ino fs.Ino) {
		if n := v.table.node(ino); n == nil || !n.dirty() {
			v.store.remove(ino)
		}
	})
}
