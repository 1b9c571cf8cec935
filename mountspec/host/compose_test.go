package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

func mounts(list ...string) string {
	return "metadata: { wsmount: { mounts: [ " + strings.Join(list, ", ") + " ] } }"
}

func mnt(at, source, more string) string {
	return "{ at: " + at + ", source: \"" + source + "\"" + more + " }"
}

func TestChildren(t *testing.T) {
	w := newWorld(t)
	w.workspace("lib", "@acme/lib")
	w.workspace("docs", "@acme/docs", mounts(mnt("/lib", "@acme/lib", "")))
	w.workspace("ws", "@acme/ops", mounts(mnt("/docs", "@acme/docs", ", mode: read-only"), mnt("/gone", "@acme/none", ", optional: true")))
	for _, d := range []string{"lib", "docs", "ws"} {
		w.add(d)
	}
	got := w.ok("@acme/ops", ResolveOptions{})
	assert.Must(t, len(got.Children) == 2 && !got.ReadOnly.On(), "children", got.Children)
	docs, gone := got.Children[0], got.Children[1]
	assert.True(t, docs.At == "/docs" && docs.Mode == mountspec.MountReadOnly && docs.Resolved.Address.Slug == "docs", "docs", docs)
	r := docs.Resolved.ReadOnly
	assert.True(t, len(r.Reasons) == 1 && r.Reasons[0].Source == "mount", "docs are read-only for", r.Reasons)
	lib := docs.Resolved.Children[0].Resolved
	r = lib.ReadOnly
	assert.True(t, len(r.Reasons) == 1 && strings.HasPrefix(r.Reasons[0].Where, "parent: "), "a child loosened its parent:", r.Reasons)
	assert.True(t, gone.Resolved == nil && gone.Err != nil && gone.Optional, "gone", gone)
	all := w.ok("@acme/ops", ResolveOptions{ReadOnly: true})
	assert.True(t, all.Children[0].Resolved.Children[0].Resolved.ReadOnly.On(), "--read-only does not reach a grandchild")
}

func TestChildThatIsNotOptional(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", mounts(mnt("/gone", "@acme/none", "")))
	w.add("ws")
	e := w.refused("@acme/ops", ResolveOptions{}, Unresolvable, "@acme/ops -> @acme/none")
	assert.Equal(t, len(e.Chain), 2, "chain", e.Chain)
}

func TestChildSources(t *testing.T) {
	for _, c := range []struct {
		name, source string
		trust        bool
		words        string // empty: mounted
		verified     bool
	}{
		{name: "registered, same owner", source: "@acme/reg", trust: true, verified: true},
		{name: "another owner", source: "@evil/reg", trust: true, words: "another owner"},
		{name: "another owner, allowed", source: "@shared/reg", trust: true, verified: true},
		{name: "of a manifest that is not registered", source: "@acme/reg", words: "not registered"},
		{name: "below", source: "./sub", trust: true},
		{name: "below, of a manifest that is not registered", source: "./sub"},
		{name: "below, its manifest", source: "./sub/WORKSPACE.md"},
		{name: "registered sibling", source: "../acme-reg", trust: true, verified: true},
		{name: "sibling that is not registered", source: "../stray", trust: true, words: "no registered workspace"},
		{name: "a link that leads out", source: "./out", trust: true, words: "leads out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, o := range []string{"acme", "evil", "shared"} {
				w.workspace(o+"-reg", "@"+o+"/reg")
				w.add(o + "-reg")
			}
			w.config = "allow_refs: [ { from: \"@acme/ops\", to: \"@shared/*\" } ]\n"
			w.workspace("stray", "@acme/stray")
			w.workspace("ws/sub", "@acme/sub")
			w.symlink(w.path("stray"), "ws/out")
			w.workspace("ws", "@acme/ops", mounts(mnt("/m", c.source, "")))
			if c.words != "" {
				w.refused("ws", ResolveOptions{Trust: c.trust}, Denied, c.words)
				return
			}
			got := w.ok("ws", ResolveOptions{Trust: c.trust})
			assert.Equal(t, got.Children[0].Resolved.Verified, c.verified, "verified")
		})
	}
}

func TestMountsOfTheCommandLine(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", mounts(mnt("/a", "./sub", "")))
	w.workspace("ws/sub", "@acme/sub")
	w.workspace("other", "@other/x")
	w.add("other")
	m := mountspec.Mount{At: "/x", Source: mountspec.Ref{Kind: mountspec.RefSlug, Value: "@other/x"}, Mode: mountspec.MountReadOnly}
	got := w.ok("ws", ResolveOptions{Mounts: []mountspec.Mount{m}})
	assert.True(t, len(got.Children) == 2 && got.Children[1].Resolved.Address.Owner == "other" && len(got.Children[0].Resolved.Children) == 0, "children", got.Children)
	m.At = "/a"
	w.refused("ws", ResolveOptions{Mounts: []mountspec.Mount{m}}, Invalid, "/a")
	m = mountspec.Mount{At: "/y", Source: mountspec.Ref{Kind: mountspec.RefPath, Value: "./other"}}
	for _, m.Source.Value = range []string{"./other", w.path("other")} {
		if got := w.ok("ws", ResolveOptions{Mounts: []mountspec.Mount{m}, Dir: w.dir}); got.Children[1].Resolved.Trust != Registered {
			t.Errorf("%s: got %+v", m.Source.Value, got.Children[1])
		}
	}
}

