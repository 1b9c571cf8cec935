package past

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Who had a name at some time, the first record of the name since tells: it is of
// who had it then, or of who came to a name that was free. So whatever else had
// the name came later, also where no record says when that came: from a first
// look into a directory, or from versions of this program that did not note what
// a pull brought.

// holder is what the records since some time say first of a name.
type holder struct {
	ino    table.Ino  // had it; 0: no one had
	from   table.Link // where who came to it was, if nothing else has happened to it
	looked bool       // whether all records of the name are there
	lost   bool       // they are not
}

var (
	// ErrUnsure says that something came here since, or somewhere else before.
	ErrUnsure = errors.New("it is not known whether it was there then")

	// ErrGivenUp says that the record is gone that would tell.
	ErrGivenUp = errors.New("what happened first to this name since is not known any more")
)

// knows takes a record of before: what it tells of was there, and its directory.
func (p *before) knows(r *history.Record) {
	if r.Ino != 0 {
		p.known[r.Ino] = struct{}{}
	}
	p.known[r.Dir] = struct{}{}
}

// saw takes the next record since.
func (p *before) saw(v *tree.View, id, cut uint64, r *history.Record) {
	if r.Ino == 0 {
		return // never here
	}
	if _, seen := p.first[r.Ino]; !seen {
		p.first[r.Ino] = event{id: id, r: r}
	}
	switch {
	case r.Change == history.Moved && r.From != nil:
		from := table.Link{Dir: r.From.Dir, Name: r.From.Name}
		p.left(from, r.Ino, r.Link())
		p.reached(r.Link(), from)
	case p.isNew(r):
		p.reached(r.Link(), table.Link{})
	default:
		p.left(r.Link(), r.Ino, table.Link{})
	}
	if h := p.names[r.Link()]; !h.looked {
		h.looked, h.lost = true, r.Back >= cut && history.Get(v, r.Back) == nil
	}
}

// isNew reports whether an inode came to be with a record.
func (p *before) isNew(r *history.Record) bool {
	return r.Change == history.Made || r.New && r.Birth > p.after
}

// left notes that an inode had a name, and where that went, if it was renamed. Of
// two that change places the first has come when the second leaves.
func (p *before) left(l table.Link, ino table.Ino, to table.Link) {
	switch h := p.names[l]; {
	case h == nil:
		p.names[l] = &holder{ino: ino}
	case h.ino == 0 && h.from.Dir != 0 && h.from == to:
		h.ino, h.from = ino, table.Link{}
	default:
		h.from = table.Link{}
	}
}

// reached notes that something came to a name.
func (p *before) reached(l, from table.Link) {
	if h := p.names[l]; h != nil {
		h.from = table.Link{}
		return
	}
	p.names[l] = &holder{from: from}
}

// was reports whether an inode with an event was there, and where.
func (p *before) was(e event) (l table.Link, path string, there bool) {
	r := e.r
	if p.isNew(r) {
		return r.Link(), "", false
	}
	l, path = r.Link(), r.Path
	if r.Change == history.Moved && r.From != nil {
		l, path = table.Link{Dir: r.From.Dir, Name: r.From.Name}, r.From.Path
	}
	h := p.names[l]
	return l, path, h == nil || h.ino == r.Ino
}

// doubt says why it is not known whether an inode with an event was there.
func (p *before) doubt(v *tree.View, e event) error {
	l, _, _ := p.was(e)
	if h := p.names[l]; h != nil && h.lost {
		return ErrGivenUp
	}
	if _, known := p.known[e.r.Ino]; p.placeOf(v, e) != "" && !known && !e.r.New && e.r.Birth > p.until {
		return ErrUnsure
	}
	return nil
}

// add has a file considered to which nothing happened, if it is in doubt.
func (p *before) add(ctx context.Context, path string) {
	l, ino, err := p.h.o.Volume.Find(ctx, path)
	v := p.h.o.Tree.Lock()
	defer p.h.o.Tree.Unlock()
	n := v.Inode(ino)
	if _, known := p.first[ino]; err != nil || n == nil || known || n.IsDir() {
		return
	}
	e := p.stayed(v, l, ino, n)
	if p.doubt(v, e) != nil {
		e.r.Change = history.Ended // as what is not what it was
		e.r.Stays = true
		p.first[ino] = e
	}
}

// inOrder are the events as they happened, and then what nothing happened to.
func (p *before) inOrder() []event {
	all := make([]event, 0, len(p.first))
	for _, e := range p.first {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b event) int {
		if x, y := a.r.Change == "", b.r.Change == ""; x != y {
			if y {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.r.Ino, b.r.Ino))
	})
	return all
}
