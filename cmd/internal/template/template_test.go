package template

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

func address(t *testing.T, text string) mountspec.Address {
	t.Helper()
	return assert.Of(mountspec.ParseAddress(text)).OK(t)
}

// starter is a host with a registered template, @acme/starter, in a directory beside which
// workspaces can be made.
func starter(t *testing.T, more string) (dir string, h Host) {
	t.Helper()
	dir = assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	for name, text := range map[string]string{
		"starter/WORKSPACE.md": "---\nschema: workspace/v1\nid: \"@acme/starter\"\nversion: 1.0.0\nname: Starter\nowner: { type: org, id: A, slug: acme }\n" +
			"storage: { inline: { provider: local-fs, config: { mount_path: . } } }\npublish: { template: true, visibility: public }\n" + more + "---\n\nAbout it.\n",
		"starter/CODE.md": "---\nschema: code/v2\nid: \"@acme/code/x\"\nversion: 1.0.0\n---\n",
		"starter/a/file":  "text",
	} {
		assert.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r := assert.Of(host.NewResolver(host.Options{Config: &host.Config{Dir: filepath.Join(dir, "config")}, Temp: dir})).OK(t)
	assert.OK(t, assert.ErrOf(r.Add(t.Context(), filepath.Join(dir, "starter"), host.AddOptions{})))
	return dir, Host{r, filepath.Join(dir, "starter/state")}
}

func options(t *testing.T, dir string) Options {
	return Options{From: "@acme/starter", Dir: filepath.Join(dir, "new/mine"), ID: address(t, "@me/mine"), OwnerID: "M",
		Now: func() time.Time { return time.Unix(0, 0) }}
}

// left are the names in a directory.
func left(t *testing.T, dir string) string {
	t.Helper()
	names := assert.Of(os.ReadDir(dir)).OK(t)
	out := ""
	for _, n := range names {
		out += n.Name() + " "
	}
	return out
}

// What the template is about is taken over, with the text below; Undo takes away what was
// made, and nothing that somebody added.
func TestBegin(t *testing.T) {
	dir, h := starter(t, "code: { file: ./CODE.md }\nmetadata: { studio: { color: red } }\ntags: [ x ]\n")
	assert.OK(t, os.Mkdir(filepath.Join(dir, "starter/state"), 0o700))
	b := assert.Of(Begin(t.Context(), h, options(t, dir))).OK(t)
	assert.True(t, len(b.Left) == 1 && b.Left[0].Path == "state", b.Left)
	w := b.Workspace
	assert.Equal(t, w.Template.ID.String()+" "+w.Template.Version, "@acme/starter 1.0.0")
	assert.True(t, w.Code.Ref.Value == "./CODE.md" && w.Metadata["studio"] != nil && w.CreatedAt == "1970-01-01T00:00:00Z" && !w.Publish.Template, w)
	assert.Contains(t, string(assert.Of(os.ReadFile(b.Manifest)).OK(t)), "\n---\n\nAbout it.\n")
	tier.OnDisk(t, filepath.Join(dir, "new/mine/a/file"))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "new/mine/a/added"), nil, 0o600))
	b.Undo()
	assert.Equal(t, left(t, filepath.Join(dir, "new/mine"))+left(t, filepath.Join(dir, "new/mine/a")), "a added ")
}

// A host grants by the address that asks. So what a template asks of hosts is taken over
// by its own owner, and where it is another's, or comes in a file that anybody may have
// written, it is left out and named.
func TestAnothersWishesAreLeftOut(t *testing.T) {
	dir, h := starter(t, "code: { file: ./CODE.md }\npolicy: { schema: policy/v1, default: allow }\n"+
		"sandbox: { inline: { provider: local, config: {}, env: { auth: { state: { env: [ MY_TOKEN ] } } } } }\n"+
		"metadata: { wsmount: { mounts: [ { at: /x, source: \"@me/private\", optional: true } ] } }\n")
	plan := assert.Of(Look(t.Context(), h, address(t, "@acme/starter"))).OK(t)
	defer plan.Close()
	file, _, err := plan.Publish(t.Context())
	assert.OK(t, err)
	for _, tt := range []struct {
		id, owner, from string
		own             bool
	}{
		{"@acme/ours", "A", "@acme/starter", true},
		{"@acme/other", "B", "@acme/starter", false}, // the same name, another owner
		{"@me/mine", "M", "@acme/starter", false},
		{"@me/copy", "M", file, false},
		{"@acme/copy", "A", file, false},
	} {
		o := options(t, dir)
		o.ID, o.OwnerID, o.From, o.Dir = address(t, tt.id), tt.owner, tt.from, filepath.Join(dir, "new", tt.id)
		b := assert.Of(Begin(t.Context(), h, o)).OK(t, tt.id)
		text := assert.Of(os.ReadFile(b.Manifest)).OK(t)
		assert.Contains(t, string(text), "CODE.md", tt.id)
		notes := strings.Join(b.Notes, "\n")
		for _, asks := range []struct{ text, note string }{
			{"@me/private", `the mount of "@me/private" at "/x"; to have it, write it under metadata.wsmount.mounts`},
			{"MY_TOKEN", `the sandbox, which asks for ["MY_TOKEN"]; to have it`},
			{"default: allow", "the policy; to have it"},
		} {
			assert.Equal(t, strings.Contains(string(text), asks.text), tt.own, tt.id, asks.text)
			assert.Equal(t, strings.Contains(notes, asks.note), !tt.own, tt.id, notes)
		}
	}
	was := &mountspec.Workspace{Code: &mountspec.Block[mountspec.Code]{Ref: mountspec.Ref{Kind: mountspec.RefSlug, Value: "@acme/code"}}}
	assert.Equal(t, len(leaveOut(was)), 1, "notes")
	assert.True(t, was.Code == nil, "code of an address is taken over")
}

