package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/facts"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Trust is the degree of trust in a manifest.
type Trust int

const (
	// Unverified: a path, or found by searching. Its owner is a claim.
	Unverified Trust = iota
	// Vouched: a path that the user trusts for this mount.
	Vouched
	// Registered: in the configuration or the registry.
	Registered
)

// String is the word for status.
func (t Trust) String() string { return [...]string{"unverified", "trusted", "registered"}[t] }

// Resolved is all data needed to build the volumes of a mount. It is not changed
// after Resolve returns it.
type Resolved struct {
	Address   mountspec.Address
	Workspace *mountspec.Workspace
	Storage   *mountspec.Storage // the effective block, refs followed
	Code      *mountspec.Code    // nil: not a code project (AIP-34, Workspace as repo)
	Trust     Trust
	Verified  bool   // Trust is more than Unverified
	Manifest  string // real path, or empty for a workspace without one
	From      string // origin of the manifests, if they are fetched copies; empty: they are local
	Root      string // real path of the workspace's own directory

	ReadOnly    ReadOnly
	Local       *Local // nil: the storage is not a directory
	Location    Location
	Fingerprint string
	Grants      Grants
	Identity    []mountspec.IdentityEntry // authors, configured references replaced
	Decisions   map[string]policy.Decision
	HoldCommit  bool     // policy does not allow storage:commit
	HoldPush    bool     // policy does not allow storage:push
	Governing   []string // real paths of every manifest that was read
	// Reserved are paths where a manifest was looked for and not found: a file made
	// there, or below, would govern the next mount.
	Reserved  []string
	Children  []Child
	Principal string
	Explain   []Step
	Warnings  mountspec.Findings

	// Part distinguishes a volume that a sandbox mounts beside the workspace from
	// the workspace itself: if not empty, it is part of the names of both the tree
	// and its state. No slug contains its first character.
	Part string

	entry   *Registration // its entry in the registry; nil: none
	layers  []policy.Layer
	roles   []string
	groups  []string
	facts   *facts.File
	sandbox *sandbox
	secrets []string // real paths of the inventories
}

// Written is the place of the manifest for a person who wants to change it.
func (r *Resolved) Written() string {
	if r.From == "" {
		return r.Manifest
	}
	return fmt.Sprintf("%s of %s (then wsmount registry accept %s)", manifestName, r.From, r.Address)
}

// Evaluate asks the policy again, for an action at a later time: grants end, and the
// host's facts change. done is the past actions that limits count.
func (r *Resolved) Evaluate(action string, at time.Time, done policy.Done) policy.Decision {
	return policy.Evaluate(r.layers, r.request(action, at, done))
}

func (r *Resolved) request(action string, at time.Time, done policy.Done) policy.Request {
	return policy.Request{Principal: r.Principal, Roles: r.roles, Groups: r.groups, Action: action, At: at, Facts: r.facts.For(r.Address.Owner, r.Address.Slug), Done: done}
}

// PolicyVaries reports whether the answer of Evaluate may change later, for any of the actions.
func (r *Resolved) PolicyVaries(actions ...string) bool { return policy.Varies(r.layers, actions...) }

// Remembered returns how long the times of an action count for the policy; 0: not at all.
func (r *Resolved) Remembered(action string) time.Duration {
	return policy.Remembered(r.layers, action)
}

// ReadOnly is the reasons why nothing may be written, if there are any.
type ReadOnly struct{ Reasons []Reason }

// On reports whether there is a reason.
func (r ReadOnly) On() bool { return len(r.Reasons) > 0 }

// Lasting is the reasons that hold for the whole mount: the policy may withdraw the others.
func (r ReadOnly) Lasting() ReadOnly {
	return ReadOnly{slices.DeleteFunc(slices.Clone(r.Reasons), func(x Reason) bool { return x.Passes })}
}

// A Reason is one source of read-only. Each is enough, none undoes another.
type Reason struct {
	Source string // flag, mount, parent, defaults, storage, policy, unverified
	Where  string // file:line, or another source
	Passes bool   // it is a policy with grants that may come to hold
}

func (r Reason) String() string { return fmt.Sprintf("%s (%s)", r.Source, r.Where) }

// Local is the directory of a local storage. Later opens compare Dev and Ino, so
// that another directory under the same name is noticed.
type Local struct {
	Path     string // real path
	Dev, Ino uint64 // zero when Missing
	Missing  bool   // it does not exist yet, and may be made
	Default  bool   // chosen by wsmount below the temporary directory
}

// Grants are the host's grants to this volume.
type Grants struct {
	// Endpoints are patterns for package netguard. Empty: no network.
	Endpoints []string
	// Proxy is the proxy that allow_env grants, or empty.
	Proxy string
	// Secrets is the plan to reveal at activation. nil: none are needed.
	Secrets *secrets.Plan
	// HostCredentials is for cloud-bucket: "sdk" or the slug of a secret of the
	// host, from Resolver.Vault. Empty: none.
	HostCredentials string
	// App is for github: the host's app, granted for Installation.
	App          *GitHubApp
	Installation int64
	// SSH is for github at a server that is reached over SSH. nil: it is not.
	SSH *SSHGrant
	// Daemon is for github at a server that is reached over git://, which gets no
	// credentials, as the server is not authenticated.
	Daemon bool
	// API is for github: the URL of the server's API. Empty: the host names none.
	API       string
	Clone     string // is for github: how much of the repository is cloned at once
	WriteBack bool   // a canonical workspace may be written back later
}

// A Child is a workspace mounted below this one. Exactly one of Resolved and
// Err is set; Err only where Optional.
type Child struct {
	At       string // clean, absolute in the parent's tree
	Mode     mountspec.MountMode
	Optional bool
	Resolved *Resolved
	Err      error
}

// A Step is one thing that was examined on the way from the address to the backend.
type Step struct {
	Subject string // the question
	Result  string // the answer
	Default bool   // it is wsmount's default, written nowhere
}

func (s Step) String() string {
	if s.Default {
		return s.Subject + ": " + s.Result + " (default)"
	}
	return s.Subject + ": " + s.Result
}
