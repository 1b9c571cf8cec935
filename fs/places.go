package fs

import (
	"strings"
	"sync"
	"time"
)

// places is composition's record of one part's names: the paths where other parts are grafted,
// the paths of governing files, and the directories that lead to either. It is a small trie
// beside the volume, which does not know of it. A place is bound to the inode that the volume
// has at that path, once that has been looked up; a directory that leads to a graft and does
// not exist in the volume is shown all the same, as a gap.
type places struct {
	gap  *slot
	root *place
	all  []*place // all[i] has gap inode i+1

	mu    sync.RWMutex
	bound map[Ino]*place // by inode of the volume; guarded by mu
}

type place struct {
	name      string
	children  map[string]*place
	graft     *slot // the volume at this place
	governing bool  // the file at this place, if any, configures this mount
	gapIno    Ino

	ino    Ino // the volume's inode at this place; guarded by places.mu
	pinned Ino // the inode that a reference is held to; guarded by places.mu
}

func newPlaces() *places {
	pl := &places{bound: make(map[Ino]*place)}
	pl.root = pl.new("")
	pl.root.ino = RootIno
	pl.bound[RootIno] = pl.root
	return pl
}

func (pl *places) new(name string) *place {
	p := &place{name: name, children: make(map[string]*place), gapIno: Ino(len(pl.all) + 1)}
	pl.all = append(pl.all, p)
	return p
}

// make returns the place at a path, and makes it and all that lead to it where missing.
func (pl *places) make(rel string) *place {
	p := pl.root
	for name := range strings.SplitSeq(rel, "/") {
		next := p.children[name]
		if next == nil {
			next = pl.new(name)
			p.children[name] = next
		}
		p = next
	}
	return p
}

// of returns the place that a volume's directory is bound to, or nil. A nil
// places has none.
func (pl *places) of(ino Ino) *place {
	if pl == nil {
		return nil
	}
	pl.mu.RLock()
	defer pl.mu.RUnlock()
	return pl.bound[ino]
}

// bind notes which inode the volume has at a place; 0 for none.
func (pl *places) bind(p *place, ino Ino) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if p.ino == ino {
		return
	}
	delete(pl.bound, p.ino)
	p.ino = ino
	if ino != 0 {
		pl.bound[ino] = p
	}
}

// pin binds a place and keeps the caller's reference to ino. It returns the
// inode that the caller must give one reference back to: the one pinned before,
// or ino itself when that is the same.
func (pl *places) pin(p *place, ino Ino) (release Ino) {
	pl.bind(p, ino)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	release, p.pinned = p.pinned, ino
	return release
}

// governs reports whether ino is a governing file.
func (pl *places) governs(ino Ino) bool {
	p := pl.of(ino)
	return p != nil && p.governing
}

// leadsToGraft reports whether a volume stands at p or below it.
func (p *place) leadsToGraft() bool {
	if p.graft != nil {
		return true
	}
	for _, c := range p.children {
		if c.leadsToGraft() {
			return true
		}
	}
	return false
}

// leadsToGoverning reports whether p or something below it is a governing
// file.
func (p *place) leadsToGoverning() bool {
	if p.governing {
		return true
	}
	for _, c := range p.children {
		if c.leadsToGoverning() {
			return true
		}
	}
	return false
}

// shown lists the names in p that a listing gets from composition rather than
// from the volume: grafts, and gaps that lead to one.
func (p *place) shown() map[string]*place {
	var out map[string]*place
	for name, c := range p.children {
		if c.leadsToGraft() {
			if out == nil {
				out = make(map[string]*place)
			}
			out[name] = c
		}
	}
	return out
}

// gapTTL is short because a directory may appear in the volume under a gap.
const gapTTL = time.Second

// gapVolume serves the directories that lead to a graft and are not in the volume. Its inode
// numbers are those of the places. Composition decides about their entries, so it knows no
// names.
type gapVolume struct {
	readOnlyVolume
	places *places
}

func (g *gapVolume) Attr(_ *Op, ino Ino, _ File) (Attr, error) {
	return dirAttr(ino, 0o555, gapTTL), nil
}

func (g *gapVolume) OpenDir(_ *Op, ino Ino) (Dir, error) {
	return &listDir{entries: dots(ino)}, nil
}
