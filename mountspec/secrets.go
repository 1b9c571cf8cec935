package mountspec

import (
	"slices"
	"strings"
)

// decodeSecrets reads a SECRETS.md inventory. Slugs are unique in it; across
// several files the reader of them checks (AIP-19).
func decodeSecrets(v value) *Secrets {
	o, ok := v.object()
	if !ok {
		return nil
	}
	s := &Secrets{Pos: v.pos()}
	first := map[string]Pos{}
	for _, item := range o.need("secrets").someItems("", "an inventory has at least one secret") {
		e, ok := decodeSecret(item)
		if !ok {
			continue
		}
		if other, dup := first[e.Slug]; dup && e.Slug != "" {
			item.fail("duplicate-slug", "keep one of the two", "the secret %s is already on line %d", show(e.Slug), other.Line)
		}
		first[e.Slug] = e.Pos
		s.Entries = append(s.Entries, e)
	}
	o.closed()
	return s
}

// valueKeys would hold a secret itself (AIP-19, "Forbidden keys").
var valueKeys = []string{"value", "plaintext", "ciphertext", "secret", "data", "key", "token"}

func decodeSecret(v value) (SecretEntry, bool) {
	o, ok := v.object()
	if !ok {
		return SecretEntry{}, false
	}
	refuseValues(o)
	e := SecretEntry{Kind: "opaque", Pos: v.pos()}
	e.Slug = decodeInventorySlug(o.need("slug"))
	e.Name, _ = o.needText("name")
	o.get("name").length(e.Name, 0, 80)
	if d, ok := o.need("description").prose(); ok && o.get("description").filled(d) {
		o.get("description").length(d, 1, 2000)
		e.Description = d
	}
	if kind := o.oneOf("kind", "opaque", "oauth", "keypair", "json"); kind != "" {
		e.Kind = kind
	}
	e.Backend = decodeVaultURI(o.get("backend"))
	e.Access = decodeAccess(o.get("access"))
	e.Audit = decodeAudit(o.get("audit"))
	e.Tags = decodeTags(o.get("tags"))
	e.Metadata = decodeMetadata(o)
	e.BindEnv = decodeBindings(o.get("metadata"))
	for _, item := range o.get("exposures").items() {
		if x, ok := decodeExposure(item); ok {
			e.Exposures = append(e.Exposures, x)
		}
	}
	o.closed()
	return e, true
}

// refuseValues refuses the keys that would hold a secret, and values that look like
// one under any other key; it never says the value.
func refuseValues(o *object) {
	for _, key := range o.unknown() {
		if slices.Contains(valueKeys, strings.ToLower(key)) {
			o.known = append(o.known, key)
			o.d.bad[o.fields[key].n] = true
			o.keys[key].fail("secret-value", "an inventory only names secrets; the value belongs into the vault", "the key %s would hold the secret itself", show(key))
		}
	}
	for _, key := range o.order {
		if key != "backend" {
			o.fields[key].refuseShapes()
		}
	}
}

// refuseShapes is refuseCredentials without the names of keys: an inventory
// speaks about passwords and tokens all the time.
func (v value) refuseShapes() {
	if !v.present() || v.described() {
		return
	}
	for _, n := range scalarsOf(v.n) {
		if sh := credentialShape(n.Value); sh != "" && !v.d.bad[n] {
			v.d.bad[n] = true
			value{d: v.d, n: n, path: v.path, code: v.code}.fail("plaintext-credential", credentialHint, "the value looks like %s", sh)
		}
	}
}

// decodeInventorySlug reads a slug. Upstream's pattern has one namespace and
// its own examples two: a deeper one is only noted. A double dash is refused,
// as AIP-19's prose says and its pattern does not.
func decodeInventorySlug(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	switch {
	case !v.matches(secretPath(), s) || len(s) < 2 || len(s) > 80 || strings.Contains(s, "--"):
		v.fail("secret-slug", "write lower-case words with dashes, such as acme/s3-rw", "%s is not the slug of a secret", show(s))
		return ""
	case strings.Count(s, "/") > 1:
		v.warn("secret-slug-depth", "", "the schema of AIP-19 has at most one namespace")
	}
	return s
}

var vaultURI = expression(`^[a-z][a-z0-9-]*://`)

func decodeVaultURI(v value) string {
	s, ok := v.text()
	if ok && !v.matches(vaultURI(), s) {
		v.fail("vault-uri", "write it like vault://driver/path", "%s is not the URI of a vault", show(s))
		return ""
	}
	return s
}

