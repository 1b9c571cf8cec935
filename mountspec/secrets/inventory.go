package secrets

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// entryOf finds a slug in an inventory.
func entryOf(inv *mountspec.Secrets, slug string) *mountspec.SecretEntry {
	if inv == nil {
		return nil
	}
	for i := range inv.Entries {
		if inv.Entries[i].Slug == slug {
			return &inv.Entries[i]
		}
	}
	return nil
}

// claimant finds the entry that an environment name means: one that lists
// the name (metadata.bindings.env, or an exposure of kind env, which also
// names a field), else the one whose slug the name makes.
func claimant(inv *mountspec.Secrets, name string) (e *mountspec.SecretEntry, field string) {
	if inv == nil {
		return nil, ""
	}
	for i := range inv.Entries {
		e := &inv.Entries[i]
		for _, x := range e.Exposures {
			if x.Kind == "env" && x.Params["name"] == name {
				field, _ := x.Params["field"].(string)
				return e, field
			}
		}
		if slices.Contains(e.BindEnv, name) {
			return e, ""
		}
	}
	return entryOf(inv, SlugOf(name)), ""
}

// Merge joins inventories (AIP-19: .secrets/SECRETS.md and those of
// services). A slug that is in two of them is an error.
func Merge(invs ...*mountspec.Secrets) (*mountspec.Secrets, error) {
	out := &mountspec.Secrets{}
	seen := map[string]mountspec.Pos{}
	for _, inv := range invs {
		for _, e := range inv.Entries {
			if first, twice := seen[e.Slug]; twice {
				return nil, missing(e.Slug, "it is declared at "+first.String()+" and at "+e.Pos.String(), "remove one")
			}
			seen[e.Slug] = e.Pos
			out.Entries = append(out.Entries, e)
		}
	}
	return out, nil
}

// admits asks the access lists of an inventory entry. Activating a storage
// binds the secret to it, which a reveal list covers as well. Without any
// list the host's own grant is the only rule.
func admits(name string, e *mountspec.SecretEntry, s Subject) error {
	if e == nil || e.Access.Bind == nil && e.Access.Reveal == nil {
		return nil
	}
	for _, a := range slices.Concat(e.Access.Bind, e.Access.Reveal) {
		if matches(a, s) {
			return nil
		}
	}
	return denied(name, "its access list in "+e.Pos.String()+" does not name "+who(s), "add the principal, or tool: wsmount, to access.bind there")
}

func who(s Subject) string {
	if s.UserID == "" {
		return "the mounting principal"
	}
	return s.UserID
}

// matches compares one access entry. Kinds that are not known never match
// (AIP-19: skipped).
func matches(a mountspec.AccessEntry, s Subject) bool {
	switch a.Kind {
	case "role":
		return slices.Contains(s.Roles, a.Value)
	case "userId":
		id, isUser := strings.CutPrefix(s.UserID, "user://")
		return a.Value != "" && (a.Value == s.UserID || isUser && a.Value == id)
	case "cap":
		return slices.Contains(s.Caps, a.Value)
	case "tool":
		return a.Value == "wsmount"
	}
	return false
}
