// Package usualenv says to which owner the usual variables of the host's environment belong,
// such as AWS_ACCESS_KEY_ID, which a storage has without the host configuration listing them.
//
// They are the credentials of one person, so one owner has them: the one whose workspace
// was the first in the registry. The registry records it, and so it stays: an owner who is
// registered later neither gets them nor takes them away.
//
//	known := usualenv.Known{Recorded: registry.UsualEnv, Registered: addresses}
//	rule, whyNot := known.Rule("acme")
//	registry.UsualEnv = known.Entering("acme") // before a workspace of acme is entered
package usualenv

import (
	"slices"

	"github.com/wsmount/wsmount/mountspec"
)

// Known is the host's knowledge of its workspaces.
type Known struct {
	// Recorded is the owner that the registry has on record, "" for none of its owners; nil:
	// it has none, or an older wsmount wrote it.
	Recorded *string
	// Registered are the addresses in the registry, Listed those in the host configuration.
	// An entry that is no address belongs to another owner.
	Registered, Listed []string
}

// Entering is the value for the registry to record when a workspace of owner is entered.
func (k Known) Entering(owner string) *string {
	if k.Recorded != nil && len(k.Registered) > 0 {
		return k.Recorded
	}
	owners := []string{}
	for _, addr := range slices.Concat(k.Registered, k.Listed) {
		a, _ := mountspec.ParseAddress(addr)
		owners = append(owners, a.Owner)
	}
	if len(k.Registered) == 0 {
		owners = append(owners, owner)
	}
	if slices.Sort(owners); owners[0] != owners[len(owners)-1] { // it could belong to another
		owners[0] = ""
	}
	return &owners[0]
}

// Rule is by which rule a workspace of owner has the variables, or why it has not.
func (k Known) Rule(owner string) (rule, whyNot string) {
	switch is := *k.Entering(owner); is {
	case owner:
		return "usual name, of the owner who was registered first", ""
	case "":
		return "", "the usual variables of this host are of none of its owners"
	default:
		return "", "the usual variables of this host are of @" + is + ", who was registered first"
	}
}
