package cache

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// keyExclude holds the rules of exclusion that the names of the table follow. A
// person may change them between two runs.
const keyExclude = "exclude/rules"

// excludeRules tells rules of exclusion apart.
func (v *Volume) excludeRules() string {
	if v.o.Exclude == nil {
		return ""
	}
	return v.o.Exclude.String()
}

// followRules has names stay here, or stay no longer, as rules of exclusion say
// that the run before did not have (D12). It asks the backend nothing, and comes
// before anything is sent: what is excluded now must not go, although it waited to.
// What was sent before is hidden by the pull that sees it there.
func (v *Volume) followRules(ctx context.Context) error {
	if v.o.ReadOnly {
		return nil
	}
	locked := v.lock()
	same := string(locked.table.Get(keyExclude)) == v.excludeRules()
	locked.unlock()
	if same {
		return nil
	}
	m := v.newMerge(ctx, v.p)
	return m.run(func(v *Tx) error {
		m.keepExcluded(v)
		v.releaseIncluded()
		v.table.Set(keyExclude, []byte(v.excludeRules()))
		return nil
	})
}

// keepExcluded has what waits to be sent stay here where it is excluded.
func (m *merge) keepExcluded(v *Tx) {
	if v.o.Exclude == nil {
		return
	}
	var all []table.Link
	v.table.Dirty(0, func(_ uint64, l table.Link) bool {
		rec := v.Record(l)
		at, ok := v.LocalPath(l)
		if ok && v.excluded(at, v.KindOf(rec)) {
			all = append(all, l)
		}
		return true
	})
	for _, l := range all {
		m.hide(v, l)
	}
}

// releaseIncluded has what stayed here be sent where it is excluded no longer. What an
// ignore file may name is left to those who learn these: see learnForCommit.
func (v *Tx) releaseIncluded() {
	var all []table.Link
	v.table.Local(func(table.Ino) bool { return true }, func(l table.Link) bool {
		all = append(all, l)
		return true
	})
	for _, l := range all {
		rec, _ := v.table.Name(l.Dir, l.Name)
		n := v.table.Inode(rec.Ino)
		at, ok := v.LocalPath(l)
		if n == nil || !ok || !v.sendable(n) || v.excluded(at, v.KindOf(rec)) {
			continue
		}
		if v.ignoring() {
			rules.LookBelow(v, l.Dir)
			v.relooks = true
			continue
		}
		rec.Local = false
		v.table.SetName(l.Dir, l.Name, rec)
		v.Mark(l)
	}
}

// relook learns what ignore files say of names that are excluded no longer. Where
// that fails, the next commit does it.
func (v *Volume) relook() {
	if err := v.learnForCommit(v.ctx); err != nil {
		v.o.Log.Debug("names that are excluded no longer are looked at with the next commit", "err", err)
	}
}
