package cache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Open makes or continues a working copy of the remote behind p. A new one asks for the root, so
// that an unreachable remote fails here; an existing one opens without the remote. It fails with a
// *providers.CapabilityError when p promises too little, and with ErrInUse. The provider stays the
// caller's, who closes it after the volume.
func Open(ctx context.Context, p providers.Provider, o Options) (*Volume, error) {
	o.setDefaults()
	if missing := p.Capabilities().Missing(needsToWrite); len(missing) > 0 && !o.ReadOnly {
		return nil, fmt.Errorf("cache: %w", &providers.CapabilityError{Provider: o.Provider, Missing: missing})
	}
	s, err := openState(o)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	v := newVolume(p, o, s)
	if err := v.begin(ctx); err != nil {
		v.stop()
		return nil, fmt.Errorf("cache: %w", errors.Join(err, s.Close()))
	}
	return v, nil
}

// openState opens the state directory of a volume.
func openState(o Options) (*state.Dir, error) {
	return state.Open(o.StateDir, state.Options{
		Table:   table.Options{Log: o.Log, Strict: o.strict, BootID: o.boot, FS: o.names},
		Content: content.Options{Limit: o.CacheSize, Floor: o.KeepFree, BallastFile: o.BallastFile, Budget: o.Fetches, Log: o.Log, Now: o.Now},
		Total:   o.TotalSize, TotalFile: o.TotalFile,
	})
}

func newVolume(p providers.Provider, o Options, s *state.Dir) *Volume {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	o.Guard.Limit(p.Capabilities())
	v := &Volume{p: p, caps: p.Capabilities(), o: o, state: s, store: s.Content,
		pause: o.pause, head: revision.NewHeadLock()}
	v.ctx, v.stop = context.WithCancel(context.Background())
	v.waits = &waiting.Waits{Context: v.ctx, Pause: o.pause, Log: o.Log}
	v.belief = &listing.Belief{Now: o.Now, TTL: o.Policy.TTL, Whole: o.Believed, Patience: o.Patience / 2, Log: o.Log}
	v.open, v.ids.Run = files.NewOpenSet(), hex.EncodeToString(id)
	v.tree = tree.New(s.Table, tree.Options{Now: o.Now, Attributes: v.caps.Attributes != 0, Pins: v.open, Log: o.Log})
	defer v.tree.Unlock()
	v.held = tree.Guard(v.tree, View{Volume: v, guardedState: &guardedState{View: v.tree.Lock()}})
	v.pending, v.doing.told = newPending(v), o.onward
	v.border = newBorder(v)
	v.side = &local.Side{Border: v.border, Attributes: v.attrs(), Content: v.store, Notifier: v.notifier, Now: o.Now, Log: o.Log}
	v.learner = newLearner(v)
	v.submodules, _ = providers.As[providers.Submoduler](p)
	v.Bind(fs.DiscardNotifier{})
	v.chores = newChores(v)
	v.listings = newListings(v)
	v.history = newKeeper(v)
	v.past = newPast(v)
	v.shows = newShower(v)
	v.hydrator, v.eviction, v.unlinks = newHydrator(v), newEviction(v), newUnlinks(v)
	v.tableSync = &files.TableSync{Tree: v.tree}
	v.room, v.opener, v.unloading = newRoom(v), newOpener(v), newUnloading(v)
	v.kept = commit.NewKept(commit.KeptOptions{Tree: v.tree, Open: v.open, IsUnsaved: v.pending.IsUnsaved, Release: v.opener.Release, Abandon: v.abandon})
	makeUploads(v)
	makeRevisions(v)
	v.prefetch = files.NewPrefetch(files.PrefetchOptions{Tree: v.tree, Open: v.open, Content: unasked{v}, Context: v.ctx, Go: v.work.Go, Log: o.Log, Far: o.far})
	v.merger = newMerger(v)
	v.conflicts = v.merger.Held()
	v.kernelOps, v.describing, v.drain = newKernelOps(v), newDescriber(v), newDrain(v)
	return v
}

// begin makes the root if there is none yet, recovers from the end of the last run, and starts the
// work in the background.
func (v *Volume) begin(ctx context.Context) error {
	if err := v.knowUnpushed(ctx); err != nil {
		return fmt.Errorf("which commits are not pushed: %w", err)
	}
	if err := v.makeRoot(ctx); err != nil {
		return err
	}
	if err := v.recoverLast(); err != nil {
		return err
	}
	w := v.waits.With(ctx, v.o.Patience)
	defer w.Close()
	if err := v.follower.Resume(w); err != nil {
		return fmt.Errorf("a pull that was interrupted: %w", err)
	}
	v.resumeUploads()
	loadMassDeletes(v)
	look, err := v.followRules(ctx)
	if err != nil {
		return fmt.Errorf("applying changed rules of names that are never sent: %w", err)
	}
	if !v.o.ReadOnly {
		v.work.Go(func() { v.loop.Run(v.ctx) })
	}
	v.work.Go(v.merger.ResolveOrphanConflicts)
	v.work.Go(v.history.Run)
	v.work.Go(func() { v.unlinks.Loop(v.ctx, v.pause) })
	if look {
		v.work.Go(func() { v.learner.Look(v.ctx) })
	}
	if v.o.ListRoot {
		v.work.Go(func() {
			if err := v.listings.Load(nil, table.Root); err != nil {
				v.o.Log.Debug("the root is listed when a program looks", "err", err)
			}
		})
	}
	if parter, can := providers.As[providers.Multiparter](v.p); can && !v.o.ReadOnly {
		wait := v.o.partsWait
		v.work.Go(func() { v.freeParts(parter, wait) })
	}
	v.store.SetEvictor(v.room.Make)
	v.work.Go(v.room.WeighAll)
	v.work.Go(func() { v.unloading.Loop(v.ctx, waiting.Sleep) })
	if share := v.state.Share; share != nil {
		v.work.Go(func() {
			share.Loop(v.ctx, waiting.Sleep, v.store.Weigh, func(err error) { v.chores.Ended(chores.Share, err) })
		})
	}
	return nil
}

func (v *Volume) makeRoot(ctx context.Context) error {
	locked := v.lock()
	there := locked.Inode(table.Root) != nil
	locked.unlock()
	if there {
		return nil
	}
	info, err := v.p.Stat(ctx, providers.Locator{})
	if err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	level, made := providers.Revision(""), time.Time{}
	if s, ok := revision.StoreOf(v.p); ok {
		if level, made, err = s.Begins(ctx); err != nil {
			return fmt.Errorf("the head: %w", err)
		}
	}
	return v.update(func(v *Tx) error {
		v.Put(table.Root, v.local.InodeOf(info))
		revision.SetFirst(v, made, v.o.Now())
		revision.SetSynced(v, level, v.o.shown()) // none of its names is known yet
		return nil
	})
}
