package mountspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// manifests are those that Outline knows, by kind.
var manifests = map[string]struct {
	title  string
	decode func(value)
}{
	"workspace": {"WORKSPACE.md (AIP-34)", func(v value) { decodeWorkspace(v) }},
	"storage":   {"STORAGE.md (AIP-35)", func(v value) { v.code = CodeConfigInvalid; decodeStorage(v) }},
	"secrets":   {"SECRETS.md (AIP-19)", func(v value) { decodeSecrets(v) }},
	"sandbox":   {"SANDBOX.md (AIP-36)", func(v value) { decodeSandbox(v) }},
	"code":      {"CODE.md (AIP-26)", func(v value) { decodeCode(v) }},
	"policy":    {"POLICY.md (AIP-38)", func(v value) { decodePolicy(v) }},
	"identity":  {"x.IDENTITY.md, as an identity-ref reads it (AIP-23)", func(v value) { decodeIdentityFile(v) }},
}

// Schemas lists the manifests that Outline describes.
func Schemas() []string { return slices.Sorted(maps.Keys(manifests)) }

// KindOf is the kind of a manifest, by the end of its file's name: storage for
// team.STORAGE.md. It is empty for other files.
func KindOf(file string) string {
	for kind := range manifests {
		if strings.HasSuffix(file, strings.ToUpper(kind)+".md") {
			return kind
		}
	}
	return ""
}

// Outline is the JSON Schema of the frontmatter of a manifest, for packages below this one, which
// give it its texts. A manifest that a Parse function accepts is valid by it; rules about several
// values, the host, or the meaning of a text are checked by Parse alone. providers are those of
// storage that there are; none: those of the zero Options.
func Outline(manifest string, providers ...string) (*jsonschema.Schema, error) {
	kind, ok := manifests[manifest]
	if !ok {
		return nil, fmt.Errorf("no schema of %s: there are %s", show(manifest), strings.Join(Schemas(), ", "))
	}
	if len(providers) == 0 {
		providers = slices.Collect(maps.Keys(builtin))
	}
	d := newDecoder(manifest, Options{Registered: func(name string) bool { return slices.Contains(providers, name) }})
	d.providers, d.definitions = slices.Sorted(slices.Values(providers)), map[string]*jsonschema.Schema{}
	root := &jsonschema.Schema{}
	kind.decode(value{d: d, outline: &outline{Schema: root}})
	if root.Ref != "" { // in this draft nothing may stand beside it
		root = &jsonschema.Schema{AllOf: []*jsonschema.Schema{{Ref: root.Ref}}}
	}
	root.Dialect, root.Title, root.Definitions = jsonschema.Draft, kind.title, d.definitions
	return root, nil
}

// describeProviders records each provider's config, and the parts of sync that it supports.
func describeProviders(o *object) {
	provider := o.need("provider").outline
	provider.Type, provider.Enum = jsonschema.Types{"string"}, o.d.providers
	o.need("config").object()
	for _, name := range o.d.providers {
		row, known := builtin[name]
		if !known {
			continue // its config is the host's
		}
		of := &jsonschema.Schema{}
		when := jsonschema.Has("provider")
		when.Property("provider").Const = name
		o.outline.AllOf = append(o.outline.AllOf, &jsonschema.Schema{If: when, Then: of})
		config, _ := o.within(of.Property("config")).object()
		row.decode(config)
		config.closed()
		sync := of.Property("sync")
		sync.Property("mode").Enum = words(row.Modes)
		sync.Property("conflict").Property("policy").Enum = words(acceptedConflicts(row.Rules))
	}
}

// acceptedConflicts are the conflict policies that a manifest may name for a provider, with
// those that have no effect for it.
func acceptedConflicts(r Rules) []ConflictPolicy {
	if len(r.Conflicts) > 0 {
		return r.Conflicts
	}
	return slices.DeleteFunc(slices.Clone(gitConflicts), func(c ConflictPolicy) bool { return c == ConflictRebase || c == ConflictMerge })
}