// When files are sent, and which are not, is as the template says, as far as the new
// storage can; where they lie is not.
func TestStorageLikeTheTemplates(t *testing.T) {
	site := `provider: github, config: { owner: me, repo: site, branch: main }`
	storage := func(text string) *mountspec.Storage {
		t.Helper()
		st, found := mountspec.ParseStorage(mountspec.Source{Name: "s", Data: []byte("---\n{ schema: storage/v1, " + text + " }\n---\n")}, mountspec.Options{})
		assert.OK(t, found.Err())
		return st
	}
	for _, tt := range []struct{ template, commit, exclude, note string }{
		{`provider: github, config: { owner: acme, repo: x, branch: y }, sync: { commit: { on: manual } }, exclude: [ "a/" ]`, "manual", "a/", ""},
		{`provider: local-fs, config: { mount_path: . }, sync: { mode: watch }, exclude: [ "a/" ]`, "per-turn", "a/", "the template's sync is not taken over, which is for local-fs"},
		{`provider: local-fs, config: { mount_path: . }`, "per-turn", "", ""},
		{"", "per-turn", "", `storage "./S.md" says of sync and exclude is not taken over`},
	} {
		was := mountspec.Block[mountspec.Storage]{Ref: mountspec.Ref{Value: "./S.md"}}
		if tt.template != "" {
			was = mountspec.Block[mountspec.Storage]{Inline: storage(tt.template)}
		}
		got, note := storageLike(storage(site), was)
		assert.Equal(t, string(got.Sync.Commit.On)+" "+strings.Join(got.Exclude, " "), tt.commit+" "+tt.exclude, tt.template)
		assert.True(t, strings.Contains(note, tt.note) && (note == "") == (tt.note == ""), tt.template, note)
		assert.Equal(t, got.Config.(mountspec.GitHubConfig).Repo, "site", tt.template)
		got, _ = storageLike(storage(`provider: local-fs, config: { mount_path: "." }`), was)
		assert.Equal(t, fmt.Sprint(got.Sync.Present(), strings.Join(got.Exclude, " ")), "false"+tt.exclude, "a directory,", tt.template)
	}
}

// The same files give the same sum by way of a bundle.
func TestBundleOfATemplate(t *testing.T) {
	dir, h := starter(t, "")
	b := assert.Of(Begin(t.Context(), h, options(t, dir))).OK(t)
	plan := assert.Of(Look(t.Context(), h, address(t, "@acme/starter"))).OK(t)
	defer plan.Close()
	file, sum, err := plan.Publish(t.Context())
	assert.OK(t, err)
	assert.Equal(t, sum, b.Workspace.Template.SHA256)
	o := options(t, dir)
	o.From, o.Dir = file, filepath.Join(dir, "other")
	assert.Equal(t, assert.Of(Begin(t.Context(), h, o)).OK(t).Workspace.Template.SHA256, sum)
}

