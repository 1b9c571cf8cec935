package past

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// before is the tree as it was before some record, as far as it differs from the present. It has
// the first event of each inode since, which tells the inode's place and content before. The first
// event of a name tells which inode had it.
type before struct {
	h     *Past
	first map[table.Ino]event
	names map[table.Link]*holder
	known map[table.Ino]struct{} // inodes that existed before, by records of that time
	reach error                  // why not all is known
	after int64                  // time of the last record before: inodes made since did not exist
	until int64                  // the time of the state: younger content is not as it was
}

// event is the first record of an inode since; without an event the record has no Change.
type event struct {
	id uint64
	r  *history.Record
}

// maxDepth bounds a climb through directories, should records lead in circles.
const maxDepth = 4096

// before reads the history from a record on.
func (h *Past) before(ctx context.Context, cut uint64, s State) (*before, error) {
	p := &before{h: h, first: map[table.Ino]event{}, names: map[table.Link]*holder{}, known: map[table.Ino]struct{}{}}
	if !s.Time.IsZero() {
		p.after = table.Nanoseconds(s.Time)
		p.until = p.after
	}
	err := h.eachRecord(ctx, func(v *tree.View, id uint64, r *history.Record) {
		if id < cut {
			p.after = max(p.after, r.Time)
			p.knows(r)
			return
		}
		if p.until == 0 {
			p.until = r.Time
		}
		p.saw(v, id, cut, r)
	})
	if err != nil {
		return nil, err
	}
	if !s.Before && s.Time.IsZero() {
		p.until = p.after
	}
	p.reach = h.reachOf(s, len(p.known) > 0)
	return p, p.carry(ctx)
}

// carry adds the inodes that moved with a directory, without an event of their own.
func (p *before) carry(ctx context.Context) error {
	var dirs []table.Ino
	v := p.h.o.Tree.Lock()
	for ino, e := range p.first {
		here := placeNow(v, ino)
		if e.r.Mode&syscall.S_IFMT == syscall.S_IFDIR && here != "" && here != p.placeOf(v, e) {
			dirs = append(dirs, ino)
		}
	}
	p.h.o.Tree.Unlock()
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		if err := p.h.o.Volume.Load(ctx, dir); err != nil {
			return err
		}
		below, err := p.carryNames(ctx, dir)
		if err != nil {
			return err
		}
		dirs = append(dirs[:len(dirs)-1], below...)
	}
	return nil
}

// carryNames is carry for the entries of one directory, and returns those of its directories that
// carry still has to look into. The lock is held for a step at most.
func (p *before) carryNames(ctx context.Context, dir table.Ino) (dirs []table.Ino, err error) {
	after := ""
	for step := logStep; step == logStep && err == nil; err = ctx.Err() {
		step = 0
		v := p.h.o.Tree.Lock()
		v.Names(dir, after, func(name string, rec table.Name) bool {
			after = name
			n := v.Inode(rec.Ino)
			if _, known := p.first[rec.Ino]; n != nil && !known {
				p.first[rec.Ino] = p.stayed(v, table.Link{Dir: dir, Name: name}, rec.Ino, n)
				if n.IsDir() {
					dirs = append(dirs, rec.Ino)
				}
			}
			step++
			return step < logStep
		})
		p.h.o.Tree.Unlock()
	}
	return dirs, err
}

// stayed is the event of an inode without records since. It stands for the last record of it, if
// there is one; without one, only an inode younger than the state that never was at the remote is
// known to be new.
func (p *before) stayed(v *tree.View, l table.Link, ino table.Ino, n *table.Inode) event {
	r := history.About("", "", l, ino, n)
	at, _ := v.LocalPath(l)
	r.Path = at.String()
	id, old := history.ContentOf(v, ino, l)
	switch {
	case old == nil:
		r.New = history.IsOfHere(n)
		return event{r: r}
	case old.Gen != n.ContentVersion:
		return event{r: r}
	}
	r.Of = id
	return event{id: id, r: r}
}

// pathOf is the path that a name had, "" if its directory did not exist. noted is the path in its
// record.
func (p *before) pathOf(v *tree.View, l table.Link, noted string) string {
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
			return ""
		}
		n := v.Inode(l.Dir)
		if n == nil || len(n.Links) == 0 {
			return noted
		}
		l = n.Links[0]
	}
	return noted
}

// placeOf is the path of an inode with an event, "" if it had none.
func (p *before) placeOf(v *tree.View, e event) string {
	l, noted, there := p.was(e)
	if !there {
		return ""
	}
	return p.pathOf(v, l, noted)
}

// scopeOf is the path in the past for a present one. A directory is followed to its earlier place;
// a file is taken by its name in its directory.
func (p *before) scopeOf(ctx context.Context, path string) string {
	l, ino, err := p.h.o.Volume.Find(ctx, path)
	if err != nil || l.Dir == 0 {
		return path
	}
	v := p.h.o.Tree.Lock()
	defer p.h.o.Tree.Unlock()
	if n := v.Inode(ino); n != nil && n.IsDir() {
		if e, ok := p.first[ino]; ok {
			l, path, _ = p.was(e)
		}
	}
	return cmp.Or(p.pathOf(v, l, path), path)
}

// source is where the content is that an inode had.
func (p *before) source(v *tree.View, e event) (src source) {
	r := e.r
	if r.Change == history.Written {
		if prev := history.Get(v, r.Prev); prev != nil {
			src = contentOf(v, r.Prev, prev)
		}
		if src.kind == contentGone {
			src = pastSource(r.Before, 0)
		}
		return src
	}
	return contentNow(v, e.id, r)
}

// contentNow is contentOf, or the remote if only that has the content.
func contentNow(v *tree.View, id uint64, r *history.Record) source {
	src := contentOf(v, id, r)
	n := v.Inode(r.Ino)
	gone := src.kind == contentGone || src.kind == contentPast && n != nil && len(n.RemoteLinks) > 0
	if gone && n != nil && n.IsRegular() && n.ContentVersion == r.Gen && !n.Writing {
		return source{kind: contentAway, ino: r.Ino, gen: r.Gen, size: n.Size}
	}
	return src
}
