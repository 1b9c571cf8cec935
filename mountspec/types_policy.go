package mountspec

// Policy is an AIP-38 POLICY block. It grants nothing by itself: the evaluator decides.
type Policy struct {
	ID           *Address
	Version      string
	Default      string // "allow", "deny" or empty, which means deny
	Grants       []Grant
	Defaults     map[string]map[string]any
	Limits       []Limit
	Requirements []Requirement
	Metadata     map[string]any
	Pos          Pos
}

// Grant gives a principal some actions.
type Grant struct {
	Principal  Principal
	Actions    []ActionGrant
	Conditions []Condition // all must hold; one that is not understood does not
	TTLSeconds int64       // 0: no end
	GrantedAt  string      // RFC 3339, or empty
	GrantedBy  *Principal
	Revoked    bool
	Pos        Pos
}

// Principal is the subject of a grant: a bare string such as operator://bob or *,
// or an identity entry. Bare is empty for the second.
type Principal struct {
	Bare  string
	Entry IdentityEntry
}

// ActionGrant is an AIP-39 action id (storage:commit, storage:*), optionally narrowed.
type ActionGrant struct {
	Action string
	Scope  string
}

// Condition narrows a grant; Params holds every key but kind.
type Condition struct {
	Kind   string
	Params map[string]any
}

// Limit bounds a resource; Params holds the keys that AIP-38 does not name.
type Limit struct {
	Kind      string
	Value     float64
	Scope     string
	Per       string // second, minute, hour, day or empty
	AppliesTo []string
	Params    map[string]any
}

// Requirement must hold for the actions it applies to (none: all actions).
type Requirement struct {
	Kind      string
	AppliesTo []string
	Params    map[string]any
}
