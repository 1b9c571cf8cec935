package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// past is the tree as it was before some record, as far as it was another. It
// knows the first thing that happened to each inode since: that tells where the
// inode was and what was in it.
type past struct {
	v     *Volume
	first map[table.Ino]event
	after int64 // the time of the last record before: what was made since was not there
}

type event struct {
	id uint64
	r  *record
}

// maxDepth bounds a climb through directories, should records lead in circles.
const maxDepth = 4096

// pastBefore reads the history from a record on.
func (v *Volume) pastBefore(ctx context.Context, cut uint64) (*past, error) {
	p := &past{v: v, first: map[table.Ino]event{}}
	return p, v.eachRecord(ctx, 0, func(id uint64, r *record) {
		switch {
		case id < cut:
			p.after = max(p.after, r.Time)
		case r.Ino != 0:
			if _, known := p.first[r.Ino]; !known {
				p.first[r.Ino] = event{id, r}
			}
		}
	})
}

// cutOf is the record before which the past is that RestoreOptions ask for.
func (v *Volume) cutOf(ctx context.Context, o *RestoreOptions) (uint64, error) {
	if o.Version != "" {
		id, ok := parseID(o.Version)
		if !ok {
			return 0, fmt.Errorf("%q: %w", o.Version, ErrNoVersion)
		}
		if !o.Before {
			id++
		}
		return id, nil
	}
	f := LogFilter{Turn: o.Turn, Conversation: o.Conversation}
	var first, last, later uint64
	err := v.eachRecord(ctx, 0, func(id uint64, r *record) {
		if later == 0 && r.Time > o.Time.UnixNano() {
			later = id
		}
		if f.matches(r) {
			first, last = cmpOr(first, id), id
		}
	})
	switch {
	case err != nil:
		return 0, err
	case !o.Time.IsZero():
		return cmpOr(later, ^uint64(0)), nil
	case first == 0:
		return 0, fmt.Errorf("turn %q of conversation %q: %w", o.Turn, o.Conversation, ErrNoVersion)
	case o.Before:
		return first, nil
	}
	return last + 1, nil
}

func cmpOr(a, b uint64) uint64 {
	if a != 0 {
		return a
	}
	return b
}

// was reports whether an inode with an event was there, and where. mu is held.
func (p *past) was(e event) (l table.Link, path string, there bool) {
	r := e.r
	if r.New && r.Birth > p.after {
		return l, "", false
	}
	if r.Change == Moved && r.From != nil {
		return table.Link{Dir: r.From.Dir, Name: r.From.Name}, r.From.Path, true
	}
	return r.at(), r.Path, true
}

// pathOf is where a name was. noted is its path as it was written down. mu is
// held.
func (p *past) pathOf(l table.Link, noted string) string {
	var names []string
	for range maxDepth {
		names = append(names, l.Name)
		if l.Dir == table.Root {
			slices.Reverse(names)
			return strings.Join(names, "/")
		}
		if e, ok := p.first[l.Dir]; ok {
			if at, _, there := p.was(e); there {
				l = at
				continue
			}
			return noted
		}
		n := p.v.table.Inode(l.Dir)
		if n == nil || len(n.Links) == 0 {
			return noted
		}
		l = n.Links[0]
	}
	return noted
}

// source is where the content is that an inode had. mu is held.
func (p *past) source(e event) contentSource {
	v, r := p.v, e.r
	if r.Change == Written {
		prev := v.getRecord(r.Prev)
		if prev == nil {
			return contentSource{}
		}
		return v.contentOf(r.Prev, prev)
	}
	return v.contentOf(e.id, r)
}

// item is something that a restore brings back.
type item struct {
	path   string
	ino    table.Ino // that it was
	mode   uint32
	target string // of a symbolic link
	src    contentSource
	id     uint64 // the record
}

// plan is what a restore does: first what is to be there, directories before
// what is in them, then what is not.
type plan struct {
	items  []item
	remove []item
}

// planFor compares the past with the present, at a path and below. scope is the
// path that it had then.
func (v *Volume) planFor(p *past, now, scope string) plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	want := map[string]item{}
	var gone []item
	for ino, e := range p.first {
		here := v.placeNow(ino)
		there := ""
		if l, noted, ok := p.was(e); ok {
			if at := p.pathOf(l, noted); below(at, scope) {
				there = now + strings.TrimPrefix(at, scope)
				if scope == "" && now != "" {
					there = now + "/" + at
				}
			}
		}
		it := item{path: there, ino: ino, mode: e.r.Mode, target: e.r.Target, id: e.id}
		if there != "" && (there != here || e.r.Mode&modeType == modeRegular) {
			it.src = p.source(e)
			want[there] = it
		}
		if here != "" && here != there && below(here, now) && e.r.Mode&modeType != modeDir {
			it.path = here
			gone = append(gone, it)
		}
	}
	var pl plan
	for _, it := range want {
		pl.items = append(pl.items, it)
	}
	for _, it := range gone {
		if _, wanted := want[it.path]; !wanted {
			pl.remove = append(pl.remove, it)
		}
	}
	byPath := func(a, b item) int { return strings.Compare(a.path, b.path) }
	slices.SortFunc(pl.items, byPath)
	slices.SortFunc(pl.remove, byPath)
	return pl
}

// placeNow is where an inode is, "" if nowhere. mu is held.
func (v *Volume) placeNow(ino table.Ino) string {
	at, ok := v.pathOf(ino)
	if !ok {
		return ""
	}
	return at.String()
}
