package host

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// secrets reads the source of each secret. A value written in the configuration is
// refused like any unknown key.
func (p configReader) secrets(v yamlread.Node) {
	v.Each(func(slug string, at, val yamlread.Node) {
		if len(slug) > 200 || strings.ContainsAny(slug, " \t@:\\") || strings.HasPrefix(slug, "/") || strings.Contains(slug, "..") {
			at.Fail("slug", "write a name such as org/acme/s3-rw", "not the name of a secret")
			return
		}
		var s secretReader
		val.Object(yamlread.Fields{
			"env":     func(n yamlread.Node) { s.forms++; s.env = p.env(n) },
			"file":    func(n yamlread.Node) { s.forms++; s.file, _ = p.path(n) },
			"command": func(n yamlread.Node) { s.forms++; s.command = n.Texts() },
			"format": func(n yamlread.Node) {
				if f, ok := n.OneOf("json", "text"); ok && f == "json" {
					s.format = secrets.JSON
				}
			},
			"allow": func(n yamlread.Node) { s.allow = patterns(n) },
		})
		if s.forms != 1 {
			val.Fail("secret-source", "write one of env, file and command", "needs exactly one source, has %d", s.forms)
			return
		}
		p.c.Secrets = append(p.c.Secrets, secrets.Entry{Slug: slug, Source: s.source(p.o), Allow: s.allow})
	})
}

type secretReader struct {
	forms   int
	env     secrets.Env
	file    string
	command []string
	format  secrets.Format
	allow   []string
}

func (s *secretReader) source(o ParseOptions) secrets.Source {
	switch {
	case s.file != "":
		return secrets.File{Path: s.file, Format: s.format}
	case s.command != nil:
		return secrets.Command{Argv: s.command, Format: s.format, Lookup: o.Lookup}
	}
	return s.env
}

// env reads one variable's name, or a mapping from fields to names.
func (p configReader) env(v yamlread.Node) secrets.Env {
	e := secrets.Env{Lookup: p.o.Lookup}
	name := func(n yamlread.Node) string {
		s, ok := n.Text()
		if ok && !secrets.IsEnvName(s) {
			n.Fail("env-name", "write the name of the variable, never the value", "not the name of an environment variable")
			return ""
		}
		return s
	}
	v.Either(func(v yamlread.Node) {
		e.Fields = map[string]string{}
		v.Each(func(field string, _, val yamlread.Node) { e.Fields[field] = name(val) })
	}, func(v yamlread.Node) { e.Name = name(v) })
	return e
}

func (p configReader) providers(v yamlread.Node) {
	v.Object(yamlread.Fields{"cloud-bucket": p.cloudBucket, "github": p.gitHub})
}

func (p configReader) cloudBucket(v yamlread.Node) {
	b := &CloudBucket{}
	given := false // a kind, though it may be none
	v.Object(yamlread.Fields{
		"kind":        func(n yamlread.Node) { given = true; b.Kind, _ = n.OneOf(secrets.S3, secrets.Azure, secrets.GCS) },
		"endpoint":    func(n yamlread.Node) { b.Endpoint = endpoint.Read(n) },
		"region":      func(n yamlread.Node) { n.Into(&b.Region) },
		"credentials": func(n yamlread.Node) { n.Into(&b.Credentials) },
		"grants": func(n yamlread.Node) {
			n.Items(func(x yamlread.Node) { b.Grants = append(b.Grants, bucketGrant(x)) })
		},
	})
	if !given {
		v.Fail("missing-key", "add kind: s3, azure or gcs", "kind is missing")
	}
	p.c.CloudBucket = b
}

func bucketGrant(v yamlread.Node) BucketGrant {
	var g BucketGrant
	prefix := false
	v.Object(yamlread.Fields{
		"owner":  func(n yamlread.Node) { n.Into(&g.Owner) },
		"bucket": func(n yamlread.Node) { n.Into(&g.Bucket) },
		"prefix": func(n yamlread.Node) { g.Prefix, prefix = n.MaybeEmpty() }, // empty: explicitly the whole bucket
	})
	switch {
	case g.Owner == "" || g.Bucket == "" || !prefix:
		v.Fail("missing-key", "write { owner: acme, bucket: data, prefix: guilds/acme }; prefix: \"\" grants the whole bucket", "owner, bucket and prefix are all needed")
	case !grant.Prefix("", g.Prefix):
		v.Fail("prefix", "write a/b", "the prefix has empty segments, dots or control characters")
	}
	return g
}

func (p configReader) gitHub(v yamlread.Node) {
	g := &p.c.GitHub
	v.Object(yamlread.Fields{
		"base_url": func(n yamlread.Node) { g.BaseURL = gitServer(n) },
		"api_url":  func(n yamlread.Node) { g.APIURL = endpoint.Read(n) },
		"app":      func(n yamlread.Node) { g.App = gitHubApp(n) },
		"ssh":      func(n yamlread.Node) { p.ssh(n, &g.SSH) },
		"clone":    func(n yamlread.Node) { g.Clone, _ = n.OneOf("auto", "full", "blobless") },
	})
	if overGit(g.BaseURL) && (g.APIURL != "" || g.App != nil) {
		v.Fail("endpoint", "leave api_url and app away, or write an https URL as base_url", "over git:// there are no credentials, which api_url and app are for")
	}
}

func (p configReader) ssh(v yamlread.Node, to *SSH) {
	v.Object(yamlread.Fields{
		"known_hosts": func(n yamlread.Node) { to.KnownHosts, _ = p.path(n) },
		"credentials": func(n yamlread.Node) { n.Into(&to.Credentials) },
		"allow":       func(n yamlread.Node) { to.Allow = patterns(n) },
	})
	if to.Credentials != "" && len(to.Allow) == 0 {
		v.Fail("missing-key", "add allow: [ \"@acme/*\" ], which workspaces may use them", "no workspace may use the credentials")
	}
}

func gitHubApp(v yamlread.Node) *GitHubApp {
	a := &GitHubApp{Installations: map[string][]int64{}}
	v.Object(yamlread.Fields{
		"id": func(n yamlread.Node) { a.ID, _ = n.Integer() }, "key": func(n yamlread.Node) { n.Into(&a.Key) },
		"installations": func(n yamlread.Node) {
			n.Each(func(owner string, _, val yamlread.Node) {
				val.Items(func(x yamlread.Node) {
					if i, ok := x.Integer(); ok {
						a.Installations[owner] = append(a.Installations[owner], i)
					}
				})
			})
		},
	})
	if a.ID == 0 || a.Key == "" {
		v.Fail("missing-key", "write { id: 1, key: <name of a secret> }", "id and key are both needed")
	}
	return a
}
