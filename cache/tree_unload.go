package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// Names that were listed once and not looked at for long are forgotten when
// there are too many of them, a directory at a time from the leaves up. The
// next look lists it again.
const (
	maxKnown    = 4 << 20 // inodes
	unloadEvery = 10 * time.Minute
	unloadAge   = 10 * time.Minute // since the directory was listed
	unloadStep  = 256              // names in one commit
)

// unloader forgets what is known.
type unloader struct {
	v       *Volume
	limit   int  // inodes
	content bool // clean content is no reason to keep a name
	known   int  // inodes, counted
	dropped int
}

func (v *Volume) unloadLoop() {
	counted, given := -1, v.lastIno()
	for sleep(v.ctx, unloadEvery) == nil {
		now := v.lastIno()
		if counted < 0 && now <= maxKnown || counted >= 0 && counted+int(now-given) <= maxKnown {
			continue
		}
		counted, given = v.unload(maxKnown), now
	}
}

// lastIno is a number that no inode made so far is above.
func (v *Volume) lastIno() table.Ino {
	locked := v.lock()
	defer locked.unlock()
	return locked.table.Alloc()
}

// unload forgets what is clean and unused until no more than limit inodes are
// known, and says how many are.
func (v *Volume) unload(limit int) int {
	count := &unloader{v: v, limit: int(^uint(0) >> 1)}
	count.walk(table.Root)
	known := count.known
	for _, content := range []bool{false, true} {
		if known <= limit {
			break
		}
		u := &unloader{v: v, limit: known - limit*4/5, content: content}
		u.walk(table.Root)
		known -= u.dropped
		v.o.Log.Info("forgot names that were not used", "names", u.dropped, "known", known)
	}
	return known
}

// walk goes through a directory, those below first.
func (u *unloader) walk(dir table.Ino) {
	after := ""
	for u.v.ctx.Err() == nil {
		subdirs, last, seen := u.children(dir, after)
		for _, sub := range subdirs {
			u.walk(sub)
		}
		u.known += seen
		if last == "" || u.enough() {
			break
		}
		after = last
	}
	if u.limit < int(^uint(0)>>1) && !u.enough() {
		u.unloadDir(dir)
	}
}

func (u *unloader) enough() bool { return u.dropped >= u.limit }

// children gives the directories among the names behind one, the last name
// looked at ("" when it was the last of all), and how many names there were.
func (u *unloader) children(dir table.Ino, after string) (subdirs []table.Ino, last string, seen int) {
	v := u.v
	locked := v.lock()
	defer locked.unlock()
	locked.table.Names(dir, after, func(name string, rec table.Name) bool {
		seen++
		if n := locked.table.Inode(rec.Ino); n != nil && n.IsDir() {
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

// unloadDir forgets the names of a directory, if nothing in it is here only or
// in use.
func (u *unloader) unloadDir(dir table.Ino) {
	if !u.all(dir) {
		return
	}
	v := u.v
	err := v.update(func(v *Tx) error {
		if v.mayUnload(dir, true) {
			v.table.Edit(dir).Loaded = false
		}
		return nil
	})
	for more := err == nil; more && v.ctx.Err() == nil; {
		dropped := 0
		err = v.update(func(v *Tx) error {
			more, dropped = u.step(v, dir)
			return nil
		})
		if err != nil {
			v.o.Log.Warn("names could not be forgotten", "err", err)
			return
		}
		u.dropped += dropped
	}
}

// all reports whether every name of a directory may be forgotten. It looks in
// steps; unloadDir looks again.
func (u *unloader) all(dir table.Ino) bool {
	v := u.v
	for after, more := "", true; more; {
		step := 0
		locked := v.lock()
		ok := locked.mayUnload(dir, true)
		locked.table.Names(dir, after, func(name string, rec table.Name) bool {
			after = name
			step++
			ok = ok && u.forgettable(locked, table.Link{Dir: dir, Name: name}, rec)
			return ok && step < unloadStep
		})
		locked.unlock()
		if !ok {
			return false
		}
		more = step == unloadStep
	}
	return true
}

// mayUnload reports whether a directory may be made unknown: nobody is in it, and no
// listing is under way that would find less than it left. One without names is known
// only here where the backend keeps no empty directories.
func (v *View) mayUnload(dir table.Ino, loaded bool) bool {
	n := v.table.Inode(dir)
	if loaded && !v.caps.EmptyDirs && !v.table.HasNames(dir) {
		return false
	}
	return n != nil && dir != table.Root && n.Loaded == loaded && len(n.RemoteLinks) == 1 && n.From == "" &&
		v.References(dir) == 0 && !v.IsObserved() &&
		v.o.Now().Sub(timeOf(n.Listed)) >= unloadAge
}

// step forgets some names of a directory that is unknown already, and says whether there
// are more.
func (u *unloader) step(v *Tx, dir table.Ino) (more bool, dropped int) {
	if !v.mayUnload(dir, false) {
		return false, 0
	}
	v.table.Names(dir, "", func(name string, rec table.Name) bool {
		l := table.Link{Dir: dir, Name: name}
		if !u.forgettable(v.View, l, rec) {
			more = false
			return false
		}
		v.table.SetName(dir, name, table.Name{})
		n := v.table.Inode(rec.Ino)
		v.table.Drop(rec.Ino)
		if n.State != table.None {
			v.Later(func() { v.store.Remove(rec.Ino) })
		}
		dropped++
		more = dropped == unloadStep
		return !more
	})
	return more, dropped
}

// forgettable reports whether all that is known of a name can be had again by listing
// its directory.
func (u *unloader) forgettable(v *View, l table.Link, rec table.Name) bool {
	b := rec.Remote
	if rec.Ino == 0 || rec.Local || rec.Seq != 0 || rec.Attempt != nil || rec.Held != nil || b == nil || b.Ino != rec.Ino {
		return false
	}
	n := v.table.Inode(rec.Ino)
	if n == nil || v.IsHeld(rec.Ino) || len(n.Links) != 1 || len(n.RemoteLinks) != 1 ||
		n.LostName != nil || n.Writing || n.Suspect || v.hasOwnXattrs(n) || n.AttrGen != b.AttrGen {
		return false
	}
	switch {
	case n.IsDir():
		return !n.Loaded && n.Entries == 0 && n.From == "" && !v.table.HasNames(rec.Ino)
	case n.ContentVersion != b.ContentVersion:
		return false
	}
	return n.State == table.None || u.content
}