func TestCyclesAndDepth(t *testing.T) {
	w := newWorld(t)
	for name, inside := range map[string]string{"self": "self", "a": "b", "b": "c", "c": "a"} {
		w.workspace(name, "@acme/"+name, mounts(mnt("/n", "@acme/"+inside, "")))
		w.add(name)
	}
	w.refused("@acme/self", ResolveOptions{}, Unresolvable, "the workspaces mount each other in a circle", "@acme/self -> @acme/self")
	w.refused("@acme/a", ResolveOptions{}, Unresolvable, "circle", "@acme/a -> @acme/b -> @acme/c -> @acme/a")
	w.refused("a", ResolveOptions{}, Unresolvable, "circle")

	for i := range maxDepth {
		name := fmt.Sprint("w", i)
		w.workspace(name, "@acme/"+name, mounts(mnt("/n", fmt.Sprint("@acme/w", i+1), "")))
		w.add(name)
	}
	last := fmt.Sprint("w", maxDepth)
	w.workspace(last, "@acme/"+last)
	w.add(last)
	w.ok("@acme/w1", ResolveOptions{})
	w.refused("@acme/w0", ResolveOptions{}, Unresolvable, "more than 16", "-> @acme/w16")
}

func TestOverlap(t *testing.T) {
	const allow = "allow_overlap: [ { from: \"@acme/a\", to: \"@acme/b\" } ]\n"
	for _, c := range []struct {
		name, a, b string
		config     string
		words      string
	}{
		{name: "apart", a: s3("", "data", "a", ""), b: s3("", "data", "b", "")},
		{name: "one prefix", a: s3("", "data", "a", ""), b: s3("", "data", "a", ""), words: "overlaps"},
		{name: "below", a: s3("", "data", "a", ""), b: s3("", "data", "a/b", ""), words: "overlaps"},
		{name: "other bucket", a: s3("", "data", "a", ""), b: s3("", "other", "a", "")},
		{name: "another name of the service", a: s3("", "data", "a", ""), b: s3("https://s3.amazonaws.com", "data", "a", ""), words: "overlaps"},
		{name: "another provider of the service", a: s3("", "data", "a", ""), b: `{ inline: { provider: mastra-s3, config: { bucket: data, region: us-east-1, prefix: a } } }`, words: "overlaps"},
		{name: "directory below", a: at("/DIR/srv"), b: at("/DIR/srv/x"), words: "overlaps"},
		{name: "branches", a: gitHubWith("", ""), b: strings.Replace(gitHubWith("", ""), "main", "dev", 1)},
		{name: "HEAD and a branch", a: gitHubWith("", ""), b: strings.Replace(gitHubWith("", ""), "branch: main", "", 1), words: "overlaps"},
		{name: "repository in other letters", a: gitHubWith("", ""), b: strings.Replace(gitHubWith("", ""), "repo: bot", "repo: Bot", 1), words: "overlaps"},
		{name: "allowed", a: s3("", "data", "a", ""), b: s3("", "data", "a", ""), config: allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config + "allow_paths: [ " + w.mkdir("srv") + " ]\n"
			w.mkdir("srv/x")
			storage := func(s string) string {
				return strings.ReplaceAll(strings.Replace(s, `endpoint: "", `, "", 1), "/DIR", w.dir)
			}
			w.manifest("a", "@acme/a", storage(c.a))
			w.manifest("b", "@acme/b", storage(c.b))
			w.add("b")
			check := func() {
				t.Helper()
				if c.words != "" {
					w.refused("a", ResolveOptions{Trust: true}, Denied, c.words, "@acme/b")
					return
				}
				w.ok("a", ResolveOptions{Trust: true})
			}
			check()
			assert.OK(t, w.resolver().Remove(t.Context(), mountspec.Address{Owner: "acme", Slug: "b"}.String()))
			w.config += "workspaces: { \"@acme/b\": " + w.path("b") + " }\n"
			check()
		})
	}
}

// Two volumes of one mount that are registered nowhere are compared too.
func TestOverlapInATree(t *testing.T) {
	w := newWorld(t)
	w.mkdir("ws/data")
	w.mkdir("ws/sub")
	w.manifest("ws", "@acme/ops", at(w.path("ws")), mounts(mnt("/sub", "./sub", "")))
	w.manifest("ws/sub", "@acme/sub", `{ inline: { provider: local-fs, config: { mount_path: . } } }`)
	e := w.refused("ws", ResolveOptions{}, Denied, "in one place", "@acme/ops at / -> @acme/sub at /sub")
	assert.Equal(t, len(e.Chain), 2, "chain", e.Chain)
	_, line, _ := strings.Cut(e.Hint, "grant it: ")
	for _, config := range []string{line, "allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]"} {
		assert.Must(t, config != "", "the hint grants nothing", e.Hint)
		w.config = config + "\n"
		w.ok("ws", ResolveOptions{})
	}
}
