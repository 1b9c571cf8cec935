package host

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// secrets reads where the host keeps each secret. A value written here is
// refused like any unknown key.
func (p configReader) secrets(v node) {
	v.each(func(slug string, at, val node) {
		if len(slug) > 200 || strings.ContainsAny(slug, " \t@:\\") || strings.HasPrefix(slug, "/") || strings.Contains(slug, "..") {
			at.fail("slug", "write a name such as org/acme/s3-rw", "not the name of a secret")
			return
		}
		var s secretReader
		val.object(fields{
			"env":     func(n node) { s.take(n); s.env = p.env(n) },
			"file":    func(n node) { s.take(n); s.file, _ = p.path(n) },
			"command": func(n node) { s.take(n); s.command = n.texts() },
			"format": func(n node) {
				if f, ok := n.oneOf("json", "text"); ok && f == "json" {
					s.format = secrets.JSON
				}
			},
			"allow": func(n node) { s.allow = patterns(n) },
		})
		if s.forms != 1 {
			val.fail("secret-source", "write one of env, file and command", "needs exactly one source, has %d", s.forms)
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

func (s *secretReader) take(node) { s.forms++ }

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
func (p configReader) env(v node) secrets.Env {
	e := secrets.Env{Lookup: p.o.Lookup}
	name := func(n node) string {
		s, ok := n.text()
		if ok && !secrets.IsEnvName(s) {
			n.fail("env-name", "write the name of the variable, never the value", "not the name of an environment variable")
			return ""
		}
		return s
	}
	if !v.isMapping() {
		e.Name = name(v)
		return e
	}
	e.Fields = map[string]string{}
	v.each(func(field string, _, val node) { e.Fields[field] = name(val) })
	return e
}

func (p configReader) providers(v node) {
	v.object(fields{"cloud-bucket": p.cloudBucket, "github": p.gitHub})
}

func (p configReader) cloudBucket(v node) {
	b := &CloudBucket{}
	v.object(fields{
		"kind":        func(n node) { b.Kind, _ = n.oneOf(secrets.S3, secrets.Azure, secrets.GCS) },
		"endpoint":    func(n node) { b.Endpoint = serviceURL(n) },
		"region":      func(n node) { n.into(&b.Region) },
		"credentials": func(n node) { n.into(&b.Credentials) },
		"grants": func(n node) {
			n.items(func(x node) { b.Grants = append(b.Grants, bucketGrant(x)) })
		},
	})
	if b.Kind == "" {
		v.fail("missing-key", "add kind: s3, azure or gcs", "kind is missing")
	}
	p.c.CloudBucket = b
}

func bucketGrant(v node) BucketGrant {
	var g BucketGrant
	prefix := false
	v.object(fields{
		"owner":  func(n node) { n.into(&g.Owner) },
		"bucket": func(n node) { n.into(&g.Bucket) },
		"prefix": func(n node) {
			prefix = true
			if n.n.Value != "" { // an empty one is the whole bucket, said on purpose
				n.into(&g.Prefix)
			}
		},
	})
	switch {
	case g.Owner == "" || g.Bucket == "" || !prefix:
		v.fail("missing-key", "write { owner: acme, bucket: data, prefix: guilds/acme }; prefix: \"\" grants the whole bucket", "owner, bucket and prefix are all needed")
	case !grant.Prefix("", g.Prefix):
		v.fail("prefix", "write a/b", "the prefix has empty segments, dots or control characters")
	}
	return g
}

func (p configReader) gitHub(v node) {
	g := &p.c.GitHub
	v.object(fields{
		"base_url": func(n node) { g.BaseURL = gitServer(n) },
		"api_url":  func(n node) { g.APIURL = serviceURL(n) },
		"app":      func(n node) { g.App = gitHubApp(n) },
		"ssh":      func(n node) { p.ssh(n, &g.SSH) },
		"clone":    func(n node) { g.Clone, _ = n.oneOf("auto", "full", "blobless") },
	})
	if overGit(g.BaseURL) && (g.APIURL != "" || g.App != nil) {
		v.fail("endpoint", "leave api_url and app away, or write an https URL as base_url", "over git:// there are no credentials, which api_url and app are for")
	}
}

func (p configReader) ssh(v node, to *SSH) {
	v.object(fields{
		"known_hosts": func(n node) { to.KnownHosts, _ = p.path(n) },
		"credentials": func(n node) { n.into(&to.Credentials) },
		"allow":       func(n node) { to.Allow = patterns(n) },
	})
	if to.Credentials != "" && len(to.Allow) == 0 {
		v.fail("missing-key", "add allow: [ \"@acme/*\" ], which workspaces may use them", "credentials are for nobody")
	}
}

func gitHubApp(v node) *GitHubApp {
	a := &GitHubApp{Installations: map[string][]int64{}}
	v.object(fields{
		"id":  func(n node) { a.ID, _ = n.integer() },
		"key": func(n node) { n.into(&a.Key) },
		"installations": func(n node) {
			n.each(func(owner string, _, val node) {
				val.items(func(x node) {
					if i, ok := x.integer(); ok {
						a.Installations[owner] = append(a.Installations[owner], i)
					}
				})
			})
		},
	})
	if a.ID == 0 || a.Key == "" {
		v.fail("missing-key", "write { id: 1, key: <name of a secret> }", "id and key are both needed")
	}
	return a
}
