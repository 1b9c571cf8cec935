// Package mountspec reads the manifests that declare a workspace: WORKSPACE.md
// (AIP-34), STORAGE.md (AIP-35), SECRETS.md (AIP-19), SANDBOX.md (AIP-36),
// CODE.md (AIP-26), POLICY.md (AIP-38), identity-refs (AIP-23) and the event
// names of AIP-37.
//
// It knows the documents and nothing else: parsing takes bytes and does no
// I/O, resolves no reference, no secret and no path. A manifest states the
// wishes of its author; other packages decide whether they are granted.
//
// It promises:
//   - Every error is found at once, each finding with file, line,
//     document path, a stable rule, the upstream error code and what to do.
//   - Unknown keys refuse, provider config included, so that a misspelt prefix
//     cannot mount a whole bucket. Only the blocks that upstream leaves open
//     (metadata, defaults) are open; metadata.wsmount is ours and closed.
//   - YAML that readers understand differently (anchors, merge keys, tags,
//     duplicate keys, octal numbers, a second document) refuses.
//   - Time and memory are bounded by MaxFrontmatter, however large the input.
//   - No message repeats a value that looks like a credential.
//
// Where upstream contradicts itself the JSON schemas win over the prose, and
// each provider has its own default where AIP-35 has one for all of them.
//
//	src, err := mountspec.ReadSource(path, file)
//	...
//	ws, findings := mountspec.ParseWorkspace(src, mountspec.Options{})
//	if err := findings.Err(); err != nil {
//		return err // one finding per line
//	}
//	for _, s := range ws.Storage.Inline.Effective() { ... }
package mountspec
