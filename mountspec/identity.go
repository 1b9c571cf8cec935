package mountspec

import (
	"slices"
	"strings"
)

// Roles of AIP-23; any other text is a custom role.
const (
	RoleAuthor   = "author"
	RoleCoAuthor = "co-author"
)

// References to the people of a mount (AIP-23, Resolution): the agent's operator, and the
// user for whom it works.
const (
	CurrentOperator = "operator://current"
	CurrentUser     = "user://current"
)

// decodeIdentities reads an identity-ref block: one entry or a list (AIP-23).
func decodeIdentities(v value) []IdentityEntry {
	if !v.present() {
		return nil
	}
	var out []IdentityEntry
	for _, item := range v.oneOrMore("name an identity or remove the key") {
		if e, ok := decodeIdentity(item); ok {
			out = append(out, e)
		}
	}
	return out
}

// decodeIdentity reads one entry. Upstream leaves entries open, so a key that
// is not known is only a warning; two forms in one entry are refused, since
// AIP-23 says exactly one.
func decodeIdentity(v value) (IdentityEntry, bool) {
	v, known := v.named("identity")
	o, ok := v.object()
	if !ok || known {
		return IdentityEntry{}, false
	}
	e := IdentityEntry{Pos: v.pos()}
	ref, file := o.get("ref"), o.get("file")
	if !o.exactlyOne("ref", "file", "name email") {
		v.fail("identity-form", "give name and email, or ref, or file", "an identity has exactly one form")
		return e, false
	}
	if ref.given() {
		e.Ref, ok = decodeIdentityRef(ref)
	}
	if file.given() {
		var r Ref
		r, ok = file.fileReference()
		e.File = r.Value
	}
	if v.described() || !ref.given() && !file.given() {
		ok = decodePerson(o, &e)
	}
	decodeRole(o, &e)
	e.Metadata = o.open("metadata")
	o.closedAs(Warning)
	return e, ok
}

func decodePerson(o *object, e *IdentityEntry) bool {
	name, ok1 := o.needText("name")
	email, ok2 := o.needText("email")
	if ok2 && !plausibleEmail(email) {
		o.get("email").fail("email", "write name@domain", "%s is not an e-mail address", show(email))
		ok2 = false
	}
	if ok1 && strings.ContainsAny(name, "<>") {
		o.get("name").fail("person-name", "remove the angle brackets", "a name cannot hold < or >")
		ok1 = false
	}
	e.Name, e.Email = name, email
	e.Avatar = o.text("avatar")
	e.GPGKey, _ = o.get("gpg_key").prose()
	return ok1 && ok2
}

func decodeRole(o *object, e *IdentityEntry) {
	e.Role = RoleAuthor
	if role, ok := o.someText("role"); ok {
		e.Role, e.RoleSet = role, true
	}
}

// email is the part of RFC 5322 that git can carry: no quoting, no comments.
var email = expression(`^[^\s<>@"(),:;\\\[\]]+@[^\s<>@"(),:;\\\[\]]+$`)

func plausibleEmail(s string) bool { return len(s) <= 254 && email().MatchString(s) }

// identityScheme is scheme://id with something after the slashes.
var identityScheme = expression(`^[a-z][a-z0-9+.-]*://[^\s/][^\s]*$`)

// knownSchemes are those of AIP-23 and AIP-38; a host may add others.
var knownSchemes = []string{"operator", "user", "org", "guild", "bot", "group", "role"}

// decodeIdentityRef reads scheme://id, @owner/identities/slug or a path.
func decodeIdentityRef(v value) (string, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	if scheme, _, found := strings.Cut(s, "://"); found {
		if !identityScheme().MatchString(s) {
			v.fail("identity-ref", "write scheme://id, such as operator://bob", "%s is not an identity", show(s))
			return "", false
		}
		if !slices.Contains(knownSchemes, scheme) {
			v.warn("identity-scheme", "the host must know it", "the scheme %s is not one of AIP-23", show(scheme))
		}
		return s, true
	}
	if _, ok := v.reference(); !ok {
		return "", false
	}
	return s, true
}

func decodeIdentityFile(v value) *IdentityEntry {
	o, ok := v.object()
	if !ok {
		return nil
	}
	e := &IdentityEntry{Pos: v.pos()}
	decodePerson(o, e)
	decodeRole(o, e)
	e.Metadata = o.open("metadata")
	return e
}

// Authors splits the identities that count into the commit's author and those of its
// Co-authored-by trailers: order counts, the first is the author (AIP-23, "Git").
func Authors(entries []IdentityEntry) (primary IdentityEntry, others []IdentityEntry, ok bool) {
	if len(entries) == 0 {
		return IdentityEntry{}, nil, false
	}
	return entries[0], entries[1:], true
}
