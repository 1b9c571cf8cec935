package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Repository is a clone of a Remote: its commits stay in it until they are pushed. It promises
// as much as git can: no directories without entries, of all attributes only whether a file may
// be executed, versions that are made of the content. Make it with NewRepository.
type Repository struct {
	files  *Provider // the checkout: the tree of head; its lock guards all below
	remote *Remote
	branch string
	head   providers.Revision
	on     string                      // where commits go: branch, or one of the clone's own
	lines  map[string]*line            // state of the branches of its own
	known  providers.Revision          // the remote's tracked branch, as last known
	has    map[providers.Revision]bool // the revisions in the clone
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

// NewRepository makes a new clone, whose head is that of the tracked branch.
func NewRepository(remote *Remote, opts Options) *Repository {
	r := &Repository{
		files: newProvider(opts, without(repositoryCapabilities(), opts.Without)), remote: remote,
		branch: orMain(opts.Branch), on: orMain(opts.Branch), lines: map[string]*line{}, has: map[providers.Revision]bool{},
	}
	r.files.switches.afar = func(m providers.Method) bool {
		return m == providers.MethodPush || m == providers.MethodFetch || m == providers.MethodPropose
	}
	remote.mu.Lock()
	defer remote.mu.Unlock()
	r.known = remote.branches[r.branch]
	r.learn(r.known)
	r.show(r.known)
	return r
}

func repositoryCapabilities() providers.Capabilities {
	c := without(capabilities(), providers.Capabilities{
		EmptyDirs: true, Metadata: true, OperationIDs: true, UniqueVersions: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs,
		Abilities:  providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityParts,
	})
	c.Attributes = providers.AttrExec
	c.Abilities |= providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync | providers.AbilityRebase | providers.AbilityDiffer |
		providers.AbilityBranch
	return c
}

// learn notes that a revision and all before it are in the clone.
func (r *Repository) learn(id providers.Revision) { maps.Copy(r.has, r.remote.revisions.history(id)) }

// show makes a revision the head.
func (r *Repository) show(id providers.Revision) {
	r.head, r.files.tree = id, r.remote.revisions.tree(id)
}

// Capabilities implements providers.Provider.
func (r *Repository) Capabilities() providers.Capabilities { return r.files.Capabilities() }

// Switches make Push and Fetch slow, or fail, and other verbs fail.
func (r *Repository) Switches() *Switches { return r.files.switches }

// Dump is Provider.Dump of the head.
func (r *Repository) Dump() []string { return r.files.Dump() }

// Stat implements providers.Provider.
func (r *Repository) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return r.files.Stat(ctx, l)
}

// List implements providers.Provider.
func (r *Repository) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return r.files.List(ctx, l, opts)
}

// Read implements providers.Provider.
func (r *Repository) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return r.files.Read(ctx, l, opts)
}

// Mkdir implements providers.Provider: it is ErrUnsupported.
func (r *Repository) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return r.files.Mkdir(ctx, l, opts)
}

// Close implements providers.Provider. The remote stays.
func (r *Repository) Close() error { return r.files.Close() }

// Write implements providers.Provider: it is a set of one change.
func (r *Repository) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	content, err := whole(ctx, body)
	if err != nil {
		return providers.Info{}, providers.Fail(name, providers.MethodWrite, l, err, providers.ErrUnavailable)
	}
	change := providers.Change{Locator: l, If: opts.If, Kind: opts.Kind, Attr: opts.Attr, Metadata: opts.Metadata}
	result, err := r.single(ctx, providers.MethodWrite, change, content)
	if err != nil {
		return providers.Info{}, err
	}
	return result.Entries[0], nil
}

// Delete implements providers.Provider: it is a set of one change.
func (r *Repository) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	change := providers.Change{Locator: l, Delete: true, If: opts.If, Dir: opts.If.Kind == providers.ConditionDir}
	_, err := r.single(ctx, providers.MethodDelete, change, nil)
	return err
}

func (r *Repository) single(ctx context.Context, m providers.Method, c providers.Change, body []byte) (providers.CommitResult, error) {
	return do(ctx, r.files, m, c.Locator, func() (providers.CommitResult, error) {
		if !c.Delete {
			if _, err := r.files.tree.find(c.Locator); err != nil {
				return providers.CommitResult{}, err
			}
		}
		set := providers.ChangeSet{Message: fmt.Sprintf("%s %s", m, c.Locator), Changes: []providers.Change{c}}
		return r.commit(set, [][]byte{body})
	})
}

// Head implements providers.Committer.
func (r *Repository) Head(ctx context.Context) (providers.Revision, error) {
	return do(ctx, r.files, providers.MethodHead, providers.Locator{}, func() (providers.Revision, error) {
		return r.head, nil
	})
}

// Commit implements providers.Committer.
func (r *Repository) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	bodies, err := readBodies(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	return do(ctx, r.files, providers.MethodCommit, providers.Locator{}, func() (providers.CommitResult, error) {
		return r.commit(set, bodies)
	})
}

func (r *Repository) commit(set providers.ChangeSet, bodies [][]byte) (providers.CommitResult, error) {
	if result, known, err := r.files.sets.decide(set, r.head); known {
		return result, err
	}
	if set.Merge != "" && !r.has[set.Merge] {
		return providers.CommitResult{}, fmt.Errorf("revision %q: %w", set.Merge, providers.ErrNotExist)
	}
	run := newRun(r.files.tree, &r.files.mint, set, bodies)
	entries, err := run.do()
	if err != nil {
		return providers.CommitResult{}, err
	}
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	merges := set.Merge != "" && !r.remote.revisions.history(r.head)[set.Merge]
	if !merges && same(run.before.root, run.after.root) {
		return providers.CommitResult{Revision: r.head, Entries: entries}, nil
	}
	parents := []providers.Revision{r.head}
	if merges {
		parents = append(parents, set.Merge)
	}
	id := r.remote.revisions.add(run.after, set, parents...)
	r.has[id] = true
	r.show(id)
	result := providers.CommitResult{Revision: id, Committed: true, Entries: entries}
	r.files.sets.made(set, result)
	return result, nil
}

// At implements providers.Snapshotter.
func (r *Repository) At(ctx context.Context, id providers.Revision) (providers.Provider, error) {
	return do(ctx, r.files, providers.MethodAt, providers.Locator{}, func() (providers.Provider, error) {
		return r.past(id)
	})
}

// Find implements providers.Snapshotter.
func (r *Repository) Find(ctx context.Context, name string) (providers.Found, error) {
	return do(ctx, r.files, providers.MethodFind, providers.Locator{}, func() (found providers.Found, err error) {
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
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	return r.past(id)
}

// past is the verb of At.
func (r *Repository) past(id providers.Revision) (providers.Provider, error) {
	if err := r.mustHave(id); err != nil {
		return nil, err
	}
	caps := r.Capabilities()
	caps.Abilities = 0
	past := newProvider(r.files.opts, caps)
	past.switches = r.files.switches
	r.remote.mu.Lock()
	past.tree = r.remote.revisions.tree(id)
	r.remote.mu.Unlock()
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

// same reports whether two trees are equal. Shared parts are not compared.
func same(a, b *node) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.kind == b.kind && a.attr.Equal(b.attr) && bytes.Equal(a.content, b.content) &&
		sameEntries(a.entries, b.entries)
}

// sameEntries relies on the same names making the same treap.
func sameEntries(a, b *entries) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.name == b.name && same(a.node, b.node) &&
		sameEntries(a.left, b.left) && sameEntries(a.right, b.right)
}
