package host

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/yamledit"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// ParseOptions of ParseConfig.
type ParseOptions struct {
	// Name is the file, absolute: relative paths are below its directory.
	Name string
	Home string // what ~ means
	// Lookup reads the environment for secrets that are kept there. nil: empty.
	Lookup func(name string) (string, bool)
}

// ParseConfig reads a configuration without I/O. Every finding is returned,
// with its line; one of severity Error refuses the whole.
func ParseConfig(data []byte, o ParseOptions) (*Config, mountspec.Findings) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	c := &Config{Path: o.Name, Dir: filepath.Dir(o.Name), Workspaces: map[string]WorkspaceEntry{}, Storages: map[string]StorageEntry{},
		Manifests: map[string]string{}, Identities: map[string]Identity{}, Roles: map[string][]string{}, digest: digest(data)}
	p := configReader{c: c, o: o}
	r := &reader{name: o.Name}
	if v, ok := r.document(data); ok {
		v.object(p.top())
	}
	return c, r.findings
}

type configReader struct {
	c *Config
	o ParseOptions
}

func (p configReader) top() fields {
	c := p.c
	return fields{
		"workspaces":       p.workspaces,
		"storages":         func(v node) { p.slugs(v, func(slug string, n node) { p.storage(c.Storages, slug, n) }) },
		"manifests":        func(v node) { p.slugs(v, func(slug string, n node) { p.manifest(c.Manifests, slug, n) }) },
		"search_path":      p.paths(&c.SearchPath),
		"secrets":          p.secrets,
		"allow_env":        p.allowEnv,
		"allow_endpoints":  p.endpoints,
		"allow_paths":      p.paths(&c.AllowPaths),
		"allow_refs":       pairs(&c.AllowRefs),
		"allow_overlap":    pairs(&c.AllowOverlap),
		"allow_write_back": func(v node) { c.AllowWriteBack = patterns(v) },
		"providers":        p.providers,
		"identities":       p.identities,
		"principal":        p.principal,
		"roles":            p.roles,
	}
}

func (p configReader) path(v node) (string, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	abs, err := hostfile.Expand(s, p.o.Home, filepath.Dir(p.o.Name))
	return abs, v.check("path", "write an absolute path, or one that begins with ~/", err)
}

func (p configReader) paths(to *[]string) func(node) {
	return func(v node) {
		v.items(func(n node) {
			if s, ok := p.path(n); ok {
				*to = append(*to, s)
			}
		})
	}
}

func (p configReader) workspaces(v node) {
	// One table serves all entries: a host may have thousands of them.
	var e WorkspaceEntry
	var row rowReader
	keys := row.fields()
	keys["owner_id"] = func(n node) { n.into(&e.OwnerID) }
	keys["path"] = func(n node) { e.Path, _ = p.path(n) }
	v.each(func(key string, at, val node) {
		a, err := mountspec.ParseAddress(key)
		if !at.check("address", "write \"@owner/slug\"", err) {
			return
		}
		e, row = WorkspaceEntry{}, rowReader{}
		if val.isMapping() && yamledit.Has(val.n, "storage") && !yamledit.Has(val.n, "path") {
			val.object(keys)
			e.Path = rowDir(p.o.Name, a)
		} else {
			p.located(val, "directory of the WORKSPACE.md", &e.Path, keys)
		}
		e.Row = row.workspace(val, a, e.OwnerID, e.Path)
		p.c.Workspaces[key] = e
	})
}

// located reads a path, or a mapping with keys of which one reads path; what is the file
// that it names. The path stays "" when it cannot be read, and that was told.
func (p configReader) located(v node, what string, path *string, keys fields) {
	if !v.isMapping() {
		*path, _ = p.path(v)
		return
	}
	v.object(keys)
	if *path == "" {
		v.fail("missing-key", "add path: <"+what+">", "path is missing")
	}
}

// slugs calls f with each registry slug of a mapping.
func (p configReader) slugs(v node, f func(slug string, val node)) {
	v.each(func(key string, at, val node) {
		ref, err := mountspec.ParseRef(key)
		if err == nil && ref.Kind != mountspec.RefSlug {
			err = fmt.Errorf("%.60q is not a registry slug", key)
		}
		if at.check("slug", "write \"@owner/slug\"", err) {
			f(key, val)
		}
	})
}

