package mountspec

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// decodeWorkspaceMetadata reads the open metadata. metadata.wsmount is ours
// and closed: it is the only place of the schema where a host may keep mounts.
func decodeWorkspaceMetadata(w *Workspace, o *object) {
	m, ok := o.get("metadata").object()
	if !ok {
		return
	}
	own := m.get("wsmount")
	w.Metadata = m.rest()
	if !own.given() {
		return
	}
	if len(w.Metadata) == 0 {
		w.Metadata = nil // there is nothing but ours
	}
	ours, _ := own.object()
	w.Mounts = decodeMounts(ours.get("mounts"))
	w.Template = decodeOrigin(ours.get("template"))
	ours.closed()
}

var hexSHA256 = expression(`^[0-9a-f]{64}$`)

// decodeOrigin reads which template a workspace was begun from.
func decodeOrigin(v value) *Origin {
	o, ok := v.object()
	if !ok {
		return nil
	}
	w := &Origin{ID: decodeID(o.need("id")), Version: decodeVersion(o.need("version")), SHA256: o.text("sha256")}
	if (w.SHA256 != "" || o.described()) && !o.get("sha256").matches(hexSHA256(), w.SHA256) {
		o.get("sha256").fail("sha256", "", "%s is not a SHA-256 in 64 hexadecimal digits", show(w.SHA256))
	}
	o.closed()
	return w
}

// decodeMetadata reads the metadata of every other block, where wsmount has
// no keys: a wsmount key in it is a mistake.
func decodeMetadata(o *object) map[string]any {
	m, ok := o.get("metadata").object()
	if !ok {
		return nil
	}
	if m.get("wsmount").none() {
		m.keys["wsmount"].fail("unknown-key", "move it to the metadata of WORKSPACE.md", "metadata.wsmount has no effect here")
	}
	return m.rest()
}

// decodeSketchedMounts reads the top-level mounts that AIP-34 sketches for
// the future (Open questions) and whose schema does not have them yet.
func decodeSketchedMounts(o *object) []Mount {
	v := o.get("mounts")
	if !v.given() {
		return nil
	}
	o.keys["mounts"].warn("sketched-mounts", "metadata.wsmount.mounts is valid today", "AIP-34 does not define mounts yet")
	return decodeMounts(v)
}

func decodeMounts(v value) []Mount {
	var out []Mount
	for _, item := range v.items() {
		if m, ok := decodeMount(item); ok {
			out = append(out, m)
		}
	}
	return out
}

func decodeMount(v value) (Mount, bool) {
	v, known := v.named("mount")
	o, ok := v.object()
	if !ok || known {
		return Mount{}, false
	}
	m := Mount{Mode: MountReadWrite, Pos: v.pos()}
	m.At, ok = decodeMountPoint(o.need("at"))
	var sourceOK bool
	m.Source, sourceOK = decodeMountSource(o.need("source"))
	if s := o.oneOf("mode", string(MountReadWrite), string(MountReadOnly)); s != "" {
		m.Mode = MountMode(s)
	}
	m.Optional = o.boolean("optional")
	o.closed()
	return m, ok && sourceOK && o.get("at").leavesRoot(m.At)
}

// leavesRoot refuses a mount point that would cover the root of the workspace that mounts,
// or the control directory at its root, which every volume has.
func (v value) leavesRoot(at string) bool {
	first, _, _ := strings.Cut(at[1:], "/")
	switch first {
	case "":
		v.fail("mount-point", "mount it at a directory below", "a workspace cannot cover the root of another")
	case controlDir:
		v.fail("mount-point", "mount it elsewhere", "every volume has a %s of its own", controlDir)
	default:
		return true
	}
	return false
}

// controlDir is the directory that every mounted volume shows at its root.
const controlDir = ".wsmount"

// decodeMountSource reads "@owner/slug", "./path" or the {ref} and {file} forms.
func decodeMountSource(v value) (r Ref, ok bool) {
	for _, form := range v.forms(yaml.MappingNode, yaml.ScalarNode) {
		r, ok = decodeMountSourceForm(form)
	}
	return r, ok
}

func decodeMountSourceForm(v value) (Ref, bool) {
	if !v.present() {
		return Ref{}, false
	}
	v.code = CodeRefUnresolvable
	if v.isMapping() {
		o, _ := v.object()
		ref, file := o.get("ref"), o.get("file")
		o.closed()
		if !o.exactlyOne("ref", "file") {
			v.fail("block-form", "keep one of them", "needs exactly one of ref and file")
			return Ref{}, false
		}
		if file.given() {
			r, ok := file.fileReference()
			if !v.described() {
				return r, ok
			}
		}
		return ref.reference()
	}
	return v.reference()
}

// decodeMountPoint reads an absolute path inside the tree (AIP-36: hosts
// normalise; no .., a leading slash).
func decodeMountPoint(v value) (string, bool) {
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return "", false
	}
	problem := mountPointProblem(s)
	if problem == "" {
		return path.Clean(s), true
	}
	v.fail("mount-point", "write an absolute path inside the tree, such as /external/lib", "%s %s", show(s), problem)
	return "", false
}

func mountPointProblem(s string) string {
	switch {
	case s == "" || s[0] != '/':
		return "does not begin with /"
	case hasSegment(s, ".."):
		return "holds .."
	case len(s) > 1024 || slices.ContainsFunc(strings.Split(s, "/"), func(name string) bool { return len(name) > 255 }):
		return "is too long"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has control characters"
	}
	return ""
}

// CheckMountPoint names the fault of a mount point that was not read from
// a manifest, by the rules of those that are.
func CheckMountPoint(at string) error {
	problem := mountPointProblem(at)
	if problem == "" {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(at), "/"), "/"); first {
		case "":
			problem = "is the root, which a workspace cannot cover"
		case controlDir:
			problem = "is wsmount's own"
		}
	}
	if problem != "" {
		return fmt.Errorf("%s %s", show(at), problem)
	}
	return nil
}

func hasSegment(s, segment string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == segment {
			return true
		}
	}
	return false
}

// checkMounts refuses two mounts at one place.
func checkMounts(d *decoder, mounts []Mount) {
	first := map[string]Mount{}
	for _, m := range mounts {
		if other, dup := first[m.At]; dup {
			d.add(Finding{Line: m.Pos.Line, Column: m.Pos.Column, Path: "mounts", Rule: "mount-duplicate",
				Message: "a mount at " + show(m.At) + " is already on line " + itoa(other.Pos.Line), Hint: "keep one of the two"})
			continue
		}
		first[m.At] = m
	}
}
