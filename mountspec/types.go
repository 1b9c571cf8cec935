package mountspec

// Options pass the host's knowledge to a parse. The zero value works.
type Options struct {
	// Strict turns every Warning into an Error.
	Strict bool
	// Registered reports whether the host has a storage provider of that name.
	// Nil means: the seven names of AIP-35 and nothing else.
	Registered func(provider string) bool
}

// Workspace is a WORKSPACE.md (AIP-34). Parse and Define return it validated
// and with defaults applied; treat it as read-only from then on, and it may be
// shared between goroutines.
type Workspace struct {
	ID          Address
	Version     string
	Name        string
	Description string
	Owner       Owner
	Storage     Block[Storage]
	Sandbox     *Block[Sandbox] // nil: command execution must be unavailable
	Code        *Block[Code]    // nil: not a codespace
	Identity    []IdentityEntry
	Policy      []Block[Policy] // in order; composed by the evaluator
	Defaults    Defaults
	Publish     Publish
	Tags        []string
	CreatedAt   string // RFC 3339, or empty
	Metadata    map[string]any
	Mounts      []Mount // of metadata.wsmount.mounts, then of the top-level mounts
	Template    *Origin // of metadata.wsmount.template; nil: it began without one
	Pos         Pos     // of the frontmatter's first key
}

// Owner names the owner according to a manifest. It is a claim: the host compares
// it with the registered owner (AIP-34, "Security considerations").
type Owner struct {
	Type string // guild, user or org
	ID   string
	Slug string
	Pos  Pos
}

// Defaults are workspace-wide defaults; Extra holds the keys that are not ours.
type Defaults struct {
	ReadOnly    bool
	ReadOnlySet bool // the manifest names read_only
	Extra       map[string]any
}

// Publish is the publish posture. It is a wish: it publishes nothing, and the host decides
// which workspaces may begin from this one.
type Publish struct {
	Template   bool
	Registry   string
	Visibility string // private (default), unlisted or public
}

// An Origin is the template of a workspace. It says where files came from, and grants
// nothing.
type Origin struct {
	ID      Address
	Version string
	SHA256  string // of the bundle, in hexadecimal digits
}

// A Block is one of the forms in which a manifest names another: given inline,
// or referred to. Exactly one of Inline and a Ref of another kind than
// RefInline is present in a validated manifest.
type Block[T any] struct {
	Inline *T
	Ref    Ref // Kind is RefInline when Inline is given
	Pos    Pos
}

// RefKind is the form of a reference (AIP-35, "Reference resolution").
type RefKind int

const (
	RefInline         RefKind = iota // the block is in the manifest; Value is empty
	RefFile                          // {file: p}: workspace-relative, never leaves the workspace
	RefPath                          // {ref: ./p}: workspace-relative
	RefCrossWorkspace                // {ref: ../p}: a sibling workspace, subject to the host's allow_refs
	RefSlug                          // {ref: "@owner/slug"}: registry
)

// A Ref names another manifest. Value is as written; Clean gives the path to use.
type Ref struct {
	Kind  RefKind
	Value string
	Pos   Pos
}

// Storage is a STORAGE.md or the same block inline (AIP-35).
type Storage struct {
	ID        *Address // standalone only, nil when absent
	Version   string   // standalone only
	Provider  string
	Config    Config
	Sync      Sync // every default applied
	Auth      Auth
	Identity  []IdentityEntry // overrides the workspace's when not empty
	Policy    []Block[Policy]
	Exclude   []string // as written; see CompileExclude
	ReadOnly  bool     // read_only, or the provider's own readOnly option
	Metadata  map[string]any
	Pos       Pos
	ConfigPos Pos
}

// Auth points at the credentials (AIP-35 auth, AIP-19). It never holds one.
type Auth struct {
	Ref string   // as written: a path or a registry slug; empty when absent
	Env []string // state.env: names that the inventory is expected to reveal
	Pos Pos
}

// Mode is how a store and the tree relate (AIP-35, "Sync semantics by provider").
type Mode string

const (
	ModeCanonical Mode = "canonical"
	ModePullPush  Mode = "pull-push"
	ModeWatch     Mode = "watch"
)

// ConflictPolicy decides about the loser of a race (AIP-35 sync.conflict.policy).
type ConflictPolicy string

const (
	ConflictRebase         ConflictPolicy = "rebase"
	ConflictMerge          ConflictPolicy = "merge"
	ConflictAbort          ConflictPolicy = "abort"
	ConflictManual         ConflictPolicy = "manual"
	ConflictLastWriterWins ConflictPolicy = "last-writer-wins"
	ConflictSplit          ConflictPolicy = "split-conflicts"
)

// BranchPolicy is where commits land (AIP-35 sync.push.branch_policy).
type BranchPolicy string

const (
	BranchMain            BranchPolicy = "main" // the tracked branch
	BranchPerConversation BranchPolicy = "per-conversation"
	BranchPerTurn         BranchPolicy = "per-turn"
)

// PRPolicy is whether pull requests are opened (AIP-35 sync.push.pr_policy).
type PRPolicy string

const (
	PRNone   PRPolicy = "none"
	PRAuto   PRPolicy = "auto"
	PRManual PRPolicy = "manual"
)

// MountMode is how a sub-workspace is mounted.
type MountMode string

const (
	MountReadWrite MountMode = "read-write"
	MountReadOnly  MountMode = "read-only"
)

// A Mount grafts another workspace at a prefix of this one. Nesting is allowed;
// two mounts at one place are not.
type Mount struct {
	At       string // clean, begins with /, is not / itself
	Source   Ref
	Mode     MountMode
	Optional bool // when it cannot be mounted, the rest still is
	Pos      Pos
}

// IdentityEntry is one entry of an identity-ref block (AIP-23). Exactly one
// form is filled: Name and Email, or Ref, or File.
type IdentityEntry struct {
	Name, Email string
	Avatar      string
	GPGKey      string
	Ref         string // scheme://id, @owner/identities/slug or ./path.IDENTITY.md
	File        string
	Role        string // "author" when the manifest names none
	RoleSet     bool   // the manifest names a role
	Metadata    map[string]any
	Pos         Pos
}
