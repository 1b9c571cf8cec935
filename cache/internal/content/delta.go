package content

import (
	"math"
	"slices"
	"sort"
)

// A Span is the bytes from Off to End of a file.
type Span struct{ Off, End int64 }

// spans are in order, and do not touch each other.
type spans []Span

// The account of changes is no finer than this: no upload sends smaller parts by itself.
const (
	spanGap  = 1 << 20 // changes that are closer together are one span
	mostOpen = 4096    // spans; more become one
)

// toEnd is the end of a change that reaches to the end of the file.
const toEnd = math.MaxInt64

// add puts a change into the account.
func (s *spans) add(off, end int64) {
	if off >= end {
		return
	}
	all := *s
	lo := sort.Search(len(all), func(i int) bool { return all[i].End > off-spanGap })
	hi := lo
	for ; hi < len(all) && (end == toEnd || all[hi].Off < end+spanGap); hi++ {
		off, end = min(off, all[hi].Off), max(end, all[hi].End)
	}
	all = slices.Replace(all, lo, hi, Span{off, end})
	if len(all) > mostOpen {
		all = append(all[:0], Span{all[0].Off, all[len(all)-1].End})
	}
	*s = all
}

// delta is the changes of a file since a state that the caller named. It is in memory only:
// after a restart everything counts as changed.
type delta struct {
	base    string // see lockedInodes, and for the rest lockedFile
	size    int64  // of that state
	changed spans
}

// Follow begins an account of changes: the present content is the state that the caller
// calls base, unless it has changed since [File.Writes] gave this count.
func (f *File) Follow(base string, writes uint64) {
	l := f.lock()
	defer l.unlock()
	if d := l.account(); f.writes.Load() == writes && (d == nil || d.base != base) {
		l.follow(&delta{base: base, size: f.size.Load()})
	}
}

// account is a copy of the account of changes; nil: none is kept.
func (f *lockedFile) account() *delta {
	if f.delta == nil {
		return nil
	}
	all := f.s.inodes.lock()
	defer all.unlock()
	return &delta{f.delta.base, f.delta.size, slices.Clone(f.delta.changed)}
}

// Renamed gives a state of an inode's content another name. It may be called under locks of
// the caller's.
func (s *Store) Renamed(ino uint64, was, now string) {
	all := s.inodes.lock()
	defer all.unlock()
	if d := all.deltas[ino]; d != nil && d.base == was {
		d.base = now
	}
}

// follow keeps an account for as long as the content has its name, also while it is not in use.
func (f *lockedFile) follow(d *delta) {
	all := f.s.inodes.lock()
	defer all.unlock()
	if f.blind || all.files[f.ino] != f.file {
		return
	}
	f.delta = d
	all.deltas[f.ino] = d
}

// Blind says that the content may be changed past this File from now on, until it is
// closed: no account of changes would be right.
func (f *File) Blind() {
	l := f.lock()
	defer l.unlock()
	l.blind, l.delta = true, nil
	all := f.s.inodes.lock()
	defer all.unlock()
	if all.files[f.ino] == f {
		delete(all.deltas, f.ino)
	}
}

// note adds a change that is about to happen to the accounts.
func (f *lockedFile) note(off, end int64) {
	if f.delta != nil {
		f.delta.changed.add(off, end)
	}
	for _, v := range f.views {
		v.since.add(off, end)
	}
}

// Changed gives the bytes of the snapshot that may differ from those of the state that was
// called base, and the size of that state. It reports false when they are not known.
func (v *Snapshot) Changed(base string) (changed []Span, size int64, ok bool) {
	if v.delta == nil || v.delta.base != base {
		return nil, 0, false
	}
	return v.delta.changed, v.delta.size, true
}

// Sent says that the state of the snapshot is the one that the caller calls base, from
// which changes are counted then.
func (v *Snapshot) Sent(base string) {
	f := v.f
	l := f.lock()
	defer l.unlock()
	l.follow(&delta{base: base, size: v.size, changed: slices.Clone(v.since)})
}