func decodeAccess(v value) Access {
	o, ok := v.object()
	if !ok {
		return Access{}
	}
	a := Access{decodeAccessList(o.get("reveal")), decodeAccessList(o.get("bind")), decodeAccessList(o.get("rotate"))}
	o.closed()
	return a
}

func decodeAccessList(v value) []AccessEntry {
	if !v.present() {
		return nil
	}
	out := []AccessEntry{}
	for _, item := range v.items() {
		if e, ok := decodeAccessEntry(item); ok {
			out = append(out, e)
		}
	}
	return out
}

var accessKinds = []string{"role", "userId", "cap", "tool", "workflow"}

func decodeAccessEntry(v value) (AccessEntry, bool) {
	o, ok := v.object()
	if !ok {
		return AccessEntry{}, false
	}
	var found []AccessEntry
	one := o.exactlyOne(accessKinds...)
	for _, kind := range accessKinds {
		if o.get(kind).given() {
			s, _ := o.needText(kind)
			found = append(found, AccessEntry{kind, s})
		}
	}
	o.closed()
	if !one {
		v.fail("access-form", "", "an access entry has exactly one of %s", alternatives(accessKinds))
		return AccessEntry{}, false
	}
	e := found[0]
	if e.Kind == "cap" && e.Value != "" && !strings.HasPrefix(e.Value, "cap://") {
		o.get("cap").fail("access-cap", "", "%s does not begin with cap://", show(e.Value))
	}
	return e, e.Value != ""
}

var retention = expression(`^(P[0-9]+[YMWD]|[0-9]+(y|m|w|d|h))$`)

func decodeAudit(v value) Audit {
	o, ok := v.object()
	if !ok {
		return Audit{}
	}
	var a Audit
	at := o.get("retention")
	if s, ok := at.text(); ok {
		if a.Retention = s; !at.matches(retention(), s) {
			at.fail("retention", "write it like P7Y or 90d", "%s is not a duration", show(s))
		}
	}
	a.PII = o.boolean("pii")
	for _, item := range o.get("classification").items() {
		if s, ok := item.text(); ok && item.filled(s) {
			a.Classification = append(a.Classification, s)
		}
	}
	o.closed()
	return a
}

var secretTag = expression(`^[a-z][a-z0-9-]*$`)

func decodeTags(v value) []string {
	var out []string
	for _, item := range v.items() {
		s, ok := item.text()
		if ok && !item.matches(secretTag(), s) {
			item.fail("tag", "write lower-case words with dashes", "%s is not a tag", show(s))
			continue
		}
		out = append(out, s)
	}
	return out
}

// decodeBindings reads metadata.bindings.env, the names that mean this secret.
func decodeBindings(v value) []string {
	if !v.isMapping() {
		return nil
	}
	meta, _ := v.object()
	if at := meta.get("bindings"); at.isMapping() {
		bindings, _ := at.object()
		return decodeEnvNames(bindings.get("env"))
	}
	return nil
}

var exposedName = expression(`^[A-Z_][A-Z0-9_]*$`)

// decodeExposure reads one exposure. A kind that is not known is kept and
// ignored, as the schema's own description has hosts do.
func decodeExposure(v value) (Exposure, bool) {
	kind, o := decodeKind(v)
	if !o.present() || kind == "" {
		return Exposure{}, false
	}
	x := Exposure{Kind: kind, Params: map[string]any{}}
	for _, key := range o.unknown() {
		x.Params[key] = o.fields[key].plain()
	}
	switch kind {
	case "env":
		checkExposedName(o, "name")
		o.needText("field")
	case "file":
		o.needText("path")
		o.someText("field")
		o.get("mode").integer(0, 0o777)
	case "egress-substitute":
		checkExposedName(o, "placeholderName")
		o.need("allowedByDefault").boolean()
		for _, item := range o.get("intendedProviders").items() {
			if s, ok := item.text(); ok {
				item.filled(s)
			}
		}
	default:
		o.get("kind").warn("exposure-kind", "", "exposures of kind %s are ignored", show(kind))
		return x, true
	}
	o.closed()
	return x, true
}

func checkExposedName(o *object, key string) {
	s, ok := o.needText(key)
	if ok && !exposedName().MatchString(s) {
		o.get(key).fail("env-name", "write upper-case letters, digits and underscores", "%s is not the name of an environment variable", show(s))
	}
}
