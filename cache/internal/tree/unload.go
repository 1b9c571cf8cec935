package tree

import (
	"context"
	"math"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

const (
	unloadAge  = 10 * time.Minute // since a directory was listed
	unloadStep = 256              // names in one transaction
)

// Unloading forgets names that were listed a while ago and are not in use, a directory at a
// time from the leaves up. The next look lists the directory again.
type Unloading struct {
	Tree   *Tree
	Update func(do func(*Tx) error) error // nil: that of Tree, without an observer

	EmptyDirs bool                    // the remote keeps directories without names
	HasOwn    func(*table.Inode) bool // it has data that the remote has not; nil: none has
	Freed     func(table.Ino)         // it had clean content, and is forgotten; called without the lock
}

// Names are forgotten when there are too many of them.
const (
	maxKnown    = 4 << 20 // inodes
	unloadEvery = 10 * time.Minute
)

// Loop forgets names when there are too many, until pause fails.
func (o Unloading) Loop(ctx context.Context, pause func(context.Context, time.Duration) error) {
	counted, given := -1, o.lastIno()
	for pause(ctx, unloadEvery) == nil {
		now := o.lastIno()
		if counted < 0 && now <= maxKnown || counted >= 0 && counted+int(now-given) <= maxKnown {
			continue
		}
		known, dropped, err := o.Run(ctx, maxKnown)
		if err != nil {
			o.Tree.log().Warn("names could not be forgotten", "err", err)
		}
		if dropped > 0 {
			o.Tree.log().Info("forgot names that were not used", "names", dropped, "known", known)
		}
		counted, given = known, now
	}
}

// lastIno is a number above those of all inodes made so far.
func (o Unloading) lastIno() table.Ino {
	defer o.Tree.Unlock()
	return o.Tree.Lock().Alloc()
}

// Run forgets clean and unused names until no more than limit inodes are known, those with
// content last, and gives the number of inodes known then, and of names forgotten.
func (o Unloading) Run(ctx context.Context, limit int) (known, dropped int, err error) {
	if o.Update == nil {
		o.Update = func(do func(*Tx) error) error { return o.Tree.Update(do, nil) }
	}
	count := &unload{Unloading: o, ctx: ctx, limit: math.MaxInt}
	count.walk(table.Root)
	known = count.known
	for _, content := range []bool{false, true} {
		if known <= limit {
			break
		}
		u := &unload{Unloading: o, ctx: ctx, limit: known - limit*4/5, content: content, drops: true}
		u.walk(table.Root)
		known -= u.dropped
		dropped += u.dropped
		if u.err != nil {
			return known, dropped, u.err
		}
	}
	return known, dropped, nil
}

// unload is one walk through the tree.
type unload struct {
	Unloading
	ctx     context.Context
	drops   bool // names, and does not only count them
	limit   int  // of names to forget
	content bool // clean content is no reason to keep a name
	known   int  // names, counted
	dropped int
	err     error
}

// walk goes through a directory, those below first.
func (u *unload) walk(dir table.Ino) {
	after := ""
	for !u.over() {
		subdirs, last, seen := u.children(dir, after)
		for _, sub := range subdirs {
			u.walk(sub)
		}
		u.known += seen
		if last == "" {
			break
		}
		after = last
	}
	if u.drops && !u.over() {
		u.unloadDir(dir)
	}
}

func (u *unload) over() bool { return u.err != nil || u.ctx.Err() != nil || u.dropped >= u.limit }

// children gives the directories among the names after one, the last name looked at (""
// when it was the last of all), and how many names there were.
func (u *unload) children(dir table.Ino, after string) (subdirs []table.Ino, last string, seen int) {
	v := u.Tree.Lock()
	defer u.Tree.Unlock()
	v.Names(dir, after, func(name string, rec table.Name) bool {
		seen++
		if n := v.Inode(rec.Ino); n != nil && n.IsDir() {
			subdirs = append(subdirs, rec.Ino)
		}
		last = name
		return seen < unloadStep
	})
	if seen < unloadStep {
		last = ""
	}
	return subdirs, last, seen
}

// unloadDir forgets the names of a directory, if nothing in it is local only or in use.
func (u *unload) unloadDir(dir table.Ino) {
	if !u.all(dir) {
		return
	}
	u.err = u.Update(func(t *Tx) error {
		if u.may(t.View, dir, true) {
			t.Edit(dir).Loaded = false
		}
		return nil
	})
	for more := true; more && u.err == nil && u.ctx.Err() == nil; {
		dropped := 0
		u.err = u.Update(func(t *Tx) error {
			more, dropped = u.step(t, dir)
			return nil
		})
		if u.err == nil {
			u.dropped += dropped
		}
	}
}

// all reports whether every name of a directory may be forgotten. It looks in steps; unloadDir
// looks again.
func (u *unload) all(dir table.Ino) bool {
	for after, more := "", true; more; {
		step := 0
		v := u.Tree.Lock()
		ok := u.may(v, dir, true)
		v.Names(dir, after, func(name string, rec table.Name) bool {
			after = name
			step++
			ok = ok && u.forgettable(v, rec)
			return ok && step < unloadStep
		})
		u.Tree.Unlock()
		if !ok {
			return false
		}
		more = step == unloadStep
	}
	return true
}

// may reports whether a directory may be made unknown: the kernel has no reference to it, and no
// observation of the remote is under way, which would find less than it left. A directory without
// names is known only locally where the remote keeps no empty directories.
func (u *unload) may(v *View, dir table.Ino, loaded bool) bool {
	n := v.Inode(dir)
	if loaded && !u.EmptyDirs && !v.HasNames(dir) {
		return false
	}
	return n != nil && dir != table.Root && n.Loaded == loaded && len(n.RemoteLinks) == 1 && n.From == "" &&
		v.References(dir) == 0 && !v.IsObserved() &&
		v.guarded.options.Now().Sub(time.Unix(0, n.Listed)) >= unloadAge
}

// step forgets some names of a directory that was made unknown, and reports whether there are
// more.
func (u *unload) step(t *Tx, dir table.Ino) (more bool, dropped int) {
	if !u.may(t.View, dir, false) {
		return false, 0
	}
	t.Names(dir, "", func(name string, rec table.Name) bool {
		if !u.forgettable(t.View, rec) {
			more = false
			return false
		}
		t.writer.SetName(dir, name, table.Name{})
		n := t.Inode(rec.Ino)
		t.Drop(rec.Ino)
		if n.State != table.None {
			t.Later(func() { u.Freed(rec.Ino) })
		}
		dropped++
		more = dropped == unloadStep
		return !more
	})
	return more, dropped
}

// forgettable reports whether the whole record of a name can be had again by listing its
// directory.
func (u *unload) forgettable(v *View, rec table.Name) bool {
	b := rec.Remote
	if rec.Ino == 0 || rec.Local || rec.Seq != 0 || rec.Attempt != nil || rec.Held != nil || b == nil || b.Ino != rec.Ino {
		return false
	}
	n := v.Inode(rec.Ino)
	if n == nil || v.IsHeld(rec.Ino) || len(n.Links) != 1 || len(n.RemoteLinks) != 1 ||
		n.LostName != nil || n.Writing || n.Suspect || u.HasOwn != nil && u.HasOwn(n) || n.AttrGen != b.AttrGen {
		return false
	}
	switch {
	case n.IsDir():
		return !n.Loaded && n.Entries == 0 && n.From == "" && !v.HasNames(rec.Ino)
	case n.ContentVersion != b.ContentVersion:
		return false
	}
	return n.State == table.None || u.content
}
