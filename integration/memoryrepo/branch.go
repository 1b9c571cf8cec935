package memoryrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// line is the state of a branch beside the tracked one.
type line struct {
	here   providers.Revision // local tip, or that when the head left it; "": not begun locally
	theirs providers.Revision // tip at the remote, as far as is known; "": not at the remote
	pushed providers.Revision // revision last pushed to it
	url    string             // of its pull request
	wanted time.Time          // since when it should have one
}

// lineOf returns the state of a branch, and creates it if need be.
func (r *Repository) lineOf(branch string) *line {
	if r.lines[branch] == nil {
		r.lines[branch] = &line{}
	}
	return r.lines[branch]
}

// validBranch reports whether git takes a name for a branch, roughly.
func validBranch(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.Contains(name, "..") && !strings.ContainsAny(name, " ~^:?*[\\")
}

// tip is the revision of a branch in the clone.
func (r *Repository) tip(branch string) providers.Revision {
	if branch == r.on {
		return r.head
	}
	return r.lineOf(branch).here
}

// unmerged are the revisions that a tip has and the tracked branch lacks. Both locks are held,
// as for all functions below.
func (r *Repository) unmerged(tip providers.Revision) map[providers.Revision]bool {
	lacks := r.remote.revisions.history(tip)
	for id := range r.remote.revisions.history(r.known) {
		delete(lacks, id)
	}
	return lacks
}

// isOver reports whether nothing of a branch waits to be merged: all is merged, or all was
// pushed and then the branch deleted at the remote, which was a decision.
func (r *Repository) isOver(branch string, tip providers.Revision) bool {
	l := r.lineOf(branch)
	return len(r.unmerged(tip)) == 0 || l.theirs == "" && l.pushed == tip
}

// Branches implements providers.Brancher.
func (r *Repository) Branches(ctx context.Context) (providers.Branches, error) {
	return do(ctx, r, providers.MethodBranches, providers.Locator{}, func() (providers.Branches, error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		all := providers.Branches{Tracked: r.branch, Tip: r.known}
		if r.on != r.branch {
			all.On = r.on
		}
		ours := r.unmerged(r.head)
		for _, name := range slices.Sorted(maps.Keys(r.lines)) {
			l, tip := r.lines[name], r.tip(name)
			theirs := r.remote.revisions.history(l.theirs)
			maps.DeleteFunc(ours, func(id providers.Revision, _ bool) bool { return theirs[id] })
			if r.isOver(name, tip) {
				continue
			}
			all.Unmerged = append(all.Unmerged, providers.Branch{Name: name, Revision: tip, Commits: len(r.unmerged(tip)),
				Pushed: theirs[tip], URL: l.url, Wanted: l.wanted})
		}
		all.Unpushed = len(ours)
		return all, nil
	})
}

// Begin implements providers.Brancher. With ask it counts as a Fetch for the Switches.
func (r *Repository) Begin(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
	if branch != "" && !validBranch(branch) {
		return "", providers.Fail(name, providers.MethodBegin, providers.Locator{}, fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid), providers.ErrUnavailable)
	}
	if ask {
		if err := r.learnBoth(ctx, branch); err != nil {
			return "", err
		}
	}
	return do(ctx, r, providers.MethodBegin, providers.Locator{}, func() (providers.Revision, error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		return r.beginning(branch), nil
	})
}

// learnBoth fetches the remote's state of the tracked branch and of another.
func (r *Repository) learnBoth(ctx context.Context, branch string) error {
	_, err := do(ctx, r, providers.MethodFetch, providers.Locator{}, func() (none struct{}, _ error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		r.learnTracked()
		if branch != "" {
			r.learnOwn(branch)
		}
		return none, nil
	})
	return err
}

