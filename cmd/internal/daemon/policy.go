package daemon

import (
	"math"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/policy"
)

const (
	// canonicalTTL is how long names and versions of a canonical store count as fresh.
	canonicalTTL = time.Second
	// writeBackWindow is the batch window of a canonical store if the host allows
	// that closes do not wait for it, unless its manifest has another.
	writeBackWindow = time.Second
)

// policyOf translates a manifest's sync block for a working copy, which never pushes by itself:
// the syncer does, and can report the result. writeBack means that the host lets closes of a
// canonical store return early; its commit block counts then.
//
// A policy that grants no storage:commit holds back the commits of a synchronised store. A
// canonical store has no commits: each write is AIP-38's storage:write.
func policyOf(r *host.Resolved, writeBack bool) cache.Policy {
	s := r.Storage.Sync
	p := cache.Policy{Conflict: conflictPolicy(s.Conflict, r.Location.Service), MergeCommits: s.Conflict == mountspec.ConflictMerge}
	switch {
	case s.Mode == mountspec.ModePullPush:
		p.NoWait, p.Atomic = true, true
		p.Commit, p.Window = dueOf(s), s.Commit.Batch
		if r.HoldCommit && !r.PolicyVaries(policy.Commit) { // else the working copy asks each time
			p.Commit, p.MaxUnsaved = cache.DueAsked, math.MaxInt64
		}
	case writeBack:
		p.NoWait, p.TTL = true, canonicalTTL
		p.Commit, p.Window = dueOf(s), writeBackWindow
		if s.Explicit("commit.batch_window_ms") {
			p.Window = s.Commit.Batch
		}
	default:
		p.TTL = canonicalTTL
	}
	return p
}

// dueOf says whether each change is due at once, or only when an event asks for it.
func dueOf(s mountspec.Sync) cache.Due {
	if s.Commit.On.Resolve() == mountspec.EventWrite {
		return cache.DueChange
	}
	return cache.DueAsked
}

// conflictPolicy maps AIP-35's conflict policies. A repository holds texts: if both
// versions are to be kept, they go into one file where possible.
func conflictPolicy(c mountspec.ConflictPolicy, service string) cache.Conflict {
	switch {
	case c == mountspec.ConflictAbort:
		return cache.Abort
	case c == mountspec.ConflictLastWriterWins:
		return cache.LastWriterWins
	case c == mountspec.ConflictManual:
		return cache.Manual
	case service != host.ServiceGit:
		return cache.SplitConflicts
	case c == mountspec.ConflictSplit:
		return cache.Markers
	}
	return cache.Combine
}

// checkCached refuses settings that no working copy of this workspace can follow.
func checkCached(r *host.Resolved, writeBack bool) error {
	mode := r.Storage.Sync.Mode
	if mode == mountspec.ModeWatch {
		return exit.New(exit.Manifest, "%s: %s cannot be mounted in mode watch: it does not tell of changes", r.Address, r.Storage.Provider).
			Hint("write canonical or pull-push as sync.mode of %s", r.Written())
	}
	if writeBack && mode != mountspec.ModePullPush && !r.Grants.WriteBack {
		return exit.New(exit.Denied, "%s: the host does not grant write-back to its owner", r.Address).
			Hint("add %q to allow_write_back of the host configuration, or leave --write-back out", "@"+r.Address.Owner+"/*")
	}
	if r.Location.Service == host.ServiceGit {
		return checkGit(r)
	}
	if syncpolicy.HasBranches(r.Storage.Sync) {
		return exit.New(exit.Manifest, "%s: %s has no branches", r.Address, r.Storage.Provider).
			Hint("leave sync.push.branch_policy and pr_policy out of %s", r.Written())
	}
	return nil
}

// checkPulls refuses pull requests that could never be opened.
func checkPulls(r *host.Resolved) error {
	switch {
	case !syncpolicy.HasPulls(r.Storage.Sync):
	case !syncpolicy.HasBranches(r.Storage.Sync):
		return exit.New(exit.Manifest, "%s: there are no pull requests from the tracked branch to itself", r.Address).
			Hint("write per-conversation or per-turn as sync.push.branch_policy of %s, or none as pr_policy", r.Written())
	case r.Grants.API == "":
		return exit.New(exit.Manifest, "%s: pull requests need the API of %s", r.Address, r.Location.Endpoint).
			Hint("name it as providers.github.api_url in the host configuration, which no server over git:// has, or write none as sync.push.pr_policy of %s", r.Written())
	case r.Grants.App == nil && r.Grants.Secrets == nil && !r.ReadOnly.Lasting().On():
		return exit.New(exit.Denied, "%s: a pull request needs credentials", r.Address).
			Hint("name a token in auth.state.env of %s, or write none as sync.push.pr_policy", r.Written())
	}
	return nil
}

// checkGit refuses settings that repositories do not support, and commits without an author.
func checkGit(r *host.Resolved) error {
	primary, _, _ := mountspec.Authors(r.Identity)
	config, _ := r.Storage.Config.(mountspec.GitHubConfig)
	switch {
	case r.Grants.App != nil && r.Grants.API == "":
		return exit.New(exit.Manifest, "%s: a GitHub App needs the API of %s", r.Address, r.Location.Endpoint).
			Hint("name it as providers.github.api_url in the host configuration")
	case !r.ReadOnly.Lasting().On() && primary.Email == "" && config.DefaultCommitEmail == "" && (primary.Ref == mountspec.CurrentOperator || primary.Ref == mountspec.CurrentUser):
		return exit.New(exit.Manifest, "%s: %s, the author of commits, has no name and e-mail address", r.Address, primary.Ref).
			Hint("give --operator 'NAME <mail>', or tell git: git config --global user.name NAME, and user.email")
	case !r.ReadOnly.Lasting().On() && primary.Email == "" && config.DefaultCommitEmail == "":
		return exit.New(exit.Manifest, "%s: commits have no author", r.Address).
			Hint("add identity: [ { ref: operator://current } ], or a name and an email, or default_commit_email, to %s", r.Written())
	}
	return checkPulls(r)
}
