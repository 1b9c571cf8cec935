package host

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

func addressOf(text string) mountspec.Address {
	a, err := mountspec.ParseAddress(text)
	if err != nil {
		panic(err)
	}
	return a
}

// Who may begin from a template, by what it says of itself and what the host allows.
func TestTemplate(t *testing.T) {
	for _, c := range []struct{ name, publish, to, config, refused string }{
		{"public", "{ template: true, visibility: public }", "@me/new", "", ""},
		{"of the same owner", "{ template: true }", "@acme/new", "", ""},
		{"private", "{ template: true }", "@me/new", "", "another owner"},
		{"unlisted", "{ template: true, visibility: unlisted }", "@me/new", "", "another owner"},
		{"that the host allows", "{ template: true }", "@me/new", "allow_refs: [ { from: \"@me/*\", to: \"@acme/tmpl\" } ]\n", ""},
		{"that the host allows others", "{ template: true }", "@me/new", "allow_refs: [ { from: \"@you/*\", to: \"@acme/*\" } ]\n", "another owner"},
		{"no template", "{ visibility: public }", "@me/new", "", "no template"},
		{"itself", "{ template: true }", "@acme/tmpl", "", "@acme/tmpl cannot begin from itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.workspace("tmpl", "@acme/tmpl", "publish: "+c.publish)
			w.add("tmpl")
			w.config = c.config
			_, err := w.resolver().Template(t.Context(), addressOf("@acme/tmpl"), addressOf(c.to))
			if c.refused == "" {
				assert.OK(t, err)
				return
			}
			checkError(t, err, Denied, c.refused)
			if c.refused == "another owner" {
				assert.Contains(t, w.log(), `"kind":"template"`)
			}
		})
	}
}

// The attack: a clone that calls itself a workspace of others lies in the search path.
func TestTemplateThatIsNotRegistered(t *testing.T) {
	w := newWorld(t)
	w.config = "search_path: [ " + w.mkdir("sp") + " ]\n"
	w.workspace("sp/tmpl", "@acme/tmpl", "publish: { template: true, visibility: public }")
	_, err := w.resolver().Template(t.Context(), addressOf("@acme/tmpl"), addressOf("@me/new"))
	checkError(t, err, Denied, "not registered")
	checkError(t, assert.ErrOf(w.resolver().Publishable(t.Context(), addressOf("@acme/tmpl"))), Denied, "not registered")
	w.mkdir("plain")
	w.config = "workspaces: { \"@acme/plain\": " + w.path("plain") + " }\n"
	checkError(t, assert.ErrOf(w.resolver().Publishable(t.Context(), addressOf("@acme/plain"))), Unresolvable, "no manifest")
}

// What a manifest says publishes nothing; its policy and its visibility can forbid it.
func TestPublishable(t *testing.T) {
	grant := func(action string) string {
		return "policy: { schema: policy/v1, grants: [ { principal: \"*\", actions: [ { action: \"storage:*\" }, { action: \"" + action + "\" } ] } ] }"
	}
	for _, c := range []struct{ name, more, refused string }{
		{"public", "publish: { visibility: public }", ""},
		{"unlisted", "publish: { visibility: unlisted }", ""},
		{"private", "publish: { template: true }", "@acme/ws is private"},
		{"granted", "publish: { visibility: public }\n" + grant("workspace:publish"), ""},
		{"not granted", "publish: { visibility: public }\n" + grant("workspace:read"), "does not let"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.workspace("ws", "@acme/ws", c.more)
			w.add("ws")
			got, err := w.resolver().Publishable(t.Context(), addressOf("@acme/ws"))
			if c.refused != "" {
				checkError(t, err, Denied, c.refused)
				return
			}
			assert.OK(t, err)
			assert.OK(t, w.resolver().RecordPublished(got, "/b", "sum"))
			assert.True(t, strings.Contains(w.log(), `"action":"workspace:publish"`) && strings.Contains(w.log(), "workspace.published"), w.log())
		})
	}
}

// Inventories of any name stay, and so do the places of the host.
func TestKept(t *testing.T) {
	w := newWorld(t)
	w.write("ws/names.md", "---\nsecrets: [ { slug: one, name: One, description: d } ]\n---\n")
	w.workspace("ws", "@acme/ws", "publish: { visibility: public }")
	w.manifest("ws", "@acme/ws", `{ inline: { provider: local-fs, config: { mount_path: ./data }, auth: { ref: ./names.md } } }`, "publish: { visibility: public }")
	w.add("ws")
	r := w.resolver()
	kept := r.Kept(assert.Of(r.Publishable(t.Context(), addressOf("@acme/ws"))).OK(t))
	for _, want := range []string{w.path("ws/names.md"), filepath.Join(w.home, ".config/wsmount/config.yaml"), filepath.Join(w.home, ".config/wsmount")} {
		assert.True(t, slices.Contains(kept, want), want, "is not in", kept)
	}
	assert.Equal(t, r.Bundles(), filepath.Join(w.home, ".config/wsmount/published"))
}
