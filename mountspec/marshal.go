package mountspec

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// Marshal prints the manifest in canonical form: keys in the order of the
// specification, defaults left out, mounts under metadata.wsmount. Parsing the
// result gives the same workspace. The text below the frontmatter is not
// part of a Workspace and is not printed.
func (w *Workspace) Marshal() ([]byte, error) {
	p := newPrinter()
	p.text("schema", workspaceSchema)
	p.text("id", w.ID.String())
	p.text("version", w.Version)
	p.text("name", w.Name)
	p.text("description", w.Description)
	owner := p.child()
	owner.text("type", w.Owner.Type)
	owner.text("id", w.Owner.ID)
	owner.text("slug", w.Owner.Slug)
	p.nested("owner", owner)
	p.node("storage", printBlock(p, w.Storage, printStorage))
	if w.Sandbox != nil {
		p.node("sandbox", printBlock(p, *w.Sandbox, printSandbox))
	}
	if w.Code != nil {
		p.node("code", printBlock(p, *w.Code, printCode))
	}
	list(p, "identity", w.Identity, printIdentity)
	list(p, "policy", w.Policy, printPolicyEntry)
	printWorkspaceTail(p, w)
	return p.document()
}

func printWorkspaceTail(p *printer, w *Workspace) {
	if d := w.Defaults; d.ReadOnly || d.ReadOnlySet || d.Extra != nil {
		c := p.child()
		if d.ReadOnly || d.ReadOnlySet {
			c.node("read_only", c.plain(d.ReadOnly, 0))
		}
		c.spread(d.Extra)
		p.node("defaults", c.n)
	}
	c := p.child()
	c.flag("template", w.Publish.Template)
	c.text("registry", w.Publish.Registry)
	if w.Publish.Visibility != "private" {
		c.text("visibility", w.Publish.Visibility)
	}
	p.nested("publish", c)
	p.texts("tags", w.Tags)
	p.text("created_at", w.CreatedAt)
	printWorkspaceMetadata(p, w)
}

func printWorkspaceMetadata(p *printer, w *Workspace) {
	if w.Metadata == nil && len(w.Mounts) == 0 && w.Template == nil {
		return
	}
	c := p.child()
	c.spread(w.Metadata)
	if _, taken := w.Metadata["wsmount"]; taken {
		p.fail("metadata.wsmount is written from Mounts and Template")
	}
	own := c.child()
	list(own, "mounts", w.Mounts, func(p *printer, m Mount) *yaml.Node {
		q := p.child()
		q.text("at", m.At)
		q.node("source", printSource(q, m.Source))
		if m.Mode != MountReadWrite {
			q.text("mode", string(m.Mode))
		}
		q.flag("optional", m.Optional)
		return q.n
	})
	if t := w.Template; t != nil {
		q := own.child()
		q.text("id", t.ID.String())
		q.text("version", t.Version)
		q.text("sha256", t.SHA256)
		own.node("template", q.n)
	}
	c.nested("wsmount", own)
	p.node("metadata", c.n)
}

// printSource prints the short form of a mount's source.
func printSource(p *printer, r Ref) *yaml.Node {
	switch {
	case r.Value == "":
		return nil
	case r.Kind == RefFile:
		c := p.child()
		c.text("file", r.Value)
		return c.n
	}
	return p.scalar(r.Value)
}

// printBlock prints a block in its form; if two forms are given, both are
// printed, so that reading the result refuses.
func printBlock[T any](p *printer, b Block[T], inline func(*printer, *T)) *yaml.Node {
	c := p.child()
	if b.Inline != nil {
		in := c.child()
		inline(in, b.Inline)
		c.node("inline", in.n)
	}
	key := "ref"
	if b.Ref.Kind == RefFile {
		key = "file"
	}
	c.text(key, b.Ref.Value)
	return c.n
}

// Marshal prints a standalone STORAGE.md in canonical form; see Workspace.Marshal.
func (s *Storage) Marshal() ([]byte, error) {
	p := newPrinter()
	p.text("schema", storageSchema)
	printStorage(p, s)
	return p.document()
}

func printStorage(p *printer, s *Storage) {
	printHead(p, s.ID, s.Version)
	p.text("provider", s.Provider)
	if s.Config != nil {
		c := p.child()
		printConfig(c, s.Config)
		p.node("config", c.n)
	}
	printSync(p, s)
	printAuth(p, s.Auth)
	list(p, "identity", s.Identity, printIdentity)
	list(p, "policy", s.Policy, printPolicyEntry)
	p.texts("exclude", s.Exclude)
	p.flag("read_only", s.ReadOnly && !configReadOnly(s.Config))
	p.open("metadata", s.Metadata)
}

func printHead(p *printer, id *Address, version string) {
	if id != nil {
		p.text("id", id.String())
	}
	p.text("version", version)
}

