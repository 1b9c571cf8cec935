package mountspec

import (
	"slices"
	"strings"
)

// decodeStorage reads a storage block, standalone or inline (AIP-35).
func decodeStorage(v value) *Storage {
	v, known := v.named("storage")
	o, ok := v.object()
	if !ok || known {
		return nil
	}
	v.refuseCredentials()
	s := &Storage{Pos: v.pos()}
	decodeSchema(o, storageSchema, false)
	s.ID = optionalID(o)
	s.Version = decodeVersion(o.get("version"))
	decodeProvider(s, o)
	s.Sync = decodeSync(o.get("sync"), s.Provider)
	s.Auth = decodeAuth(o.get("auth"), CodeAuthUnresolvable)
	s.Identity = decodeIdentities(o.get("identity"))
	s.Policy = decodePolicies(o.get("policy"))
	s.Exclude = decodeExclude(o.get("exclude"), s.Provider)
	s.ReadOnly = o.boolean("read_only") || configReadOnly(s.Config)
	s.Metadata = decodeMetadata(o)
	o.closed()
	sayWithoutSync(o, s)
	return s
}

// decodeProvider reads provider and config, which is shaped by it.
func decodeProvider(s *Storage, o *object) {
	if o.described() {
		describeProviders(o)
		return
	}
	s.Provider, _ = o.needText("provider")
	at := o.need("config")
	s.ConfigPos = at.pos()
	row, known := builtin[s.Provider]
	config, ok := at.object()
	switch {
	case ok && known:
		s.Config = row.decode(config)
		config.closed()
	case ok:
		s.Config = RawConfig{config.rest()}
	}
	registered := known
	if f := o.d.opts.Registered; f != nil {
		registered = f(s.Provider)
	}
	if s.Provider != "" && !registered {
		sayUnknownProvider(o.get("provider"), s.Provider)
	}
}

// computeProviders are AIP-36's: their files live as long as a sandbox does.
var computeProviders = []string{"local", "mastra-e2b", "mastra-modal", "mastra-daytona", "mastra-blaxel", "node-permission"}

func sayUnknownProvider(v value, name string) {
	hint := "wsmount version lists the providers that are"
	if near := nearest(name, Providers()); near != "" && near != name {
		hint = "did you mean " + near + "?"
	}
	if slices.Contains(computeProviders, name) {
		hint = "it is a place to run commands in: name it in sandbox (AIP-36)"
	}
	v.code = CodeProviderUnknown
	v.fail("provider-unknown", hint, "%s is not built into this wsmount", show(name))
}

// configReadOnly reads the read-only switch that Mastra has inside config.
func configReadOnly(c Config) bool {
	switch c := c.(type) {
	case MastraS3Config:
		return c.ReadOnly
	case MastraAzureConfig:
		return c.ReadOnly
	}
	return false
}

// sayWithoutSync warns that nothing will be pushed by itself.
func sayWithoutSync(o *object, s *Storage) {
	sync := o.get("sync")
	silent := sync.n == nil || sync.isMapping() && len(sync.n.Content) == 0
	if s.Provider == ProviderGitHub && silent {
		o.warn("sync-absent", "add sync.push.on, such as per-commit", "without sync commits stay local until they are pushed by hand")
	}
}

var envName = expression(`^[A-Za-z_][A-Za-z0-9_]*$`)

// decodeAuth reads AIP-35's auth block: where the secrets are, never a secret.
func decodeAuth(v value, refCode string) Auth {
	o, ok := v.object()
	if !ok {
		return Auth{}
	}
	a := Auth{Pos: v.pos()}
	ref := o.get("ref")
	ref.code = refCode
	if r, ok := ref.reference(); ok {
		a.Ref = r.Value
	}
	if state, ok := o.get("state").object(); ok {
		a.Env = decodeEnvNames(state.get("env"))
		state.closed()
	}
	o.closed()
	return a
}

func decodeEnvNames(v value) []string {
	var out []string
	for _, item := range v.items() {
		s, ok := item.text()
		switch {
		case !ok:
		case !item.matches(envName(), s):
			item.fail("env-name", "write a name such as AWS_ACCESS_KEY_ID, never a value", "%s is not the name of an environment variable", show(s))
		default:
			out = append(out, s)
		}
	}
	return out
}

// Reference returns auth.ref as a reference; ok is false when there is none.
func (a Auth) Reference() (r Ref, ok bool) {
	kind, problem := classifyRef(a.Ref)
	return Ref{kind, a.Ref, a.Pos}, problem == ""
}

// madeAnywhere are names that tools make in any directory: a pattern of one is hardly
// meant for the root alone.
var madeAnywhere = []string{
	"node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db",
}

func decodeExclude(v value, provider string) []string {
	var out []string
	items := v.items()
	if len(items) > maxPatterns {
		v.fail("exclude-pattern", "exclude directories instead of files", "has more than %d patterns", maxPatterns)
		return nil
	}
	for _, item := range items {
		s, ok := item.text()
		if !ok {
			continue
		}
		if _, problem := compilePattern(s); problem != "" {
			item.fail("exclude-pattern", "escape a special character with a backslash; **/ means any depth", "%s %s", show(s), problem)
			continue
		}
		if name := strings.TrimSuffix(s, "/"); !strings.Contains(name, "/") && (strings.Contains(name, "*") || slices.Contains(madeAnywhere, name)) {
			item.warn("exclude-anchored", "write **/"+s+" for any depth", "%s matches at the root only", show(s))
		}
		out = append(out, s)
	}
	if len(out) > 0 && Direct(provider) {
		v.warn("exclude-local", "", "%s mirrors nothing, so exclude keeps files out of what is published, or begun from it, alone", provider)
	}
	return out
}
