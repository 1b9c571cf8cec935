package mountspec

import "time"

// Sync is AIP-35's sync block with every default applied. Set records the keys that
// the manifest itself gave: "mode", "pull.on", "pull.ttl_seconds",
// "commit.on", "commit.batch_window_ms", "commit.message_template", "push.on",
// "push.branch_policy", "push.pr_policy" and "conflict.policy". In a struct
// given to DefineStorage a zero value means "the default" unless Set names it.
// Pull, Push and Conflict stay empty where the mode has none of it.
type Sync struct {
	Mode     Mode
	Pull     Pull
	Commit   Commit
	Push     Push
	Conflict ConflictPolicy // empty where nothing can conflict
	Set      map[string]bool
	Pos      Pos // zero when the manifest has no sync
}

// Explicit reports whether the manifest itself gave the value.
func (s Sync) Explicit(key string) bool { return s.Set[key] }

// Present reports whether the manifest has a sync block that says anything.
func (s Sync) Present() bool { return len(s.Set) > 0 }

// Pull says when the remote is asked.
type Pull struct {
	On  Trigger
	TTL time.Duration // how long pulled content counts as fresh
}

// Commit says when changes become a commit.
type Commit struct {
	On       Trigger
	Batch    time.Duration // changes within it go together
	Template string        // ParseTemplate accepts it
}

// Push says when and where commits go.
type Push struct {
	On     Trigger
	Branch BranchPolicy
	PR     PRPolicy
}
