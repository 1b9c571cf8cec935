package mountspec

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// maxSeconds keeps every number of seconds within a time.Duration: 100 years.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// decodePolicies reads a policy block: one entry or a list of them. An entry
// is a bare POLICY object, {ref} or {file}; upstream's schema has no {inline}.
func decodePolicies(v value) []Block[Policy] {
	if !v.present() {
		return nil
	}
	var out []Block[Policy]
	for _, item := range v.oneOrMore("name a policy or remove the key") {
		for _, form := range item.cases("ref", "file") {
			if b, ok := decodePolicyEntry(form); ok {
				out = append(out, b)
			}
		}
	}
	return out
}

func decodePolicyEntry(v value) (Block[Policy], bool) {
	o, ok := v.object()
	if !ok {
		return Block[Policy]{}, false
	}
	switch {
	case o.has("inline"):
		o.keys["inline"].fail("unknown-key", "write the policy's own keys here, with schema: "+policySchema, "a policy has no inline form")
		return Block[Policy]{}, false
	case o.has("ref") || o.has("file"):
		return decodeBlock[Policy](v, "", nil)
	}
	p := decodePolicy(v)
	return Block[Policy]{Inline: p, Pos: v.pos()}, p != nil
}

// decodePolicy reads an AIP-38 POLICY object.
func decodePolicy(v value) *Policy {
	v, known := v.named("policy")
	o, ok := v.object()
	if !ok || known {
		return nil
	}
	p := &Policy{Pos: v.pos()}
	decodeSchema(o, policySchema, true)
	p.ID = optionalID(o)
	p.Version = decodeVersion(o.get("version"))
	p.Default = o.oneOf("default", "allow", "deny")
	if p.Default == "allow" {
		o.get("default").warn("policy-default-allow", "grant what is needed and deny the rest", "every action that no grant names is allowed")
	}
	for _, item := range o.get("grants").items() {
		p.Grants = append(p.Grants, decodeGrant(item))
	}
	p.Defaults = decodePolicyDefaults(o.get("defaults"))
	for _, item := range o.get("limits").items() {
		p.Limits = append(p.Limits, decodeLimit(item))
	}
	for _, item := range o.get("requirements").items() {
		p.Requirements = append(p.Requirements, decodeRequirement(item))
	}
	p.Metadata = decodeMetadata(o)
	o.closed()
	return p
}

func decodeGrant(v value) Grant {
	o, ok := v.object()
	if !ok {
		return Grant{}
	}
	g := Grant{Pos: v.pos()}
	g.Principal = decodePrincipal(o.need("principal"))
	for _, item := range o.need("actions").someItems("name an action", "a grant of no action grants nothing") {
		g.Actions = append(g.Actions, decodeAction(item))
	}
	for _, item := range o.get("conditions").items() {
		kind, c := decodeKind(item)
		g.Conditions = append(g.Conditions, Condition{kind, c.rest()})
	}
	g.TTLSeconds, _ = o.get("ttl_seconds").integer(1, maxSeconds)
	g.GrantedAt = decodeTime(o.get("granted_at"))
	if by := o.get("granted_by"); by.given() {
		p := decodePrincipal(by)
		g.GrantedBy = &p
	}
	g.Revoked = o.boolean("revoked")
	o.closed()
	return g
}

// decodePrincipal reads a bare string or an identity entry.
func decodePrincipal(v value) (p Principal) {
	for _, form := range v.forms(yaml.ScalarNode, yaml.MappingNode) {
		p = decodePrincipalForm(form)
	}
	return p
}

func decodePrincipalForm(v value) Principal {
	if v.present() && !v.isMapping() {
		s, ok := v.text()
		if ok {
			v.filled(s)
		}
		return Principal{Bare: s}
	}
	e, _ := decodeIdentity(v)
	return Principal{Entry: e}
}

func decodeAction(v value) ActionGrant {
	o, ok := v.object()
	if !ok {
		return ActionGrant{}
	}
	var a ActionGrant
	a.Action, _ = o.needText("action")
	a.Scope = o.text("scope")
	o.closed()
	return a
}

// decodeKind reads the kind of an object whose other keys are its own.
func decodeKind(v value) (string, *object) {
	o, ok := v.object()
	if !ok {
		return "", o
	}
	kind, _ := o.needText("kind")
	return kind, o
}

func decodeLimit(v value) Limit {
	var l Limit
	kind, o := decodeKind(v)
	if !o.present() {
		return l
	}
	l.Kind = kind
	l.Value, _ = o.need("value").amount()
	l.Scope = o.text("scope")
	l.Per = o.oneOf("per", "second", "minute", "hour", "day")
	l.AppliesTo = o.texts("applies_to")
	l.Params = o.rest()
	return l
}

func decodeRequirement(v value) Requirement {
	kind, o := decodeKind(v)
	if !o.present() {
		return Requirement{}
	}
	applies := o.texts("applies_to")
	return Requirement{Kind: kind, AppliesTo: applies, Params: o.rest()}
}

// decodePolicyDefaults reads the partial blocks. read_only must be what it seems; other keys,
// which have no effect in this package, refuse when the workspace is resolved.
func decodePolicyDefaults(v value) map[string]map[string]any {
	o, ok := v.object()
	if !ok {
		return nil
	}
	out := map[string]map[string]any{}
	for _, key := range o.order {
		child, ok := o.fields[key].object()
		if !ok {
			continue
		}
		if slices.Contains([]string{"storage", "sandbox"}, key) {
			checkReadOnlySpelling(child)
		}
		out[key] = child.rest()
	}
	return out
}

func checkReadOnlySpelling(o *object) {
	for _, key := range o.order {
		switch {
		case key == "read_only":
			o.fields[key].boolean()
		case fold(key) == fold("read_only"):
			o.keys[key].fail("unknown-key", "did you mean read_only?", "the key %s would have no effect", show(key))
		}
	}
}

// ReadOnly reports whether the policy's defaults make the block of that name
// ("storage", "sandbox") read-only.
func (p *Policy) ReadOnly(block string) bool {
	b, _ := p.Defaults[block]["read_only"].(bool)
	return b
}
