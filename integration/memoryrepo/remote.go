package memoryrepo

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// mainBranch is tracked where no other is named.
const mainBranch = "main"

// Remote is the store that clones push to and fetch from: branches of revisions, each of a
// whole tree. Make it with NewRemote. All methods may be used at once.
type Remote struct {
	now func() time.Time

	mu        sync.Mutex // guards all below; taken while a clone's lock is held
	revisions commits
	branches  map[string]providers.Revision
	pulls     map[string]string // URL of the pull request from a branch
}

// revision is a commit. It never changes.
type revision struct {
	number  int // later than those of its parents
	parents []providers.Revision
	files   *memory.Provider
	set     providers.ChangeSet // for its message and authors; without changes
}

// NewRemote makes a Remote without a branch. now is the clock; nil: time.Now.
func NewRemote(now func() time.Time) *Remote {
	if now == nil {
		now = time.Now
	}
	return &Remote{
		now: now, revisions: commits{},
		branches: map[string]providers.Revision{}, pulls: map[string]string{},
	}
}

// Branches returns the branches and their revisions.
func (r *Remote) Branches() map[string]providers.Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.branches)
}

// Tamper commits one change to a branch ("": main) as another user's push does, and makes the
// branch if need be; a nil content removes the entry, with all below it.
func (r *Remote) Tamper(branch string, l providers.Locator, content []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	branch = orMain(branch)
	tip := r.branches[branch]
	after := r.revisions.files(tip).Fork(checkout(memory.Options{Now: r.now}))
	if err := after.Tamper(l, content); err != nil {
		return err
	}
	r.branches[branch] = r.revisions.add(after, providers.ChangeSet{Message: fmt.Sprintf("change %s", l)}, tip)
	return nil
}

// Reset is another user's forced push: it moves the branch ("": main) to a revision that some
// clone has pushed or committed, or deletes it with "".
func (r *Remote) Reset(branch string, to providers.Revision) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to == "" {
		delete(r.branches, orMain(branch))
		return nil
	}
	if r.revisions[to] == nil {
		return fmt.Errorf("revision %q: %w", to, providers.ErrNotExist)
	}
	r.branches[orMain(branch)] = to
	return nil
}

// Dump is the tree of a branch ("": main), as Provider.Dump has it.
func (r *Remote) Dump(branch string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revisions.files(r.branches[orMain(branch)]).Dump()
}

// Logged is the description of a revision.
type Logged struct {
	Revision  providers.Revision
	Parents   []providers.Revision
	Message   string
	Author    providers.Identity
	CoAuthors []providers.Identity
	Trailers  []providers.Trailer
	Op        string
}

// Log is the history of a branch ("": main), the newest first.
func (r *Remote) Log(branch string) []Logged {
	r.mu.Lock()
	defer r.mu.Unlock()
	var log []Logged
	for id := range r.revisions.history(r.branches[orMain(branch)]) {
		v := r.revisions[id]
		log = append(log, Logged{id, v.parents, v.set.Message, v.set.Author, v.set.CoAuthors, v.set.Trailers, v.set.Op})
	}
	slices.SortFunc(log, func(a, b Logged) int {
		return r.revisions[b.Revision].number - r.revisions[a.Revision].number
	})
	return log
}

func orMain(branch string) string {
	if branch == "" {
		return mainBranch
	}
	return branch
}

// commits are all revisions of a remote.
type commits map[providers.Revision]*revision

// files are those of a revision, none for none. They never change.
func (r commits) files(id providers.Revision) *memory.Provider {
	if v := r[id]; v != nil {
		return v.files
	}
	return memory.New(checkout(memory.Options{}))
}

// add makes a new revision.
func (r commits) add(files *memory.Provider, set providers.ChangeSet, parents ...providers.Revision) providers.Revision {
	set.Changes = nil
	number := len(r) + 1
	id := providers.Revision(fmt.Sprintf("c%d", number))
	parents = slices.DeleteFunc(parents, func(p providers.Revision) bool { return p == "" })
	r[id] = &revision{number, parents, files, set}
	return id
}

// history is a revision and all before it.
func (r commits) history(id providers.Revision) map[providers.Revision]bool {
	seen := map[providers.Revision]bool{}
	for next := []providers.Revision{id}; len(next) > 0; {
		id, next = next[0], next[1:]
		if v := r[id]; v != nil && !seen[id] {
			seen[id] = true
			next = append(next, v.parents...)
		}
	}
	return seen
}

// base is the last revision in the histories of both.
func (r commits) base(a, b providers.Revision) (last providers.Revision) {
	of := r.history(b)
	for id := range r.history(a) {
		if of[id] && (last == "" || r[id].number > r[last].number) {
			last = id
		}
	}
	return last
}
