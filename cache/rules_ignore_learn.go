package cache

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// maxRules is how large an ignore file may be. Of a larger one no rule counts.
const maxRules = 1 << 20

// learnForCommit makes all rules known that say something of what may go with a
// commit, and looks again at what stays here for rules of before.
func (v *Volume) learnForCommit(ctx context.Context) error {
	if !v.ignoring() {
		return nil
	}
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	for range maxTries { // they may change meanwhile
		dirs := v.snapshotUnlearned()
		if len(dirs) == 0 {
			break
		}
		if err := v.learnAll(w, dirs); err != nil {
			return err
		}
	}
	return v.lookAgain(w)
}

// learnAhead learns rules that were changed here, or could have been used, so that what
// is made from now on stays here at once. What it cannot learn the next commit will.
func (v *View) learnAhead() {
	if !v.ignoring() || v.learning {
		return
	}
	dirs := v.ignores.Wanted(v)
	if len(dirs) == 0 {
		return
	}
	v.learning = true
	v.background(func() {
		w := v.wait(nil, v.o.Patience)
		defer w.close()
		if err := v.learnAll(w, dirs); err != nil {
			v.o.Log.Debug("ignore files are read later", "err", err)
		}
		locked := v.Volume.lock()
		locked.learning = false
		locked.unlock()
		v.pending.Kick()
	})
}

// snapshotUnlearned is unlearned of this moment.
func (v *Volume) snapshotUnlearned() []table.Ino {
	was := v.takeSnapshot(false)
	defer was.end()
	return was.ignores.Unlearned(was)
}

func (v *Volume) learnAll(w *waiting, dirs []table.Ino) error {
	for _, dir := range dirs {
		if err := v.learnRules(w, dir); err != nil {
			return fmt.Errorf("%s: %w", v.o.IgnoreFile, err)
		}
		w.moved()
	}
	return nil
}

// learnRules reads the rules of a directory, if they were not, or are others now.
func (v *Volume) learnRules(w *waiting, dir table.Ino) error {
	locked := v.lock()
	ino, version, known := locked.ignores.FileOf(locked, dir)
	locked.unlock()
	if !known {
		if err := v.list(w, dir); err != nil && !errors.Is(err, fs.ErrStale) {
			return err
		}
		locked = v.lock()
		ino, version, _ = locked.ignores.FileOf(locked, dir)
		locked.unlock()
	}
	r := rules.Rules{Ino: ino, Version: version}
	if ino != 0 {
		content, err := v.readRules(w, ino)
		if errors.Is(err, fs.ErrStale) || v.gone(ino) {
			return nil // it was removed just now
		}
		if err != nil {
			return err
		}
		r.Rules = ignore.Parse(content)
	}
	return v.update(func(v *Tx) error {
		v.ignores.Learn(v, dir, r)
		return nil
	})
}

// readRules reads an ignore file, as it is at the moment or newer.
func (v *Volume) readRules(w *waiting, ino table.Ino) ([]byte, error) {
	oi, err := v.acquire(ino)
	if err != nil {
		return nil, err
	}
	defer v.opener.Release(oi)
	if oi.Content().Size() > maxRules {
		v.o.Log.Warn("an ignore file is too large, and says nothing", "bytes", oi.Content().Size(), "most", maxRules)
		return nil, nil
	}
	if err := v.hydrator.Follow(w, func() error { return oi.Content().FetchAll(w) }); err != nil {
		return nil, err
	}
	snap, err := oi.Content().Snapshot(w)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return io.ReadAll(snap.Reader())
}

// lookAgain looks at all names in directories whose rules are others now. What
// cannot be said yet is looked at before the next commit.
func (v *Volume) lookAgain(w *waiting) error {
	locked := v.lock()
	dirs := rules.ToLookBelow(locked)
	locked.unlock()
	if len(dirs) == 0 {
		return nil
	}
	carriers := v.snapshotCarriers()
	for _, dir := range dirs {
		sure := false
		for range maxTries {
			unlearned, err := v.lookBelow(dir, carriers)
			if err != nil {
				return err
			}
			if sure = len(unlearned) == 0; sure {
				break
			}
			if err := v.learnAll(w, unlearned); err != nil {
				return err
			}
		}
		if !sure {
			continue
		}
		err := v.update(func(v *Tx) error {
			rules.Looked(v, dir)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lookBelow looks at all names below a directory, those of one directory at a
// time: nobody waits for a million of them. It returns the directories whose
// rules would have to be known.
func (v *Volume) lookBelow(top table.Ino, c rules.Carriers) (unlearned []table.Ino, err error) {
	asked := map[table.Ino]struct{}{}
	for dirs := []table.Ino{top}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		err := v.updateOwn(func(v *Tx) error { // what need not stay any more is due with the commit
			v.table.Names(dir, "", func(name string, rec table.Name) bool {
				n := v.table.Inode(rec.Ino)
				if rec.Ino == 0 || n == nil {
					return true
				}
				l := table.Link{Dir: dir, Name: name}
				if _, ok := v.resort(l, rec, n, c); !ok {
					unlearned = append(unlearned, v.ignores.UnlearnedAbove(v, l, asked)...)
				}
				if n.IsDir() {
					dirs = append(dirs, rec.Ino)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return unlearned, nil
}

// resort has a name stay here or not, as the rules say. ok is false when nothing can be
// said yet.
func (v *Tx) resort(l table.Link, rec table.Name, n *table.Inode, c rules.Carriers) (stays, ok bool) {
	stays, ok = v.sorted(l, rec, n, c)
	if ok && rec.Local != stays {
		rec.Local = stays
		v.table.SetName(l.Dir, l.Name, rec)
		v.Mark(l)
	}
	return stays, ok
}

// sorted reports whether the rules have a name stay here. Content that is not here has
// to be: it may have no other place soon. A directory that the backend has goes, with
// what of it is there: it got its name when nobody knew the rules. So do those that it
// was moved into. ok is false when nothing can be said yet.
func (v *View) sorted(l table.Link, rec table.Name, n *table.Inode, c rules.Carriers) (stays, ok bool) {
	if rec.Remote != nil || rec.Attempt != nil || rec.Ino == 0 || n == nil || rec.Local && !v.onlyIgnored(l, rec) {
		return rec.Local, true
	}
	is, sure := v.ignores.Ignored(v, l, n.IsDir())
	if is = is && !(n.IsDir() && (len(n.RemoteLinks) > 0 || c.Has(rec.Ino))); !sure || is && !v.isHere(n) {
		return false, false
	}
	return is, true
}

// bringIgnored fetches content that is to stay here and is not here yet.
func (v *Volume) bringIgnored(ctx context.Context, names []table.Link) error {
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	for _, l := range names {
		locked := v.lock()
		rec, _ := locked.table.Name(l.Dir, l.Name)
		n := locked.table.Inode(rec.Ino)
		missing := n != nil && !v.isHere(n)
		link := missing && n.IsSymlink()
		locked.unlock()
		if !missing {
			continue
		}
		kind := providers.KindFile
		if link {
			kind = providers.KindSymlink
		}
		err := v.hydrator.Follow(w, func() error { return v.bringContent(w, rec.Ino, kind) })
		if err != nil && !errors.Is(err, fs.ErrStale) {
			return err
		}
	}
	return nil
}
