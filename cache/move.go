package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// doRename gives what is known at from the name to, over what is known there.
// An inode that was never sent has nothing at from: it replaces what is at to
// when it is sent.
func (v *Volume) doRename(ctx context.Context, j *job, from, to providers.Locator) error {
	src, ok, err := v.known(ctx, from)
	if err != nil {
		return err
	}
	dst, over, err := v.known(ctx, to)
	switch {
	case err != nil:
		return err
	case !ok && (!over || j.sendable && dst.kind != providers.KindDir):
		return nil
	case !ok:
		return v.doDelete(ctx, to)
	}
	if over && src.kind != providers.KindDir && dst.kind != providers.KindDir {
		return v.move(ctx, j, from, to, src, dst.condition())
	}
	if over && !j.cleared {
		if err := v.doDelete(ctx, to); err != nil {
			return err
		}
	}
	j.cleared = true // what an attempt has put there by now is ours
	return v.move(ctx, j, from, to, src, providers.IfAbsent())
}

// doExchange swaps what is known at a and b. No backend does that in one step:
// a stands aside for a moment, under a name that no program here sees. What is
// to be moved is decided once, so that a new attempt goes on where the last
// one ended.
func (v *Volume) doExchange(ctx context.Context, j *job, a, b providers.Locator) error {
	if j.moves == nil {
		moves, err := v.planExchange(ctx, j, a, b)
		if err != nil {
			return err
		}
		// Nothing may be in the way, and everything is one that can be there.
		j.moves, j.cleared, j.sendable = moves, true, true
	}
	for len(j.moves) > 0 {
		if err := v.doRename(ctx, j, j.moves[0][0], j.moves[0][1]); err != nil {
			return err
		}
		j.moves = j.moves[1:]
	}
	return nil
}

// planExchange lists what to move. What was never sent is sent to its new name
// later.
func (v *Volume) planExchange(ctx context.Context, j *job, a, b providers.Locator) ([][2]providers.Locator, error) {
	_, atA, err := v.known(ctx, a)
	if err != nil {
		return nil, err
	}
	_, atB, err := v.known(ctx, b)
	if err != nil {
		return nil, err
	}
	aside, err := a.Parent().Child(fmt.Sprintf(".wsmount-exchange-%s-%d", v.id, j.seq))
	switch {
	case err != nil:
		return nil, err
	case atA && atB:
		return [][2]providers.Locator{{a, aside}, {b, a}, {aside, b}}, nil
	case atA:
		return [][2]providers.Locator{{a, b}}, nil
	}
	return [][2]providers.Locator{{b, a}}, nil
}

// move does it at the backend in one step, if that can, else key by key.
func (v *Volume) move(ctx context.Context, j *job, from, to providers.Locator, src known, target providers.Condition) error {
	mover, ok := providers.As[providers.Mover](v.p)
	switch {
	case ok:
		info, err := mover.Move(ctx, from, to, providers.MoveOptions{Source: src.condition(), Target: target})
		if j.unsure && errors.Is(err, providers.ErrNotExist) {
			info, err = v.arrivedAt(ctx, to, src, err)
		}
		if err != nil {
			return err
		}
		v.moved(from, to, src.version, info.Version)
		return nil
	case src.kind == providers.KindDir:
		return v.moveTree(ctx, from, to)
	}
	return v.moveOne(ctx, from, to, src.version, target)
}

// arrivedAt decides whether an attempt that was not answered did move src.
func (v *Volume) arrivedAt(ctx context.Context, to providers.Locator, src known, missing error) (providers.Info, error) {
	info, err := v.p.Stat(ctx, to)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return info, missing
	case err != nil:
		return info, err
	case info.Kind != src.kind || info.Kind != providers.KindDir && !info.Version.Matches(src.version):
		return info, missing
	}
	return info, nil
}

// moved says that the backend has moved the version was, which is now called
// now there. If we know another version, somebody has changed the entry, and
// it must still count as changed.
func (v *Volume) moved(from, to providers.Locator, was, now providers.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base.move(from, to)
	if k := v.base.get(to); k != nil && k.version.Matches(was) {
		k.version = now
	}
}

