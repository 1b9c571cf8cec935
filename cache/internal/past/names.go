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

// The first record of a name since some time tells which inode had the name then: it is about
// that inode, or about one that came to a free name. So any other inode with the name came
// later, even where no record says when: by a first look into a directory, or by a pull of an
// earlier version of this program, which did not note pulls.

// holder is the earlier holder of a name, by the name's first record since some time.
type holder struct {
	ino    table.Ino  // had the name; 0: it was free
	from   table.Link // old name of the inode that came to it, if nothing else happened to it
	looked bool       // whether all records of the name exist
	lost   bool       // they do not
}

var (
	// ErrUnsure says that the inode came to this name since, or was elsewhere before.
	ErrUnsure = errors.New("it is not known whether it was there then")

	// ErrGivenUp says that the record that would tell is gone.
	ErrGivenUp = errors.New("what happened first to this name since is not known any more")
)

// knows takes a record from before: its inode existed, and its directory.
func (p *before) knows(r *history.Record) {
	if r.Ino != 0 {
		p.known[r.Ino] = struct{}{}
	}
	p.known[r.Dir] = struct{}{}
}

// saw takes the next record since.
func (p *before) saw(v *tree.View, id, cut uint64, r *history.Record) {
	if r.Ino == 0 {
		return // never local
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

// isNew reports whether a record is about an inode's making.
func (p *before) isNew(r *history.Record) bool {
	return r.Change == history.Made || r.New && r.Birth > p.after
}

// left notes that an inode had a name, and its next name, if it was renamed. Of two that exchange
// their names the first has come when the second leaves.
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

// reached notes that an inode came to a name.
func (p *before) reached(l, from table.Link) {
	if h := p.names[l]; h != nil {
		h.from = table.Link{}
		return
	}
	p.names[l] = &holder{from: from}
}

// was is the name and path of an inode with an event; there is false if it had none.
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

// doubt says why it is not known whether an inode with an event had its place.
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

// add includes a file without records since, if it is in doubt.
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
		e.r.Change = history.Ended // as for a file that is not what it was
		e.r.Stays = true
		p.first[ino] = e
	}
}

// inOrder are the events as they happened, and then the inodes without records.
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