// An interruption leaves nothing, neither of a directory nor of a bundle.
func TestInterrupted(t *testing.T) {
	dir, h := starter(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	plan, err := Look(ctx, h, address(t, "@acme/starter"))
	assert.OK(t, err)
	defer plan.Close()
	cancel()
	_, _, err = plan.Publish(ctx)
	assert.Contains(t, exit.From(err).What, "interrupted")
	assert.Equal(t, left(t, filepath.Join(h.Bundles(), "acme/starter")), "")
	_, err = Begin(ctx, h, options(t, dir))
	assert.True(t, err != nil, "it was begun")
	assert.Equal(t, left(t, dir), "config starter ")
}

// A manifest that refers to what does not go with it is for nobody to begin from.
func TestReferences(t *testing.T) {
	l := bundle.List{Entries: []bundle.Entry{{Path: "CODE.md", Type: bundle.File}, {Path: "lib", Type: bundle.Dir}}}
	for more, refused := range map[string]string{
		"code: { file: ./CODE.md }":                                                 "",
		"code: { ref: ./gone/CODE.md }":                                             "gone/CODE.md",
		"code: { ref: ../other/CODE.md }":                                           "../other",
		"code: { ref: \"@acme/code\" }":                                             "",
		"sandbox: { file: SANDBOX.md }":                                             "SANDBOX.md",
		"policy: [ { file: CODE.md }, { file: P } ]":                                "\"P\"",
		"sandbox: { inline: { provider: local, config: {}, policy: { file: P } } }": "\"P\"",
		"sandbox: { inline: { provider: local, config: {}, mounts: [ { source: { file: ./s.STORAGE.md }, at: /s } ] } }": "s.STORAGE.md",
		"sandbox: { inline: { provider: local, config: {}, mounts: [ { source: workspace, at: /s } ] } }":                "",
		"metadata: { wsmount: { mounts: [ { at: /l, source: ./lib } ] } }":                                               "",
		"metadata: { wsmount: { mounts: [ { at: /l, source: ./gone } ] } }":                                              "./gone",
		"metadata: { wsmount: { mounts: [ { at: /l, source: ./gone, optional: true } ] } }":                              "",
	} {
		w, _, err := parse([]byte("---\nschema: workspace/v1\nid: \"@a/b\"\nversion: 1.0.0\nname: x\nowner: { type: org, id: A, slug: a }\n" +
			"storage: { file: ./gone.STORAGE.md }\n" + more + "\n---\n"))
		assert.OK(t, err, more)
		err = checkRefs(w, l)
		assert.Equal(t, err == nil, refused == "", more, err)
		if err != nil {
			assert.Contains(t, err.Error(), refused)
		}
	}
}

// What cannot be published, or begun from, each by its words.
func TestRefusals(t *testing.T) {
	look := func(h Host, err error) error {
		assert.OK(t, err)
		return assert.ErrOf(Look(t.Context(), h, address(t, "@acme/starter")))
	}
	dir, h := starter(t, "")
	credentials := look(h, os.WriteFile(dir+"/starter/notes", []byte("ghp_0123456789abcdefghijABCDEFGHIJ012345\n"), 0o600))
	assert.OK(t, os.Remove(dir+"/starter/notes"))
	own := string(assert.Of(os.ReadFile(dir + "/starter/WORKSPACE.md")).OK(t))
	assert.OK(t, os.MkdirAll(dir+"/two/files", 0o755))
	for name, text := range map[string]string{"two/WORKSPACE.md": "mount_path: ./files", "two/files/WORKSPACE.md": "mount_path: ./other"} {
		text = strings.NewReplacer("mount_path: .", text, "@acme/starter", "@acme/two").Replace(own)
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	assert.OK(t, assert.ErrOf(h.Add(t.Context(), dir+"/two", host.AddOptions{})))
	nowhere := Host{assert.Of(host.NewResolver(host.Options{})).OK(t), ""}
	_, _, noPlace := (&Plan{Workspace: &host.Resolved{}, h: nowhere}).Publish(t.Context())
	in := assert.Of(os.OpenRoot(dir + "/starter")).OK(t)
	defer in.Close()
	parsed, _, err := parse([]byte(own))
	assert.OK(t, err)
	_, _, invalid := parse([]byte("---\nname: x\n---\n"))
	lies := *parsed
	lies.Tags = []string{"\x00"}
	for says, err := range map[string]error{
		"@acme/starter: credentials stand in what would go out: ":                             credentials,
		"@acme/starter cannot be copied: permission denied":                                   refused(&host.Resolved{Address: address(t, "@acme/starter")}, os.ErrPermission),
		"the WORKSPACE.md among the files of @acme/two is not the one that this host goes by": assert.ErrOf(Look(t.Context(), h, address(t, "@acme/two"))),
		"the new manifest would not be valid: ":                                               assert.ErrOf(manifestfile.Text(&mountspec.Workspace{}, "")),
		"there is no place for what is published":                                             noPlace,
		"the manifest of the template is not valid: ":                                         invalid,
		"the bundle is of @acme/other 1.0.0, and the manifest in it of @acme/starter 1.0.0":   (&Begun{}).declare(h, Options{}, nil, in, &bundle.List{ID: "@acme/other", Version: "1.0.0"}, ""),
		"what the template's manifest says does not hold for @acme/starter: ":                 newOf(parsed, &lies),
	} {
		var e *exit.Error
		assert.True(t, errors.As(err, &e) && strings.Contains(e.What, says) && e.Advice != "", says, err)
	}
}

func newOf(base, template *mountspec.Workspace) error {
	_, _, err := newManifest(base, template, true, mountspec.Origin{}, time.Unix(0, 0))
	return err
}
