package audit

import "github.com/wsmount/wsmount/mountspec/policy"

// A Record is one event. The set is closed: only the structs of this
// file can be written, and none of them has a field for a value.
type Record interface {
	event() string
	durable() bool   // also on the disk before Write returns
	bounded() Record // a copy whose texts are at most maxText long
}

// An Actor is the acting user, in AIP-19's words.
type Actor struct {
	UserID string   `json:"userId,omitempty"`
	Roles  []string `json:"roles,omitempty"`
}

// RevealAsked says that the source of a secret is going to be asked. The outcome,
// a Reveal or a RevealFailed, follows.
type RevealAsked Reveal

// Reveal says that a secret was obtained, and is handed to a storage (AIP-19 secret.reveal).
// It holds the secret's name and where it comes from.
type Reveal struct {
	Slug           string   `json:"slug"`
	Actor          Actor    `json:"actor"`
	Workspace      string   `json:"workspace"`
	Purpose        string   `json:"purpose"`
	GrantedBy      string   `json:"granted_by"` // the entry that matched
	Source         string   `json:"source"`     // "environment", "file" or "command"
	Retention      string   `json:"retention,omitempty"`
	PII            bool     `json:"pii,omitempty"`
	Classification []string `json:"classification,omitempty"`
}

// RevealDenied says that a secret was asked for and not handed out (AIP-19
// secret.reveal.denied). The source was not asked.
type RevealDenied struct {
	Slug      string `json:"slug"`
	Actor     Actor  `json:"actor"`
	Workspace string `json:"workspace"`
	Purpose   string `json:"purpose"`
	Reason    string `json:"reason"`
}

// RevealFailed says that a secret was granted and could not be obtained.
type RevealFailed RevealDenied

// Denied says that something which only the host can grant was asked for:
// a path, an endpoint, a bucket, an environment variable, a registration.
type Denied struct {
	Workspace string `json:"workspace,omitempty"`
	What      string `json:"what"`
	Reason    string `json:"reason"`
}

