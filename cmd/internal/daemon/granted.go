package daemon

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
)

var errNotGranted = errors.New("the policy does not grant it")

// allowed asks the policy now, since grants end (AIP-38).
func (k *syncer) allowed(action string) error {
	if k.sync.Mode != mountspec.ModePullPush {
		return nil
	}
	d := k.r.Evaluate(action, k.now(), nil)
	if d.Allow {
		return nil
	}
	err := k.audit.Write(audit.PolicyDecision{Workspace: k.name, Principal: k.r.Principal, Action: action, Decision: "deny", Reason: string(d.Reason)})
	return errors.Join(fmt.Errorf("%s: %w for %s: %s", action, errNotGranted, k.r.Principal, d.Reason), err)
}

// granted is allowed for what a user asks for.
func (k *syncer) granted(action string) error {
	if err := k.allowed(action); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	return nil
}