func (p configReader) manifest(to map[string]string, slug string, v node) {
	if s, ok := p.path(v); ok {
		to[slug] = s
	}
}

func (p configReader) storage(to map[string]StorageEntry, slug string, v node) {
	var e StorageEntry
	p.located(v, "its STORAGE.md", &e.Path, fields{
		"path": func(n node) { e.Path, _ = p.path(n) },
		"per_workspace": func(n node) {
			word, _ := n.oneOf("true", "false")
			e.Shared = word == "false"
		}})
	if e.Path != "" {
		to[slug] = e
	}
}

func (p configReader) allowEnv(v node) {
	v.items(func(n node) {
		var g secrets.EnvGrant
		if n.isMapping() {
			n.object(fields{
				"name":  func(x node) { x.into(&g.Name) },
				"allow": func(x node) { g.Allow = patterns(x) },
			})
		} else {
			n.into(&g.Name)
		}
		if g.Name != "" && !secrets.IsEnvName(g.Name) {
			n.fail("env-name", "write capitals, digits and underscores", "%.60q is not the name of an environment variable", g.Name)
		}
		p.c.AllowEnv = append(p.c.AllowEnv, g)
	})
}

func (p configReader) endpoints(v node) {
	v.items(func(n node) {
		if s, ok := n.text(); ok && n.check("endpoint", "write an origin such as https://s3.example.com", netguard.ValidatePattern(s)) {
			p.c.AllowEndpoints = append(p.c.AllowEndpoints, s)
		}
	})
}

func pattern(v node) string {
	s, ok := v.text()
	if !ok || !v.check("address-pattern", "", grant.Check(s)) {
		return ""
	}
	return s
}

func patterns(v node) []string {
	out := []string{}
	v.items(func(n node) {
		if s := pattern(n); s != "" {
			out = append(out, s)
		}
	})
	return out
}

func pairs(to *[]Pair) func(node) {
	return func(v node) {
		v.items(func(n node) {
			var g Pair
			n.object(fields{
				"from": func(x node) { g.From = pattern(x) },
				"to":   func(x node) { g.To = pattern(x) },
			})
			if g.From == "" || g.To == "" {
				n.fail("missing-key", "write { from: \"@acme/*\", to: \"@shared/*\" }", "from and to are both needed")
				return
			}
			*to = append(*to, g)
		})
	}
}

func (p configReader) identities(v node) {
	v.each(func(key string, at, val node) {
		if !strings.Contains(key, "://") {
			at.fail("identity", "write a reference such as operator://current", "%.60q is not an identity reference", key)
		}
		var id Identity
		val.object(fields{
			"name": func(n node) { n.into(&id.Name) }, "email": func(n node) { n.into(&id.Email) }, "gpg_key": func(n node) { n.into(&id.GPGKey) },
		})
		if id.Name == "" || !strings.Contains(id.Email, "@") || strings.ContainsAny(id.Name+id.Email, "<>") {
			val.fail("identity", "write { name: Bob, email: bob@acme.test }", "name and email are both needed, without angle brackets")
		}
		p.c.Identities[key] = id
	})
}

func (p configReader) principal(v node) {
	v.into(&p.c.Principal)
	scheme, name, ok := strings.Cut(p.c.Principal, "://")
	if p.c.Principal == "" {
		return
	}
	if !ok || scheme == "" || name == "" || name == "current" || scheme == "role" || scheme == "group" || strings.Contains(p.c.Principal, "*") {
		v.fail("principal", "write who you are, such as operator://bob", "%.60q names nobody in particular", p.c.Principal)
	}
}

func (p configReader) roles(v node) {
	v.each(func(key string, at, val node) {
		if !at.check("address-pattern", "", grant.Check(key)) {
			return
		}
		roles := []string{}
		val.items(func(n node) {
			if s, ok := n.oneOf("owner", "editor", "viewer"); ok {
				roles = append(roles, s)
			}
		})
		p.c.Roles[key] = roles
	})
}

// serviceURL reads the URL of a service of the host.
func serviceURL(v node) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	u, err := url.Parse(s)
	if err == nil {
		err = netguard.ValidatePattern(u.Scheme + "://" + u.Host)
	}
	if err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		err = fmt.Errorf("must be scheme, host, port and at most a path")
	}
	if !v.check("endpoint", "write a URL such as https://s3.example.com", err) {
		return ""
	}
	return strings.TrimSuffix(s, "/")
}
