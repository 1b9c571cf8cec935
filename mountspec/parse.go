package mountspec

import "gopkg.in/yaml.v3"

// Every Parse function returns all findings at once, sorted by position. The
// result is nil when the manifest is refused; a provider that this build does
// not know is an Error, yet the result is returned, so that it can be shown.

// ParseWorkspace reads a WORKSPACE.md (AIP-34).
func ParseWorkspace(src Source, o Options) (*Workspace, Findings) {
	return parse(src, o, decodeWorkspace)
}

// ParseStorage reads a standalone STORAGE.md (AIP-35).
func ParseStorage(src Source, o Options) (*Storage, Findings) {
	return parse(src, o, func(v value) *Storage {
		v.code = CodeConfigInvalid
		return decodeStorage(v)
	})
}

// ParseSecrets reads a SECRETS.md inventory (AIP-19).
func ParseSecrets(src Source, o Options) (*Secrets, Findings) {
	return parse(src, o, decodeSecrets)
}

// ParseSandbox reads a standalone SANDBOX.md (AIP-36).
func ParseSandbox(src Source, o Options) (*Sandbox, Findings) {
	return parse(src, o, decodeSandbox)
}

// ParseCode reads a CODE.md (AIP-26), in its rich or its lean form.
func ParseCode(src Source, o Options) (*Code, Findings) {
	return parse(src, o, decodeCode)
}

// ParsePolicy reads a standalone POLICY.md (AIP-38).
func ParsePolicy(src Source, o Options) (*Policy, Findings) {
	return parse(src, o, decodePolicy)
}

// ParseIdentity reads an x.IDENTITY.md that an identity-ref names (AIP-23): a
// name and an e-mail address. The many other keys of such a file are its own.
func ParseIdentity(src Source, o Options) (*IdentityEntry, Findings) {
	return parse(src, o, decodeIdentityFile)
}

func parse[T any](src Source, o Options, decode func(value) *T) (*T, Findings) {
	d := newDecoder(src.Name, o)
	var out *T
	if root := d.parseFrontmatter(src); root != nil {
		v := value{d: d, n: root}
		if root.Kind != yaml.MappingNode {
			v.fail("wrong-type", "write key: value lines", "the frontmatter is not a mapping")
		} else {
			out = decode(v)
		}
	}
	d.findings.sort()
	if d.findings.refuses() {
		return nil, d.findings
	}
	return out, d.findings
}
