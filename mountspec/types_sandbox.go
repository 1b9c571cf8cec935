package mountspec

// Sandbox is a SANDBOX.md or the same block inline (AIP-36). Its mounts are
// paths inside a sandbox.
type Sandbox struct {
	ID             *Address
	Version        string
	Provider       string
	Config         map[string]any
	TimeoutMS      int64 // 0: not given
	MemoryMB       int64
	CPUMS          int64
	EnvAuth        Auth
	EnvPassthrough []string
	Egress         []string // none: no egress
	Mounts         []SandboxMount
	Identity       []IdentityEntry
	Policy         []Block[Policy]
	PauseAfterIdle Trigger
	DestroyOn      Trigger
	ReadOnly       bool
	Metadata       map[string]any
	Pos            Pos
}

// SandboxMount shows a storage inside a sandbox.
type SandboxMount struct {
	Workspace bool // source: workspace, the parent's own storage; Source is zero then
	Source    Block[Storage]
	At        string // clean, begins with /
	Mode      MountMode
	Pos       Pos
}
