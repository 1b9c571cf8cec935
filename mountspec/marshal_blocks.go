package mountspec

import "gopkg.in/yaml.v3"

// Marshal prints a SECRETS.md in canonical form; see Workspace.Marshal.
func (s *Secrets) Marshal() ([]byte, error) {
	p := newPrinter()
	list(p, "secrets", s.Entries, printSecret)
	return p.document()
}

// Marshal prints a standalone SANDBOX.md in canonical form; see Workspace.Marshal.
func (s *Sandbox) Marshal() ([]byte, error) {
	p := newPrinter()
	p.text("schema", sandboxSchema)
	printSandbox(p, s)
	return p.document()
}

// Marshal prints a standalone POLICY.md in canonical form; see Workspace.Marshal.
func (x *Policy) Marshal() ([]byte, error) {
	p := newPrinter()
	printPolicy(p, x)
	return p.document()
}

// Marshal prints a CODE.md in canonical form; see Workspace.Marshal.
func (c *Code) Marshal() ([]byte, error) {
	p := newPrinter()
	printCode(p, c)
	return p.document()
}

func printIdentity(p *printer, e IdentityEntry) *yaml.Node {
	c := p.child()
	c.text("name", e.Name)
	c.text("email", e.Email)
	c.text("avatar", e.Avatar)
	c.text("gpg_key", e.GPGKey)
	c.text("ref", e.Ref)
	c.text("file", e.File)
	if e.RoleSet || e.Role != RoleAuthor {
		c.text("role", e.Role)
	}
	c.open("metadata", e.Metadata)
	return c.n
}

func printPolicyEntry(p *printer, b Block[Policy]) *yaml.Node {
	if b.Inline == nil || b.Ref.Value != "" {
		return printBlock(p, b, printPolicy)
	}
	c := p.child()
	printPolicy(c, b.Inline)
	return c.n
}

func printPolicy(p *printer, x *Policy) {
	p.text("schema", policySchema)
	printHead(p, x.ID, x.Version)
	p.text("default", x.Default)
	list(p, "grants", x.Grants, printGrant)
	if x.Defaults != nil {
		open := map[string]any{}
		for block, m := range x.Defaults {
			open[block] = m
		}
		p.open("defaults", open)
	}
	list(p, "limits", x.Limits, func(p *printer, l Limit) *yaml.Node {
		c := p.child()
		c.text("kind", l.Kind)
		c.node("value", c.float(l.Value))
		c.text("scope", l.Scope)
		c.text("per", l.Per)
		c.texts("applies_to", l.AppliesTo)
		c.spread(l.Params)
		return c.n
	})
	list(p, "requirements", x.Requirements, func(p *printer, r Requirement) *yaml.Node {
		c := p.child()
		c.text("kind", r.Kind)
		c.texts("applies_to", r.AppliesTo)
		c.spread(r.Params)
		return c.n
	})
	p.open("metadata", x.Metadata)
}

func printGrant(p *printer, g Grant) *yaml.Node {
	c := p.child()
	c.node("principal", printPrincipal(c, g.Principal))
	list(c, "actions", g.Actions, func(p *printer, a ActionGrant) *yaml.Node {
		q := p.child()
		q.text("action", a.Action)
		q.text("scope", a.Scope)
		return q.n
	})
	list(c, "conditions", g.Conditions, func(p *printer, x Condition) *yaml.Node {
		q := p.child()
		q.text("kind", x.Kind)
		q.spread(x.Params)
		return q.n
	})
	c.number("ttl_seconds", g.TTLSeconds)
	c.text("granted_at", g.GrantedAt)
	if g.GrantedBy != nil {
		c.node("granted_by", printPrincipal(c, *g.GrantedBy))
	}
	c.flag("revoked", g.Revoked)
	return c.n
}

func printPrincipal(p *printer, x Principal) *yaml.Node {
	if x.Bare != "" {
		return p.scalar(x.Bare)
	}
	return printIdentity(p, x.Entry)
}

