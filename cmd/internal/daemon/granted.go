package daemon

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
)

var errNotGranted = errors.New("the policy does not grant it")

// decide asks the policy anew: grants end, the host's facts change, and limits
// are reached (AIP-38).
func (k *syncer) decide(action string) policy.Decision {
	return k.r.Evaluate(action, k.now(), k.copy.acts.Done())
}

// allowed refuses an action that the policy does not grant now, and records that in the audit.
func (k *syncer) allowed(action string) error { return k.allows(action, k.copy.acts.Done()) }

// allows is allowed with given counts of past actions.
func (k *syncer) allows(action string, done policy.Done) error {
	if k.sync.Mode != mountspec.ModePullPush {
		return nil
	}
	d := k.r.Evaluate(action, k.now(), done)
	if d.Allow {
		return nil
	}
	err := k.audit.Write(audit.DecisionOf(k.name, d))
	return errors.Join(fmt.Errorf("%s: %w for %s: %s", action, errNotGranted, k.r.Principal, d.Reason), err)
}

// begin is allowed for an action done at once, and counts it; undo removes it from the count.
func (k *syncer) begin(action string) (undo func() error, err error) {
	return k.copy.acts.Begin(action, func(done policy.Done) error { return k.allows(action, done) })
}

// beginCommit is begin for a commit.
func (k *syncer) beginCommit() (undo func() error, err error) { return k.begin(policy.Commit) }

// allowedAgain starts the work that waits for an action now, before its next retry.
func (k *syncer) allowedAgain(action string) {
	switch action {
	case policy.Push:
		k.retries.pushed(nil)
	case policy.Commit:
		k.copy.Rouse()
	}
}
