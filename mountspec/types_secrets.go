package mountspec

// Secrets is a SECRETS.md inventory (AIP-19): slugs, access, audit, never values.
type Secrets struct {
	Entries []SecretEntry
	Pos     Pos
}

// SecretEntry declares one secret.
type SecretEntry struct {
	Slug        string
	Name        string
	Description string
	Kind        string // opaque (default), oauth, keypair or json
	Backend     string // vault URI, or empty: the host resolves by slug
	Access      Access
	Audit       Audit
	Tags        []string
	Metadata    map[string]any
	BindEnv     []string // metadata.bindings.env: environment names that mean this secret
	Exposures   []Exposure
	Pos         Pos
}

// Access lists the subjects of each act. A nil list was not given; an empty one admits none.
type Access struct {
	Reveal, Bind, Rotate []AccessEntry
}

// AccessEntry admits one role, userId, cap, tool or workflow.
type AccessEntry struct {
	Kind  string
	Value string
}

// Audit is how uses of a secret are recorded.
type Audit struct {
	Retention      string // P7Y, 90d, ..., or empty
	PII            bool
	Classification []string
}

// Exposure is a hint at how a secret reaches its consumer. Params holds every
// key but kind; an unknown kind is kept and means nothing.
type Exposure struct {
	Kind   string // env, file, egress-substitute or another
	Params map[string]any
}