func printSecret(p *printer, e SecretEntry) *yaml.Node {
	c := p.child()
	c.text("slug", e.Slug)
	c.text("name", e.Name)
	c.text("description", e.Description)
	if e.Kind != "opaque" {
		c.text("kind", e.Kind)
	}
	c.text("backend", e.Backend)
	access := c.child()
	printAccess(access, "reveal", e.Access.Reveal)
	printAccess(access, "bind", e.Access.Bind)
	printAccess(access, "rotate", e.Access.Rotate)
	c.nested("access", access)
	audit := c.child()
	audit.text("retention", e.Audit.Retention)
	audit.flag("pii", e.Audit.PII)
	audit.texts("classification", e.Audit.Classification)
	c.nested("audit", audit)
	c.texts("tags", e.Tags)
	c.open("metadata", e.Metadata)
	list(c, "exposures", e.Exposures, func(p *printer, x Exposure) *yaml.Node {
		q := p.child()
		q.text("kind", x.Kind)
		q.spread(x.Params)
		return q.n
	})
	return c.n
}

// printAccess keeps the difference between no list and an empty one, which
// admits no subject.
func printAccess(p *printer, key string, entries []AccessEntry) {
	if entries == nil {
		return
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range entries {
		c := p.child()
		c.text(e.Kind, e.Value)
		seq.Content = append(seq.Content, c.n)
	}
	p.node(key, seq)
}

func printSandbox(p *printer, s *Sandbox) {
	printHead(p, s.ID, s.Version)
	p.text("provider", s.Provider)
	p.open("config", s.Config)
	limits := p.child()
	limits.number("timeout_ms", s.TimeoutMS)
	limits.number("memory_mb", s.MemoryMB)
	limits.number("cpu_ms", s.CPUMS)
	p.nested("limits", limits)
	env := p.child()
	printAuth(env, s.EnvAuth)
	env.texts("passthrough", s.EnvPassthrough)
	p.nested("env", env)
	network := p.child()
	network.texts("egress", s.Egress)
	p.nested("network", network)
	list(p, "mounts", s.Mounts, printSandboxMount)
	list(p, "identity", s.Identity, printIdentity)
	list(p, "policy", s.Policy, printPolicyEntry)
	lifecycle := p.child()
	lifecycle.text("pause_after_idle", string(s.PauseAfterIdle))
	lifecycle.text("destroy_on", string(s.DestroyOn))
	p.nested("lifecycle", lifecycle)
	p.flag("read_only", s.ReadOnly)
	p.open("metadata", s.Metadata)
}

func printSandboxMount(p *printer, m SandboxMount) *yaml.Node {
	c := p.child()
	if m.Workspace {
		c.text("source", sourceWorkspace)
	} else {
		c.node("source", printBlock(c, m.Source, printStorage))
	}
	c.text("at", m.At)
	if m.Mode != MountReadWrite {
		c.text("mode", string(m.Mode))
	}
	return c.n
}

func printCode(p *printer, c *Code) {
	switch {
	case c.Kind != "":
		p.text("kind", c.Kind)
		p.text("name", c.Name)
		code := p.child()
		list(code, "sources", c.Sources, printCodeSource)
		p.nested("code", code)
	case c.Schema != "":
		p.text("schema", c.Schema)
		p.text("id", c.ID)
		p.text("version", c.Version)
		p.text("name", c.Name)
		if len(c.Sources) > 0 {
			p.node("source", printCodeSource(p, c.Sources[0]))
		}
	default:
		list(p, "sources", c.Sources, printCodeSource)
	}
	p.text("description", c.Description)
	printRun(p, c.Run)
	p.spread(c.Extra)
}

func printCodeSource(p *printer, s CodeSource) *yaml.Node {
	body := p.child()
	body.text("repo", s.Repo)
	body.text("ref", s.GitRef)
	body.text("path", s.Path)
	body.text("as", s.As)
	body.text("glob", s.Glob)
	if s.Kind == "inline" {
		body.node("content", p.scalar(s.Content))
	}
	c := p.child()
	c.nested(s.Kind, body)
	return c.n
}

func printRun(p *printer, r *CodeRun) {
	if r == nil {
		return
	}
	c := p.child()
	c.text("file", r.File)
	c.texts("exec", r.Exec)
	c.text("shell", r.Shell)
	p.text("run", r.Line)
	p.nested("run", c)
}
