package mountspec

import (
	"strings"

	"gopkg.in/yaml.v3"
)

const kindCodeWorkspace = "code-workspace"

// decodeCode reads a code block in one of its forms (AIP-26): bare {sources},
// rich (kind: code-workspace, with code and run) or lean (schema: code/v2,
// with source and run). Upstream leaves the other keys open.
func decodeCode(v value) (c *Code) {
	v, known := v.named("code")
	if known {
		return nil
	}
	for _, form := range v.cases("kind", "schema", "sources") {
		c = decodeCodeForm(form)
	}
	return c
}

func decodeCodeForm(v value) *Code {
	o, ok := v.object()
	if !ok {
		return nil
	}
	c := &Code{Pos: v.pos()}
	switch {
	case o.has("kind"):
		decodeRichCode(c, o)
	case o.has("schema"):
		decodeLeanCode(c, o)
	case o.has("sources"):
		c.Sources = decodeSources(o)
		o.closed()
		return c
	default:
		o.warn("code-form", "write sources, kind: "+kindCodeWorkspace+" or schema: "+codeSchema, "this is none of the forms of a code block")
	}
	c.Description, _ = o.get("description").prose()
	c.Run = decodeRun(o.get("run"))
	c.Extra = o.rest()
	return c
}

func decodeRichCode(c *Code, o *object) {
	c.Kind = o.oneOf("kind", kindCodeWorkspace)
	c.Name, _ = o.needText("name")
	for _, at := range o.need("code").forms(yaml.MappingNode, yaml.ScalarNode) {
		if at.isMapping() {
			code, _ := at.object()
			c.Sources = decodeSources(code)
			code.closed()
		} else if p, ok := at.text(); ok && at.insideWorkspace(p) {
			c.Sources = []CodeSource{{Kind: "ref", Path: p, Pos: at.pos()}}
		}
	}
}

var codeSlug = expression(`^@[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9._-]*){1,4}$`)

func decodeLeanCode(c *Code, o *object) {
	decodeSchema(o, codeSchema, true)
	c.Schema = codeSchema
	c.Name = o.text("name")
	if at := o.get("id"); at.given() {
		if c.ID, _ = at.text(); at.present() && !at.matches(codeSlug(), c.ID) {
			at.fail("address", "write @owner/code/slug", "%s is not an address", show(c.ID))
		}
	}
	c.Version = decodeVersion(o.get("version"))
	if at := o.get("source"); at.given() {
		if s, ok := decodeSource(at); ok {
			c.Sources = []CodeSource{s}
		}
	}
}

func decodeSources(o *object) []CodeSource {
	var out []CodeSource
	for _, item := range o.need("sources").someItems("", "a bundle has at least one source") {
		if s, ok := decodeSource(item); ok {
			out = append(out, s)
		}
	}
	return out
}

var sourceKinds = []string{"inline", "local", "github", "ref"}

func decodeSource(v value) (CodeSource, bool) {
	v, known := v.named("source")
	o, ok := v.object()
	if !ok || known {
		return CodeSource{}, false
	}
	var kinds []string
	for _, kind := range sourceKinds {
		if o.get(kind).given() {
			kinds = append(kinds, kind)
		}
	}
	o.closed()
	if !o.exactlyOne(sourceKinds...) {
		v.fail("source-form", "", "a source has exactly one of %s", alternatives(sourceKinds))
		return CodeSource{}, false
	}
	s := CodeSource{Pos: v.pos()}
	for _, s.Kind = range kinds {
		forms := []yaml.Kind{yaml.MappingNode}
		if s.Kind == "local" || s.Kind == "ref" {
			forms = append(forms, yaml.ScalarNode)
		}
		for _, at := range o.get(s.Kind).forms(forms...) {
			if len(forms) == 2 && at.present() && !at.isMapping() {
				s.Path, ok = at.text()
				ok = ok && at.insideWorkspace(s.Path)
			} else {
				ok = decodeSourceBody(&s, at)
			}
		}
	}
	return s, ok
}

func decodeSourceBody(s *CodeSource, v value) bool {
	o, ok := v.object()
	if !ok {
		return false
	}
	if s.Kind == "github" {
		s.Repo, _ = o.needText("repo")
		if at := o.get("repo"); (s.Repo != "" || at.described()) && !at.matches(repoPair(), s.Repo) {
			at.fail("repository", "write owner/name", "%s is not the name of a repository", show(s.Repo))
		}
		s.GitRef, _ = o.needText("ref")
		s.Path = o.text("path")
	} else if s.Path, ok = o.needText("path"); ok {
		o.get("path").insideWorkspace(s.Path)
	}
	if s.Kind == "inline" {
		s.Content, _ = o.need("content").prose()
	}
	if s.Kind == "local" || s.Kind == "github" {
		s.As = o.text("as")
	}
	if s.Kind == "local" {
		s.Glob = o.text("glob")
	}
	o.closed()
	return true
}

var repoPair = expression(`^[^/]+/[^/]+$`)

// insideWorkspace refuses a path that is absolute, empty or climbs (AIP-26,
// "Path semantics").
func (v value) insideWorkspace(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || hasSegment(p, "..") {
		v.fail("code-path", "write a path below the workspace", "%s does not stay inside the workspace", show(p))
		return false
	}
	return true
}

// decodeRun reads the command of a runner. A string is kept as it is: AIP-26
// leaves it to the runner whether that is a file or a command.
func decodeRun(v value) (r *CodeRun) {
	for _, form := range v.forms(yaml.MappingNode, yaml.SequenceNode, yaml.ScalarNode) {
		r = decodeRunForm(form)
	}
	return r
}

func decodeRunForm(v value) *CodeRun {
	if !v.present() {
		return nil
	}
	if v.isMapping() {
		return decodeExplicitRun(v)
	}
	if v.sequence() != nil {
		return &CodeRun{Exec: filledTexts(v)}
	}
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return nil
	}
	return &CodeRun{Line: s}
}

func decodeExplicitRun(v value) *CodeRun {
	o, _ := v.object()
	file, exec, shell := o.get("file"), o.get("exec"), o.get("shell")
	o.closedAs(Warning)
	if !o.exactlyOne("file", "exec", "shell") {
		v.fail("run-form", "", "needs exactly one of file, exec and shell")
		return nil
	}
	var r CodeRun
	if file.given() {
		r.File, _ = o.needText("file")
	}
	if exec.given() {
		r.Exec = filledTexts(exec)
	}
	if shell.given() {
		r.Shell, _ = o.needText("shell")
	}
	return &r
}

func filledTexts(v value) []string {
	out := []string{}
	for _, item := range v.someItems("", "the list is empty") {
		if s, ok := item.text(); ok {
			out = append(out, s)
		}
	}
	return out
}