func printAuth(p *printer, a Auth) {
	c, state := p.child(), p.child()
	c.text("ref", a.Ref)
	state.texts("env", a.Env)
	c.nested("state", state)
	p.nested("auth", c)
}

// printSync prints the fields that the manifest set or that differ from the defaults:
// a default that was never written stays free to change.
func printSync(p *printer, s *Storage) {
	if len(writtenSync(s, s.Sync.Present())) == 0 && !unfilled(s) {
		return
	}
	fields := writtenSync(s, true)
	if len(fields) == 0 {
		fields = syncFields[:1] // the mode alone says that there is a sync block
	}
	printSyncFields(p, s, fields)
}

// writtenSync lists the fields to print against the defaults of a manifest
// with or without a sync block.
func writtenSync(s *Storage, present bool) []syncField {
	base := DefaultSync(s.Provider, allowedMode(s.Sync.Mode, s.Provider), present)
	var out []syncField
	for _, f := range syncFields {
		if now := f.show(&s.Sync); s.Sync.Set[f.key] || now != "" && now != f.show(&base) {
			out = append(out, f)
		}
	}
	return out
}

// unfilled reports a sync block written by hand: it says something, and the
// defaults were never applied to the rest.
func unfilled(s *Storage) bool {
	base := DefaultSync(s.Provider, allowedMode(s.Sync.Mode, s.Provider), false)
	says, lacks := false, false
	for _, f := range syncFields {
		now := f.show(&s.Sync)
		says = says || now != ""
		lacks = lacks || now == "" && f.show(&base) != ""
	}
	return says && lacks
}

func printSyncFields(p *printer, s *Storage, fields []syncField) {
	blocks := map[string]*printer{"": p.child()}
	var order []string
	for _, f := range fields {
		block, key, nested := strings.Cut(f.key, ".")
		if !nested {
			block, key = "", f.key
		}
		if blocks[block] == nil {
			blocks[block] = p.child()
			order = append(order, block)
		}
		printSyncField(blocks[block], s, f, key)
	}
	for _, block := range order {
		blocks[""].nested(block, blocks[block])
	}
	p.nested("sync", blocks[""])
}

func printSyncField(p *printer, s *Storage, f syncField, key string) {
	text := f.show(&s.Sync)
	if f.key == "mode" && text == "" {
		text = string(RulesFor(s.Provider).Modes[0])
	}
	if f.key == "pull.ttl_seconds" || f.key == "commit.batch_window_ms" {
		p.node(key, literal("!!int", text))
		return
	}
	p.node(key, p.scalar(text))
}

// printConfig prints a provider's config under the names of AIP-35.
func printConfig(p *printer, c Config) {
	switch c := c.(type) {
	case CloudBucketConfig:
		p.text("bucket", c.Bucket)
		p.text("prefix", c.Prefix)
	case SelfBucketConfig:
		p.text("kind", string(c.Kind))
		p.text("endpoint", c.Endpoint)
		p.text("region", c.Region)
		p.text("bucket", c.Bucket)
		p.text("prefix", c.Prefix)
		p.text("credentials_ref", c.CredentialsRef)
	case GitHubConfig:
		p.text("owner", c.Owner)
		p.text("repo", c.Repo)
		p.text("branch", c.Branch)
		p.text("installation_id", c.InstallationID)
		p.text("default_commit_email", c.DefaultCommitEmail)
	case LocalFSConfig:
		p.text("agent_id", c.AgentID)
		p.text("mount_path", c.MountPath)
	case DevLocalConfig:
		p.text("root", c.Root)
	case VaultConfig:
		p.text("vault_path", c.VaultPath)
	case RawConfig:
		p.spread(c.Values)
	default:
		printMastraConfig(p, c)
	}
}

func printMastraConfig(p *printer, c Config) {
	switch c := c.(type) {
	case MastraS3Config:
		p.text("bucket", c.Bucket)
		p.text("region", c.Region)
		p.text("endpoint", c.Endpoint)
		p.text("prefix", c.Prefix)
		if c.ForcePathStyle != nil {
			p.node("forcePathStyle", p.plain(*c.ForcePathStyle, 0))
		}
		p.flag("readOnly", c.ReadOnly)
		printLabel(p, c.Label)
	case MastraAzureConfig:
		p.text("container", c.Container)
		p.text("accountName", c.AccountName)
		p.text("endpoint", c.Endpoint)
		p.text("prefix", c.Prefix)
		p.flag("useDefaultCredential", c.UseDefaultCredential)
		p.flag("readOnly", c.ReadOnly)
		printLabel(p, c.Label)
	}
}

func printLabel(p *printer, l Label) {
	p.text("id", l.ID)
	p.text("displayName", l.DisplayName)
	p.text("icon", l.Icon)
	p.text("description", l.Description)
}
