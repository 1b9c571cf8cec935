package mountspec

import (
	"strings"
	"time"
)

const (
	workspaceSchema = "workspace/v1"
	storageSchema   = "storage/v1"
	sandboxSchema   = "sandbox/v1"
	policySchema    = "policy/v1"
	codeSchema      = "code/v2"
)

// decodeWorkspace reads the frontmatter of a WORKSPACE.md.
func decodeWorkspace(v value) *Workspace {
	o, ok := v.object()
	if !ok {
		return nil
	}
	w := &Workspace{Pos: v.pos()}
	decodeSchema(o, workspaceSchema, true)
	w.ID = decodeID(o.need("id"))
	w.Version = decodeVersion(o.need("version"))
	w.Name, _ = o.needText("name")
	o.get("name").length(w.Name, 0, 80)
	w.Description = o.prose("description", 2000)
	w.Owner = decodeOwner(o.need("owner"), w.ID)
	decodeWorkspaceBlocks(w, o)
	w.Defaults = decodeDefaults(o.get("defaults"))
	w.Publish = decodePublish(o.get("publish"))
	w.Tags = o.texts("tags")
	w.CreatedAt = decodeTime(o.get("created_at"))
	decodeWorkspaceMetadata(w, o)
	w.Mounts = append(w.Mounts, decodeSketchedMounts(o)...)
	checkMounts(v.d, w.Mounts)
	o.closed()
	return w
}

func decodeWorkspaceBlocks(w *Workspace, o *object) {
	storage := o.need("storage")
	storage.code = CodeConfigInvalid
	w.Storage, _ = decodeBlock(storage, CodeRefUnresolvable, decodeStorage)
	if v := o.get("sandbox"); v.given() {
		if b, ok := decodeBlock(v, CodeSandboxUnresolvable, decodeSandbox); ok {
			w.Sandbox = &b
		}
	}
	if v := o.get("code"); v.given() {
		if b, ok := decodeBlock(v, "", decodeCode); ok {
			w.Code = &b
		}
	}
	w.Identity = decodeIdentities(o.get("identity"))
	w.Policy = decodePolicies(o.get("policy"))
}

// decodeSchema checks the schema key against the only value it may have.
func decodeSchema(o *object, want string, required bool) {
	v := o.get("schema")
	if required {
		v = o.need("schema")
	}
	v.word(want)
}

func decodeID(v value) Address {
	s, ok := v.text()
	if !ok {
		return Address{}
	}
	a, err := ParseAddress(s)
	if !v.matches(addressText(), s) || err != nil {
		v.fail("address", "write @owner/slug with lower-case letters, digits and dashes", "%s is not an address", show(s))
	}
	return a
}

// optionalID is the id of a block that may also stand inline.
func optionalID(o *object) *Address {
	if a := decodeID(o.get("id")); a != (Address{}) {
		return &a
	}
	return nil
}

// versions are semver, as the prose says, or the schema's looser form of it.
var versions = expression(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][A-Za-z0-9_.-]+|-[0-9A-Za-z.-]+\+[0-9A-Za-z.-]+)?$`)

func decodeVersion(v value) string {
	s, ok := v.text()
	if ok && !v.matches(versions(), s) {
		v.fail("version", "write three numbers, such as 1.0.0", "%s is not a semantic version", show(s))
		return ""
	}
	return s
}

// decodeTime reads an RFC 3339 time and keeps the author's text.
func decodeTime(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	if _, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err != nil {
		v.fail("date-time", "write it like 2026-05-02T10:00:00Z", "%s is not a date and time", show(s))
		return ""
	}
	return s
}

var ownerSlug = expression(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// decodeOwner also checks that the id lies in the owner's namespace (AIP-34,
// conformance rule 3: the owner segment, as its example shows).
func decodeOwner(v value, id Address) Owner {
	o, ok := v.object()
	if !ok {
		return Owner{}
	}
	w := Owner{Pos: v.pos()}
	o.need("type")
	w.Type = o.oneOf("type", "guild", "user", "org")
	w.ID, _ = o.needText("id")
	slug, ok := o.needText("slug")
	w.Slug = slug
	at := o.get("slug")
	switch {
	case ok && !at.matches(ownerSlug(), slug):
		at.fail("owner-slug", "", "%s is not a slug (lower-case letters, digits, inner dashes)", show(slug))
	case ok && id != (Address{}) && slug != id.Owner:
		at.fail("owner-mismatch", "make the two agree", "the id %s belongs to %s, and owner.slug is %s", id, id.Owner, show(slug))
	}
	o.closed()
	return w
}

// decodeDefaults keeps the open block, yet refuses another spelling of
// read_only: it would be ignored, and writes would go through.
func decodeDefaults(v value) Defaults {
	o, ok := v.object()
	if !ok {
		return Defaults{}
	}
	var w Defaults
	w.ReadOnly, w.ReadOnlySet = o.get("read_only").boolean()
	for _, key := range o.unknown() {
		if fold(key) == fold("read_only") {
			o.keys[key].fail("unknown-key", "did you mean read_only?", "the key %s would have no effect", show(key))
		} else {
			o.keys[key].warn("no-effect", "it is kept for other programs", "the default %s has no effect here", show(key))
		}
	}
	w.Extra = o.rest()
	return w
}

func decodePublish(v value) Publish {
	w := Publish{Visibility: "private"}
	o, ok := v.object()
	if !ok {
		return w
	}
	w.Template = o.boolean("template")
	w.Registry = o.text("registry")
	if s := o.oneOf("visibility", "private", "unlisted", "public"); s != "" {
		w.Visibility = s
	}
	o.closed()
	return w
}
