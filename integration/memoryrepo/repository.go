// Package memoryrepo has branches of whole-tree revisions, and clones of them that are committed
// to, pushed and fetched: the part of git in the contract of package providers, without git. Each
// revision is a store of package memory that never changes. It is made for tests: [memory.Switches]
// make a clone slow, unreachable or forgetful.
//
//	remote := memoryrepo.NewRemote(nil)
//	clone := memoryrepo.NewRepository(remote, "", memory.Options{})
//	_, err := clone.Commit(ctx, set)
//	_, err = clone.Push(ctx, providers.PushOptions{})
package memoryrepo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// name is that of the provider in errors.
const name = "memory"

// Repository is a clone of a Remote: its commits stay in it until they are pushed. It promises
// as much as git can: no directories without entries, of all attributes only whether a file may
// be executed, versions that are made of the content. Make it with NewRepository. All methods may
// be used at once.
type Repository struct {
	opts     memory.Options // of the checkout
	caps     providers.Capabilities
	switches *memory.Switches
	remote   *Remote
	branch   string

	mu     sync.Mutex       // guards all below
	files  *memory.Provider // the checkout: the tree of head, which never changes
	sets   memory.Outcomes
	head   providers.Revision
	on     string                      // where commits go: branch, or one of the clone's own
	lines  map[string]*line            // state of the branches of its own
	known  providers.Revision          // the remote's tracked branch, as last known
	has    map[providers.Revision]bool // the revisions in the clone
	closed bool
}

var _ interface {
	providers.Provider
	providers.Committer
	providers.Snapshotter
	providers.Rebaser
	providers.Pusher
	providers.Syncer
	providers.Differ
	providers.Brancher
} = (*Repository)(nil)

// NewRepository makes a new clone that tracks a branch ("": main), whose head is that of it. Of
// opts, Hook is ignored, and Without may have AbilityCommit and the abilities of a clone too.
func NewRepository(remote *Remote, branch string, opts memory.Options) *Repository {
	files := checkout(opts)
	caps := memory.New(files).Capabilities()
	caps.Abilities |= providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync | providers.AbilityRebase |
		providers.AbilityDiffer | providers.AbilityBranch
	caps.Abilities &^= opts.Without.Abilities
	r := &Repository{
		opts: files, caps: caps, switches: memory.NewSwitches(opts.Delay, opts.Sleep), remote: remote,
		branch: orMain(branch), on: orMain(branch), sets: memory.Outcomes{},
		lines: map[string]*line{}, has: map[providers.Revision]bool{},
	}
	remote.mu.Lock()
	defer remote.mu.Unlock()
	r.known = remote.branches[r.branch]
	r.learn(r.known)
	r.show(r.known)
	return r
}

// checkout are the options of a store that can do with files as much as git can.
func checkout(opts memory.Options) memory.Options {
	opts.Hook, opts.Delay, opts.ExecOnly = nil, 0, true
	w := &opts.Without
	w.EmptyDirs, w.Metadata, w.OperationIDs, w.UniqueVersions = true, true, true, true
	w.Abilities = providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityParts
	return opts
}

// do runs a verb under the lock, past the switches.
func do[R any](ctx context.Context, r *Repository, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	var result, none R
	err := r.around(ctx, m, func() (err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return providers.ErrClosed
		}
		result, err = verb()
		return err
	})
	if err != nil {
		return none, providers.Fail(name, m, l, err, providers.ErrUnavailable)
	}
	return result, nil
}

// around runs a call past the switches. Only calls that leave the machine are slow or cut off.
func (r *Repository) around(ctx context.Context, m providers.Method, call func() error) error {
	remote := m == providers.MethodPush || m == providers.MethodFetch || m == providers.MethodPropose
	return r.switches.Around(ctx, m, remote, call)
}

// learn notes that a revision and all before it are in the clone.
func (r *Repository) learn(id providers.Revision) { maps.Copy(r.has, r.remote.revisions.history(id)) }

// show makes a revision the head.
func (r *Repository) show(id providers.Revision) {
	r.head, r.files = id, r.remote.revisions.files(id).Fork(r.opts)
}

// Capabilities implements providers.Provider.
func (r *Repository) Capabilities() providers.Capabilities { return r.caps }

// Switches make Push, Fetch and Propose slow, or fail, and other verbs fail.
func (r *Repository) Switches() *memory.Switches { return r.switches }

// Stat implements providers.Provider.
func (r *Repository) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, r, providers.MethodStat, l, func() (providers.Info, error) { return r.files.Stat(ctx, l) })
}

// List implements providers.Provider.
func (r *Repository) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return do(ctx, r, providers.MethodList, l, func() (providers.Page, error) { return r.files.List(ctx, l, opts) })
}

// Read implements providers.Provider.
func (r *Repository) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, r, providers.MethodRead, l, func() (providers.Content, error) { return r.files.Read(ctx, l, opts) })
}

// Mkdir implements providers.Provider: it is ErrUnsupported.
func (r *Repository) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, r, providers.MethodMkdir, l, func() (providers.Info, error) { return r.files.Mkdir(ctx, l, opts) })
}

// Close implements providers.Provider. The remote stays.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// Write implements providers.Provider: it is a set of one change.
func (r *Repository) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	change := providers.Change{Locator: l, Body: body, If: opts.If, Kind: opts.Kind, Attr: opts.Attr, Metadata: opts.Metadata}
	result, err := r.single(ctx, providers.MethodWrite, change)
	if err != nil {
		return providers.Info{}, err
	}
	return result.Entries[0], nil
}

