package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/yamledit"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// ParseOptions of ParseConfig.
type ParseOptions struct {
	// Name is the file, absolute: relative paths are below its directory.
	Name string
	Home string // for ~
	// Lookup reads the environment for secrets that are kept there. nil: empty.
	Lookup func(name string) (string, bool)
}

// ParseConfig reads a configuration without I/O. Every finding is returned,
// with its line; one of severity Error refuses the whole.
func ParseConfig(data []byte, o ParseOptions) (*Config, mountspec.Findings) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	p := newReader(o)
	p.c.digest = digest(data)
	return p.c, yamlread.Document(o.Name, data, func(v yamlread.Node) { v.Object(p.top()) })
}

// Outline is the JSON Schema of configurations, for packages beside this one: all configurations
// that ParseConfig accepts are valid by it. The values of a row are those of a manifest.
func Outline() *jsonschema.Schema {
	s := yamlread.Outline(func(v yamlread.Node) { v.Object(newReader(ParseOptions{}).top()) })
	s.Dialect, s.Title = jsonschema.Draft, "host configuration of wsmount"
	return s
}

type configReader struct {
	c *Config
	o ParseOptions
}

func newReader(o ParseOptions) configReader {
	return configReader{&Config{Path: o.Name, Dir: filepath.Dir(o.Name), Workspaces: map[string]WorkspaceEntry{}, Storages: map[string]StorageEntry{},
		Manifests: map[string]string{}, Identities: map[string]Identity{}, Roles: map[string][]string{}, Groups: map[string][]string{}}, o}
}

func (p configReader) top() yamlread.Fields {
	c := p.c
	return yamlread.Fields{
		"workspaces": p.workspaces,
		"storages": func(v yamlread.Node) {
			p.slugs(v, func(slug string, n yamlread.Node) { p.storage(c.Storages, slug, n) })
		},
		"manifests": func(v yamlread.Node) {
			p.slugs(v, func(slug string, n yamlread.Node) { p.manifest(c.Manifests, slug, n) })
		},
		"search_path":      p.paths(&c.SearchPath),
		"secrets":          p.secrets,
		"allow_env":        p.allowEnv,
		"allow_endpoints":  p.endpoints,
		"allow_paths":      p.paths(&c.AllowPaths),
		"allow_refs":       pairs(&c.AllowRefs),
		"allow_overlap":    pairs(&c.AllowOverlap),
		"allow_write_back": func(v yamlread.Node) { c.AllowWriteBack = patterns(v) },
		"allow_personal":   p.allowPersonal,
		"providers":        p.providers,
		"identities":       p.identities,
		"principal":        func(v yamlread.Node) { c.Principal = onePrincipal(v) },
		"roles":            p.roles,
		"groups":           p.groups,
		"facts":            func(v yamlread.Node) { c.Facts, _ = p.path(v) },
		"notify":           hook.Read(&c.Notify),
	}
}

func (p configReader) path(v yamlread.Node) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	abs, err := hostfile.Expand(s, p.o.Home, filepath.Dir(p.o.Name))
	return abs, v.Check("path", "write an absolute path, or one that begins with ~/", err)
}

func (p configReader) paths(to *[]string) func(yamlread.Node) {
	return func(v yamlread.Node) {
		v.Items(func(n yamlread.Node) {
			if s, ok := p.path(n); ok {
				*to = append(*to, s)
			}
		})
	}
}

func (p configReader) workspaces(v yamlread.Node) {
	// One table serves all entries: a host may have thousands of them.
	var e WorkspaceEntry
	var row rowReader
	keys := row.fields()
	keys["owner_id"] = func(n yamlread.Node) { n.Into(&e.OwnerID) }
	keys["path"] = func(n yamlread.Node) { e.Path, _ = p.path(n) }
	v.Each(func(key string, at, val yamlread.Node) {
		a, err := mountspec.ParseAddress(key)
		if !at.Check("address", "write \"@owner/slug\"", err) {
			return
		}
		e, row = WorkspaceEntry{}, rowReader{}
		if val.IsMapping() && yamledit.Has(val.YAML, "storage") && !yamledit.Has(val.YAML, "path") {
			val.Object(keys)
			e.Path = rowDir(p.o.Name, a)
		} else {
			p.located(val, "directory of the WORKSPACE.md", &e.Path, keys)
		}
		e.Row = row.workspace(val, a, e.OwnerID, e.Path)
		p.c.Workspaces[key] = e
	})
}

// located reads a path, or a mapping with keys of which one reads path; what describes
// the file for messages. The path stays "" if it cannot be read, which is reported.
func (p configReader) located(v yamlread.Node, what string, path *string, keys yamlread.Fields) {
	v.Either(func(v yamlread.Node) {
		v.Object(keys)
		if *path == "" {
			v.Fail("missing-key", "add path: <"+what+">", "path is missing")
		}
	}, func(v yamlread.Node) { *path, _ = p.path(v) })
}

// slugs calls f with each registry slug of a mapping.
func (p configReader) slugs(v yamlread.Node, f func(slug string, val yamlread.Node)) {
	v.Each(func(key string, at, val yamlread.Node) {
		ref, err := mountspec.ParseRef(key)
		if err == nil && ref.Kind != mountspec.RefSlug {
			err = fmt.Errorf("%.60q is not a registry slug", key)
		}
		if at.Check("slug", "write \"@owner/slug\"", err) {
			f(key, val)
		}
	})
}

func (p configReader) manifest(to map[string]string, slug string, v yamlread.Node) {
	if s, ok := p.path(v); ok {
		to[slug] = s
	}
}

