package odb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	gitbinary "github.com/go-git/go-git/v5/utils/binary"

	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// Every commit is a pack, and every pack an open file, so packs are merged now and
// then: when there are repackFrom of them, counted from the smallest, of which none
// is larger than twice the sum of all smaller ones. So each object is copied a few
// times at most, however many commits there will be.
const (
	repackFrom  = 32
	repackSmall = 1 << 20 // bytes, that are never much
	repackMost  = 256 << 20
)

// Repack makes one pack of many small ones, if they are many. The objects are safe in the new
// pack before an old one is removed. It is for one goroutine; all else goes on meanwhile, and
// reads of an old pack that have begun end well. Promised packs are not merged with others.
func (s *Store) Repack(ctx context.Context) error {
	for _, promised := range []bool{false, true} {
		if err := s.repack(ctx, promised); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) repack(ctx context.Context, promised bool) error {
	old := small(slices.DeleteFunc(slices.Clone(*s.packs.Load()), func(p *pack) bool { return p.promised != promised }))
	if len(old) < repackFrom {
		return nil
	}
	b, err := s.newBatch(space.Disk{}, "all-", true) // it can wait: no room is made for it
	if err != nil {
		return err
	}
	defer b.Abandon()
	b.m.promised = promised
	r := &repacking{b, map[ID]int64{}}
	for _, p := range old {
		if err := r.copy(ctx, p); err != nil {
			return err
		}
	}
	if err := b.Finish(); err != nil {
		return err
	}
	return s.drop(old)
}

// small are the packs to merge.
func small(packs []*pack) []*pack {
	packs = slices.SortedFunc(slices.Values(packs), func(a, b *pack) int { return cmp.Compare(a.end, b.end) })
	n, total := 0, int64(0)
	for i, p := range packs {
		if p.end > max(2*total, repackSmall) || total+p.end > repackMost {
			break
		}
		n, total = i+1, total+p.end
	}
	return packs[:n]
}

// repacking copies packs into one.
type repacking struct {
	b  *Batch
	at map[ID]int64 // where objects are in the new pack
}

// copy adds all of a pack that is not there yet.
func (r *repacking) copy(ctx context.Context, p *pack) error {
	order := make([]int, p.n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p.offset(i), p.offset(j)) })
	for k, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := r.at[ID(p.id(i))]; ok {
			continue
		}
		end := p.end
		if k+1 < len(order) {
			end = p.offset(order[k+1])
		}
		if err := r.copyOne(p, order, i, end); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// copyOne copies an object as it lies in its pack, except the distance from a delta to its base.
// The base of a delta is in the same pack and before it, so it is in the new one already.
func (r *repacking) copyOne(p *pack, order []int, i int, end int64) error {
	id, off, b := ID(p.id(i)), p.offset(i), r.b
	h, err := p.header(off)
	if err != nil {
		return err
	}
	o := indexed{off: b.off, size: p.size(i), kind: h.kind, id: id}
	entry, from := &entryWriter{b: b}, off
	if h.kind == ofsDelta {
		base, ok := slices.BinarySearchFunc(order, h.base, func(i int, at int64) int { return cmp.Compare(p.offset(i), at) })
		if !ok {
			return fmt.Errorf("%s: no base begins at %d: %w", id, h.base, ErrCorrupt)
		}
		at, ok := r.at[ID(p.id(order[base]))]
		if !ok {
			return fmt.Errorf("%s: its base comes behind it: %w", id, ErrCorrupt)
		}
		away := b.off - at // before anything of the entry is written
		if _, err := entry.Write(entryHeader(ofsDelta, h.size)); err != nil {
			return err
		}
		if err := gitbinary.WriteVariableWidthInt(entry, away); err != nil {
			return err
		}
		from = h.data
	}
	if _, err := io.Copy(entry, io.NewSectionReader(p.f, from, end-from)); err != nil {
		return err
	}
	o.crc = entry.crc
	r.at[id], b.objects = o.off, append(b.objects, o)
	return nil
}

// drop removes packs whose objects are elsewhere too. A file is closed when its last reader is
// done, which the runtime finds out.
func (s *Store) drop(old []*pack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*s.packs.Load()), func(p *pack) bool { return slices.Contains(old, p) })
	if err := allIn(list, old); err != nil {
		return err
	}
	s.packs.Store(&list)
	var errs []error
	for _, p := range old {
		base := filepath.Join(s.dir, p.name)
		errs = append(errs, os.Remove(base+".idx"), os.Remove(base+".pack"), ignoreMissing(os.Remove(base+promisedEnding)), ignoreMissing(os.Remove(s.sizesFile(p))))
	}
	return errors.Join(errs...)
}

// allIn makes sure that nothing gets lost: every old object is in the packs that stay.
func allIn(packs, old []*pack) error {
	for _, p := range old {
		for i := range p.n {
			id := ID(p.id(i))
			if !slices.ContainsFunc(packs, func(q *pack) bool { _, ok := q.find(id); return ok }) {
				return fmt.Errorf("%s of %s is in no other pack: %w", id, p.name, ErrCorrupt)
			}
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