// beginning is the revision where a branch begins, as far as is known.
func (r *Repository) beginning(branch string) providers.Revision {
	if branch == "" {
		return r.known
	}
	at := r.tip(branch)
	if theirs := r.lineOf(branch).theirs; theirs != "" && (at == "" || r.remote.revisions.history(theirs)[at]) {
		at = theirs
	}
	if at == "" || r.isOver(branch, at) {
		return r.known
	}
	return at
}

// learnTracked and learnOwn are learnBoth for one of them.
func (r *Repository) learnTracked() {
	r.known = r.remote.branches[r.branch]
	r.learn(r.known)
}

func (r *Repository) learnOwn(branch string) {
	l := r.lineOf(branch)
	l.theirs = r.remote.branches[branch]
	r.learn(l.theirs)
}

// Start implements providers.Brancher.
func (r *Repository) Start(ctx context.Context, branch string, from, to providers.Revision) error {
	_, err := do(ctx, r, providers.MethodStart, providers.Locator{}, func() (none struct{}, err error) {
		if branch == r.branch || branch != "" && !validBranch(branch) {
			return none, fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid)
		}
		if branch == "" {
			branch = r.branch
		}
		if from == "" && to == "" {
			return none, nil
		}
		if branch == r.on {
			return none, r.adopt(from, to)
		}
		return none, r.start(branch, from, to)
	})
	return err
}

// start is Start of another branch.
func (r *Repository) start(branch string, from, to providers.Revision) error {
	if err := r.mustHave(to); err != nil {
		return err
	}
	if r.head != from {
		return fmt.Errorf("the head is %q and not %q: %w", r.head, from, providers.ErrConflict)
	}
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	if r.on != r.branch {
		r.lineOf(r.on).here = r.head
	}
	if r.on = branch; branch != r.branch {
		r.lineOf(branch)
	}
	r.show(to)
	return nil
}

// upstream is the branch that the head was pushed to: the current one or, if that is new, the
// one that was current before.
func (r *Repository) upstream() string {
	if r.remote.branches[r.on] != "" {
		return r.on
	}
	up, last := r.on, 0
	ours := r.unmerged(r.head)
	for name, l := range r.lines {
		if r.remote.branches[name] != "" && ours[l.theirs] && r.remote.revisions[l.theirs].number > last {
			up, last = name, r.remote.revisions[l.theirs].number
		}
	}
	return up
}

// putAway notes which branches the remote no longer has, and removes those with nothing left to
// merge.
func (r *Repository) putAway() {
	for name, l := range r.lines {
		if r.remote.branches[name] == "" {
			l.theirs = ""
		}
		if name != r.on && r.isOver(name, l.here) && l.here != "" {
			delete(r.lines, name)
		}
	}
}

// onward is the revision to go on from while commits go to a branch of the clone's own, if that
// is not in the tracked branch; else "".
func (r *Repository) onward() providers.Revision {
	up := r.upstream()
	r.learnOwn(up)
	if theirs := r.lines[up].theirs; len(r.unmerged(theirs)) > 0 {
		return theirs
	}
	return ""
}

// Propose implements providers.Brancher.
func (r *Repository) Propose(ctx context.Context, branch string, _ providers.PullRequest) (string, error) {
	if branch == r.branch || !validBranch(branch) {
		return "", providers.Fail(name, providers.MethodPropose, providers.Locator{}, providers.ErrInvalid, providers.ErrUnavailable)
	}
	r.wants(branch)
	return do(ctx, r, providers.MethodPropose, providers.Locator{}, func() (url string, _ error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		l := r.lineOf(branch)
		if len(r.unmerged(l.theirs)) > 0 {
			url = r.remote.pull(branch, r.branch)
			l.url = url
		}
		l.wanted = time.Time{}
		return url, nil
	})
}

// wants notes that a branch should have a pull request, before the attempt.
func (r *Repository) wants(branch string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	if l := r.lineOf(branch); l.wanted.IsZero() && len(r.unmerged(l.theirs)) > 0 {
		l.wanted = r.remote.now()
	}
}