func (p configReader) storage(to map[string]StorageEntry, slug string, v yamlread.Node) {
	var e StorageEntry
	p.located(v, "its STORAGE.md", &e.Path, yamlread.Fields{
		"path": func(n yamlread.Node) { e.Path, _ = p.path(n) },
		"per_workspace": func(n yamlread.Node) {
			own, ok := n.Bool()
			e.Shared = ok && !own
		}})
	if e.Path != "" {
		to[slug] = e
	}
}

func (p configReader) allowEnv(v yamlread.Node) {
	v.Items(func(n yamlread.Node) {
		var g secrets.EnvGrant
		n.Either(func(n yamlread.Node) {
			n.Object(yamlread.Fields{
				"name":  func(x yamlread.Node) { x.Into(&g.Name) },
				"allow": func(x yamlread.Node) { g.Allow = patterns(x) },
			})
		}, func(n yamlread.Node) { n.Into(&g.Name) })
		if g.Name == "" && n.IsMapping() {
			n.Fail("missing-key", "add name: VARIABLE", "name is missing")
		}
		if g.Name != "" && !secrets.IsEnvName(g.Name) {
			n.Fail("env-name", "write capitals, digits and underscores", "%.60q is not the name of an environment variable", g.Name)
		}
		p.c.AllowEnv = append(p.c.AllowEnv, g)
	})
}

func (p configReader) endpoints(v yamlread.Node) {
	v.Items(func(n yamlread.Node) {
		if s, ok := n.Text(); ok && n.Check("endpoint", "write an origin such as https://s3.example.com", netguard.ValidatePattern(s)) {
			p.c.AllowEndpoints = append(p.c.AllowEndpoints, s)
		}
	})
}

func (p configReader) allowPersonal(v yamlread.Node) {
	v.Items(func(n yamlread.Node) {
		var g PersonalGrant
		n.Object(yamlread.Fields{
			"path": func(x yamlread.Node) { g.Path, _ = p.path(x) },
			"by": func(x yamlread.Node) {
				x.Items(func(who yamlread.Node) {
					if s, ok := who.Text(); ok && s != "" {
						g.By = append(g.By, s)
					}
				})
			},
			"memory": func(x yamlread.Node) {
				if s, ok := x.Text(); ok && filepath.IsLocal(s) && filepath.Clean(s) != "." {
					g.Memory = filepath.Clean(s)
				} else if ok {
					x.Fail("bad-path", "write the name of a directory in it, such as Agent", "memory lies below the path")
				}
			},
		})
		if g.Path == "" || len(g.By) == 0 {
			n.Fail("missing-key", "write { path: ~/Vault, by: [ ann ] }", "path and by are both needed")
			return
		}
		p.c.AllowPersonal = append(p.c.AllowPersonal, g)
	})
}

func pattern(v yamlread.Node) string {
	s, ok := v.Text()
	if !ok || !v.Check("address-pattern", "", grant.Check(s)) {
		return ""
	}
	return s
}

func patterns(v yamlread.Node) []string {
	out := []string{}
	v.Items(func(n yamlread.Node) {
		if s := pattern(n); s != "" {
			out = append(out, s)
		}
	})
	return out
}

func pairs(to *[]Pair) func(yamlread.Node) {
	return func(v yamlread.Node) {
		v.Items(func(n yamlread.Node) {
			var g Pair
			n.Object(yamlread.Fields{
				"from": func(x yamlread.Node) { g.From = pattern(x) },
				"to":   func(x yamlread.Node) { g.To = pattern(x) },
			})
			if g.From == "" || g.To == "" {
				n.Fail("missing-key", "write { from: \"@acme/*\", to: \"@shared/*\" }", "from and to are both needed")
				return
			}
			*to = append(*to, g)
		})
	}
}

func (p configReader) identities(v yamlread.Node) {
	v.Each(func(key string, at, val yamlread.Node) {
		if !strings.Contains(key, "://") {
			at.Fail("identity", "write a reference such as operator://current", "%.60q is not an identity reference", key)
		}
		var id Identity
		val.Object(yamlread.Fields{
			"name": func(n yamlread.Node) { n.Into(&id.Name) }, "email": func(n yamlread.Node) { n.Into(&id.Email) }, "gpg_key": func(n yamlread.Node) { n.Into(&id.GPGKey) },
		})
		if id.Name == "" || !strings.Contains(id.Email, "@") || strings.ContainsAny(id.Name+id.Email, "<>") {
			val.Fail("identity", "write { name: Bob, email: bob@acme.test }", "name and email are both needed, without angle brackets")
		}
		p.c.Identities[key] = id
	})
}

// onePrincipal reads a principal that stands for one person, not a pattern or a group.
func onePrincipal(v yamlread.Node) string {
	s, ok := v.Text()
	if err := policy.CheckPrincipal(s); ok && err != nil {
		v.Fail("principal", "write who it is, such as operator://bob", "%.60q %v", s, err)
	}
	return s
}

func (p configReader) roles(v yamlread.Node) {
	v.Each(func(key string, at, val yamlread.Node) {
		if !at.Check("address-pattern", "", grant.Check(key)) {
			return
		}
		roles := []string{}
		val.Items(func(n yamlread.Node) {
			if s, ok := n.OneOf("owner", "editor", "viewer"); ok {
				roles = append(roles, s)
			}
		})
		p.c.Roles[key] = roles
	})
}

func (p configReader) groups(v yamlread.Node) {
	v.Each(func(key string, at, val yamlread.Node) {
		if scheme, name, _ := strings.Cut(key, "://"); name == "" || !slices.Contains([]string{"group", "org", "guild"}, scheme) {
			at.Fail("group", "write group://NAME, org://NAME or guild://NAME", "%.60q names no group", key)
		}
		val.Items(func(n yamlread.Node) { p.c.Groups[key] = append(p.c.Groups[key], onePrincipal(n)) })
	})
}