// PolicyDecision is AIP-38's decision record.
type PolicyDecision struct {
	Workspace string   `json:"workspace"`
	Principal string   `json:"principal"`
	Action    string   `json:"action"`
	Decision  string   `json:"decision"` // "allow" or "deny"
	Reason    string   `json:"reason"`
	GrantID   string   `json:"grantId,omitempty"`
	Chain     []string `json:"policyChain,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// DecisionOf is the record of a decision about a workspace.
func DecisionOf(workspace string, d policy.Decision) PolicyDecision {
	r := PolicyDecision{Workspace: workspace, Principal: d.Principal, Action: d.Action, Decision: d.Verdict,
		Reason: string(d.Reason), GrantID: d.GrantID, Warnings: d.Warnings}
	for _, c := range d.PolicyChain {
		r.Chain = append(r.Chain, c.Layer+" "+c.Source)
	}
	return r
}

// CrossOwnerRef says that a manifest refers to a block of another owner.
type CrossOwnerRef struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Kind    string `json:"kind"` // storage, sandbox, code, policy, secrets, mount or template
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// Push says that changes leave the machine.
type Push struct {
	Workspace string `json:"workspace"`
	Principal string `json:"principal"`
	Remote    string `json:"remote"` // origin and repository or bucket, no credentials
	Branch    string `json:"branch,omitempty"`
	Revision  string `json:"revision,omitempty"`

	PullRequest string `json:"pullRequest,omitempty"` // its URL: it is open from Branch
}

// Conflict says how a conflict was decided and which version was overwritten.
type Conflict struct {
	Workspace string `json:"workspace"`
	Path      string `json:"path"`
	Policy    string `json:"policy"`
	Outcome   string `json:"outcome"`
	Lost      string `json:"lost,omitempty"` // version that was overwritten
}

// Registration says that the registry of workspaces changed.
type Registration struct {
	Workspace string `json:"workspace"`
	Verb      string `json:"verb"` // add, remove, accept or set
	Manifest  string `json:"manifest,omitempty"`
	Digest    string `json:"digest,omitempty"`
}

// PersonalWriteAsked says that an agent is going to write in the operator's own space. The
// outcome, a PersonalWrite or a PersonalWriteFailed, follows, unless the agent was killed.
type PersonalWriteAsked PersonalWrite

// PersonalWrite says that an agent has written in the operator's own space, which the
// operator asked for.
type PersonalWrite struct {
	Space        string `json:"space"`
	Locator      string `json:"locator"`
	AuthorizedBy string `json:"authorizedBy"`
	Principal    string `json:"principal"`
}

// PersonalWriteFailed says that such a write has failed.
type PersonalWriteFailed struct {
	PersonalWrite
	Reason string `json:"reason"`
}

// Published says that a workspace's files were written into a bundle (AIP-39
// workspace-published), which others may be given.
type Published struct {
	Workspace string `json:"workspace"`
	Version   string `json:"version"`
	Principal string `json:"principal"`
	Bundle    string `json:"bundle"` // its path
	SHA256    string `json:"sha256"`
}

func (RevealAsked) event() string         { return "secret.reveal.asked" }
func (Reveal) event() string              { return "secret.reveal" }
func (RevealFailed) event() string        { return "secret.reveal.failed" }
func (RevealDenied) event() string        { return "secret.reveal.denied" }
func (Denied) event() string              { return "denied" }
func (PolicyDecision) event() string      { return "policy.decision" }
func (CrossOwnerRef) event() string       { return "ref.cross-owner" }
func (Push) event() string                { return "storage.push" }
func (Conflict) event() string            { return "storage.conflict" }
func (Registration) event() string        { return "registry" }
func (PersonalWriteAsked) event() string  { return "memory.personal-write.asked" }
func (PersonalWrite) event() string       { return "memory.personal-write" }
func (PersonalWriteFailed) event() string { return "memory.personal-write.failed" }
func (Published) event() string           { return "workspace.published" }

func (RevealAsked) durable() bool         { return true }
func (Reveal) durable() bool              { return true }
func (RevealFailed) durable() bool        { return true }
func (RevealDenied) durable() bool        { return true }
func (Denied) durable() bool              { return true }
func (r PolicyDecision) durable() bool    { return r.Decision != "allow" }
func (r CrossOwnerRef) durable() bool     { return !r.Allowed }
func (Push) durable() bool                { return false }
func (Conflict) durable() bool            { return false } // may come by the thousand
func (Registration) durable() bool        { return true }
func (PersonalWriteAsked) durable() bool  { return true }
func (PersonalWrite) durable() bool       { return true }
func (PersonalWriteFailed) durable() bool { return true }
func (Published) durable() bool           { return true }

func (r RevealAsked) bounded() Record  { return RevealAsked(Reveal(r).shortened()) }
func (r Reveal) bounded() Record       { return r.shortened() }
func (r RevealFailed) bounded() Record { return RevealFailed(RevealDenied(r).shortened()) }
func (r RevealDenied) bounded() Record { return r.shortened() }

func (r Reveal) shortened() Reveal {
	cut(&r.Slug, &r.Workspace, &r.Purpose, &r.GrantedBy, &r.Source, &r.Retention)
	r.Actor, r.Classification = r.Actor.bounded(), cutAll(r.Classification)
	return r
}

func (r RevealDenied) shortened() RevealDenied {
	cut(&r.Slug, &r.Workspace, &r.Purpose, &r.Reason)
	r.Actor = r.Actor.bounded()
	return r
}

func (r Denied) bounded() Record { cut(&r.Workspace, &r.What, &r.Reason); return r }

func (r PolicyDecision) bounded() Record {
	cut(&r.Workspace, &r.Principal, &r.Action, &r.Decision, &r.Reason, &r.GrantID)
	r.Chain, r.Warnings = cutAll(r.Chain), cutAll(r.Warnings)
	return r
}

func (r CrossOwnerRef) bounded() Record { cut(&r.From, &r.To, &r.Kind, &r.Reason); return r }

func (r Push) bounded() Record {
	cut(&r.Workspace, &r.Principal, &r.Remote, &r.Branch, &r.Revision, &r.PullRequest)
	return r
}

func (r Conflict) bounded() Record {
	cut(&r.Workspace, &r.Path, &r.Policy, &r.Outcome, &r.Lost)
	return r
}

func (r Registration) bounded() Record {
	cut(&r.Workspace, &r.Verb, &r.Manifest, &r.Digest)
	return r
}

func (r PersonalWriteAsked) bounded() Record { return PersonalWriteAsked(PersonalWrite(r).shortened()) }
func (r PersonalWrite) bounded() Record      { return r.shortened() }

func (r PersonalWriteFailed) bounded() Record {
	cut(&r.Reason)
	r.PersonalWrite = r.shortened()
	return r
}

func (r PersonalWrite) shortened() PersonalWrite {
	cut(&r.Space, &r.Locator, &r.AuthorizedBy, &r.Principal)
	return r
}

func (r Published) bounded() Record {
	cut(&r.Workspace, &r.Version, &r.Principal, &r.Bundle, &r.SHA256)
	return r
}

func (a Actor) bounded() Actor {
	cut(&a.UserID)
	a.Roles = cutAll(a.Roles)
	return a
}

func cut(texts ...*string) {
	for _, s := range texts {
		if len(*s) > maxText {
			*s = (*s)[:maxText] + "..."
		}
	}
}

// maxList bounds the lists of a record.
const maxList = 64

func cutAll(list []string) []string {
	out := make([]string, 0, min(len(list), maxList))
	for _, s := range list[:min(len(list), maxList)] {
		cut(&s)
		out = append(out, s)
	}
	return out
}