// moveOne moves a file or link by copying it. It can be repeated: a copy that
// is there already is taken for what an earlier attempt left only if it has
// the same bytes. Once the copy is known, the rest is only to remove the
// source, however often that takes.
func (v *Volume) moveOne(ctx context.Context, from, to providers.Locator, version providers.Version, target providers.Condition) error {
	info, err := v.copy(ctx, from, to, version, target)
	if errors.Is(err, providers.ErrExist) || errors.Is(err, providers.ErrConflict) {
		info, err = v.sameEntry(ctx, from, to, version, err)
	}
	if err != nil {
		return err
	}
	v.moved(from, to, version, info.Version)
	return v.retry(ctx, func(ctx context.Context) error {
		err := v.p.Delete(ctx, from, providers.DeleteOptions{If: providers.IfVersion(version)})
		if errors.Is(err, providers.ErrNotExist) {
			err = nil
		}
		return err
	})
}

// sameEntry is what is at to, if it has the bytes that version at from has;
// else the error lost.
func (v *Volume) sameEntry(ctx context.Context, from, to providers.Locator, version providers.Version, lost error) (providers.Info, error) {
	a, err := v.p.Read(ctx, from, providers.ReadOptions{Version: version})
	if err != nil {
		return providers.Info{}, err
	}
	defer a.Body.Close()
	b, err := v.p.Read(ctx, to, providers.ReadOptions{})
	if err != nil {
		return providers.Info{}, lost
	}
	defer b.Body.Close()
	same, err := sameBytes(a.Body, b.Body)
	if err == nil && !same {
		err = lost
	}
	return b.Info, err
}

// moveTree moves a directory key by key, and only forward: what an attempt
// moved stays moved. Keys that appear meanwhile under the old name are moved
// if they are listed, else they keep the old directory alive and are reported.
func (v *Volume) moveTree(ctx context.Context, from, to providers.Locator) error {
	dirs := []providers.Locator{from}
	for i := 0; i < len(dirs); i++ {
		if err := v.makeDir(ctx, dirs[i], within(dirs[i], from, to)); err != nil {
			return err
		}
		for info, err := range providers.All(ctx, v.p, dirs[i], providers.ListOptions{}) {
			if errors.Is(err, providers.ErrNotExist) {
				break
			}
			if err != nil {
				return err
			}
			if info.Kind == providers.KindDir {
				dirs = append(dirs, info.Locator)
				continue
			}
			if err := v.moveOne(ctx, info.Locator, within(info.Locator, from, to), info.Version, providers.IfAbsent()); err != nil {
				return err
			}
		}
	}
	for _, dir := range slices.Backward(dirs) {
		err := v.p.Delete(ctx, dir, providers.DeleteOptions{If: providers.IfDir()})
		if err != nil && !errors.Is(err, providers.ErrNotExist) {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base.remove(from)
	return nil
}

// within is the place of l after from became to.
func within(l, from, to providers.Locator) providers.Locator {
	below, err := to.Child(l.Parts()[len(from.Parts()):]...)
	if err != nil {
		panic(err) // names of a Locator make a Locator
	}
	return below
}

// makeDir makes the directory to, which takes the place of from, with from's
// attributes.
func (v *Volume) makeDir(ctx context.Context, from, to providers.Locator) error {
	info, err := v.p.Stat(ctx, from)
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return err
	}
	_, err = v.p.Mkdir(ctx, to, providers.MkdirOptions{Attr: info.Attr, Metadata: info.Metadata})
	if err != nil && !(errors.Is(err, providers.ErrUnsupported) && !v.caps.EmptyDirs) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dir := known{kind: providers.KindDir}
	if k := v.base.get(from); k != nil {
		dir.ino = k.ino
	}
	v.base.put(to, dir)
	return nil
}

// copy copies at the backend if that can, else through here.
func (v *Volume) copy(ctx context.Context, from, to providers.Locator, version providers.Version, target providers.Condition) (providers.Info, error) {
	if c, ok := providers.As[providers.Copier](v.p); ok {
		return c.Copy(ctx, from, to, providers.CopyOptions{If: target, Version: version})
	}
	r, err := v.p.Read(ctx, from, providers.ReadOptions{Version: version})
	if err != nil {
		return providers.Info{}, err
	}
	defer r.Body.Close()
	return v.p.Write(ctx, to, providers.Body{Reader: r.Body, Size: r.Info.Size}, providers.WriteOptions{
		If: target, Kind: r.Info.Kind, Attr: r.Info.Attr, Metadata: r.Info.Metadata})
}