// Delete implements providers.Provider: it is a set of one change.
func (r *Repository) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	change := providers.Change{Locator: l, Delete: true, If: opts.If, Dir: opts.If.Kind == providers.ConditionDir}
	_, err := r.single(ctx, providers.MethodDelete, change)
	return err
}

func (r *Repository) single(ctx context.Context, m providers.Method, c providers.Change) (providers.CommitResult, error) {
	changes, err := received(ctx, []providers.Change{c})
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, m, c.Locator, err, providers.ErrUnavailable)
	}
	return do(ctx, r, m, c.Locator, func() (providers.CommitResult, error) {
		for dir := c.Locator; !c.Delete && !dir.IsRoot(); {
			dir = dir.Parent()
			if info, err := r.files.Stat(ctx, dir); err == nil && info.Kind != providers.KindDir {
				return providers.CommitResult{}, providers.ErrNotDir // whatever the condition
			}
		}
		return r.commit(ctx, providers.ChangeSet{Message: fmt.Sprintf("%s %s", m, c.Locator), Changes: changes})
	})
}

// received are changes whose content has arrived.
func received(ctx context.Context, changes []providers.Change) ([]providers.Change, error) {
	changes = slices.Clone(changes)
	for i, c := range changes {
		if c.Delete {
			continue
		}
		var content bytes.Buffer
		if _, err := c.Body.CopyTo(ctx, &content); err != nil {
			return nil, err
		}
		changes[i].Body = providers.Bytes(content.Bytes())
	}
	return changes, nil
}

// Head implements providers.Committer.
func (r *Repository) Head(ctx context.Context) (providers.Revision, error) {
	return do(ctx, r, providers.MethodHead, providers.Locator{}, func() (providers.Revision, error) {
		return r.head, nil
	})
}

// Commit implements providers.Committer.
func (r *Repository) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	changes, err := received(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	return do(ctx, r, providers.MethodCommit, providers.Locator{}, func() (providers.CommitResult, error) {
		set.Changes = changes
		return r.commit(ctx, set)
	})
}

func (r *Repository) commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	if result, known, err := r.sets.Decide(set, r.head); known {
		return result, err
	}
	if set.Merge != "" && !r.has[set.Merge] {
		return providers.CommitResult{}, fmt.Errorf("revision %q: %w", set.Merge, providers.ErrNotExist)
	}
	files := r.files.Fork(r.opts)
	applied, err := files.Commit(ctx, providers.ChangeSet{Changes: set.Changes})
	if err != nil {
		return providers.CommitResult{}, err
	}
	changed, err := differences(ctx, r.files, files)
	if err != nil {
		return providers.CommitResult{}, err
	}
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	merges := set.Merge != "" && !r.remote.revisions.history(r.head)[set.Merge]
	if !merges && len(changed) == 0 {
		return providers.CommitResult{Revision: r.head, Entries: applied.Entries}, nil
	}
	parents := []providers.Revision{r.head}
	if merges {
		parents = append(parents, set.Merge)
	}
	id := r.remote.revisions.add(files, set, parents...)
	r.has[id] = true
	r.show(id)
	result := providers.CommitResult{Revision: id, Committed: true, Entries: applied.Entries}
	r.sets.Made(set, result)
	return result, nil
}

// At implements providers.Snapshotter.
func (r *Repository) At(ctx context.Context, id providers.Revision) (providers.Provider, error) {
	return do(ctx, r, providers.MethodAt, providers.Locator{}, func() (providers.Provider, error) {
		return r.past(id)
	})
}

// Find implements providers.Snapshotter.
func (r *Repository) Find(ctx context.Context, name string) (providers.Found, error) {
	return do(ctx, r, providers.MethodFind, providers.Locator{}, func() (found providers.Found, err error) {
		if id := providers.Revision(name); r.has[id] {
			return r.found(id), nil
		}
		if len(name) < providers.MinShort {
			return found, fmt.Errorf("revision %q: %w", name, providers.ErrNotExist)
		}
		for id := range r.has {
			switch {
			case !strings.HasPrefix(string(id), name):
			case found.Revision != "":
				return found, fmt.Errorf("revision %q is one of several: %w", name, providers.ErrInvalid)
			default:
				found = r.found(id)
			}
		}
		if found.Revision == "" {
			err = fmt.Errorf("revision %q: %w", name, providers.ErrNotExist)
		}
		return found, err
	})
}

func (r *Repository) found(id providers.Revision) providers.Found {
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	return providers.Found{Revision: id, Parents: slices.Clone(r.remote.revisions[id].parents)}
}

// Past is At for a caller that was given the revision before: the switches do not see the call.
func (r *Repository) Past(id providers.Revision) (providers.Provider, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.past(id)
}

// past is the verb of At.
func (r *Repository) past(id providers.Revision) (providers.Provider, error) {
	if err := r.mustHave(id); err != nil {
		return nil, err
	}
	r.remote.mu.Lock()
	files := r.remote.revisions.files(id).Fork(r.opts)
	r.remote.mu.Unlock()
	past := providers.Wrap(files, providers.WrapOptions{
		Hide: providers.AbilityCommit,
		Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			err := r.around(ctx, c.Method, func() error { return next(ctx) })
			return providers.Fail(name, c.Method, c.Locator, err, providers.ErrUnavailable)
		},
	})
	return providers.ReadOnly(past, providers.ReadOnlyOptions{Reason: "the past stays as it is"}), nil
}

func (r *Repository) mustHave(ids ...providers.Revision) error {
	for _, id := range ids {
		if !r.has[id] {
			return fmt.Errorf("revision %q: %w", id, providers.ErrNotExist)
		}
	}
	return nil
}
