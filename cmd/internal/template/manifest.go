package template

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
)

// maxManifest bounds a manifest with the text below it.
const maxManifest = 16 << 20

// readFile reads a manifest in a directory.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxManifest))
}

// parse reads a manifest, and the text below it. Its storage need not be one that this host
// has: no new workspace keeps it.
func parse(text []byte) (*mountspec.Workspace, string, error) {
	w, found := mountspec.ParseWorkspace(mountspec.Source{Name: bundle.Manifest, Data: text}, mountspec.Options{Registered: func(string) bool { return true }})
	if err := found.Err(); err != nil {
		return nil, "", exit.New(exit.Manifest, "the manifest of the template is not valid: %w", err).Hint("`wsmount validate` shows every line with its rule")
	}
	_, to, _ := mountspec.Frontmatter(text)
	_, body, _ := bytes.Cut(text[to:], []byte("\n")) // after the line of dashes
	return w, string(body), nil
}

// newManifest is the manifest of a workspace that begins from a template: its description and
// settings are the template's, its owner and place are not. It notes the keys that are not taken
// over, which are more where the template is not proven to be of the same owner.
func newManifest(base, t *mountspec.Workspace, own bool, origin mountspec.Origin, now time.Time) (*mountspec.Workspace, []string, error) {
	def := *base
	def.Description, def.Sandbox, def.Code, def.Policy, def.Defaults = t.Description, t.Sandbox, t.Code, t.Policy, t.Defaults
	def.Tags, def.Metadata, def.Mounts = t.Tags, t.Metadata, t.Mounts
	def.CreatedAt = now.UTC().Format(time.RFC3339)
	def.Template = &origin
	others := 0
	for _, e := range t.Identity {
		switch {
		case e.Ref != mountspec.CurrentOperator && e.Ref != mountspec.CurrentUser:
			others++
		case !slices.ContainsFunc(def.Identity, func(has mountspec.IdentityEntry) bool { return has.Ref == e.Ref }):
			def.Identity = append(def.Identity, e)
		}
	}
	var notes []string
	if s := def.Storage.Inline; s != nil {
		var note string
		if def.Storage.Inline, note = storageLike(s, t.Storage); note != "" {
			notes = append(notes, note)
		}
	}
	if others > 0 {
		notes = append(notes, "the identities that the template names are not taken over: they are other people's")
	}
	if !own {
		notes = append(notes, leaveOut(&def)...)
	}
	if len(def.Policy) > 0 {
		notes = append(notes, "its policy is the template's: look at whom it grants what")
	}
	if s := def.Sandbox; s != nil && (s.Inline == nil || len(s.Inline.EnvAuth.Env) > 0) {
		notes = append(notes, "its sandbox is the template's, and secrets that it names are not copied")
	}
	w, found := mountspec.DefineWorkspace(def, mountspec.Options{Registered: daemon.Mountable})
	if err := found.Err(); err != nil {
		return nil, nil, exit.New(exit.Manifest, "what the template's manifest says does not hold for %s: %w", base.ID, err).Hint("the template's author has to change it")
	}
	return w, notes, nil
}

// storageLike is the storage of a new workspace with the sync and exclude of the template's:
// excluded files of a directory are not published either. The place is not the template's
// to choose. A note names the keys that are not taken over.
func storageLike(own *mountspec.Storage, template mountspec.Block[mountspec.Storage]) (*mountspec.Storage, string) {
	was := template.Inline
	if was == nil {
		return own, fmt.Sprintf("what the template's storage %q says of sync and exclude is not taken over: write it into the manifest", template.Ref.Value)
	}
	st := *own
	st.Exclude = was.Exclude
	if !was.Sync.Present() || mountspec.Direct(own.Provider) { // whose files are not sent
		return &st, ""
	}
	st.Sync = was.Sync
	if _, found := mountspec.DefineStorage(st, mountspec.Options{Registered: daemon.Mountable}); found.Err() != nil {
		st.Sync = own.Sync
		return &st, fmt.Sprintf("the template's sync is not taken over, which is for %s: write one for %s into the manifest", was.Provider, own.Provider)
	}
	return &st, ""
}

// leaveOut takes requests to hosts, and policies, of another owner's template out of the
// manifest of a new workspace: a host grants by the address that asks, and that is
// the new owner's, who has not asked. It notes for each how to have it.
func leaveOut(def *mountspec.Workspace) (notes []string) {
	left := func(key, format string, args ...any) {
		notes = append(notes, "not taken over from another owner's template: "+fmt.Sprintf(format, args...)+"; to have it, write it under "+key+" of the manifest")
	}
	for _, m := range def.Mounts {
		left("metadata.wsmount.mounts", "the mount of %q at %q", m.Source.Value, m.At)
	}
	if s := def.Sandbox; s != nil {
		asks := ""
		if s.Inline != nil {
			if names := slices.Concat(s.Inline.EnvAuth.Env, s.Inline.EnvPassthrough); len(names) > 0 {
				asks = fmt.Sprintf(", which asks for %q", names)
			}
		}
		left("sandbox", "the sandbox%s", asks)
	}
	if c := def.Code; c != nil && c.Ref.Kind == mountspec.RefSlug {
		left("code", "the code %q", c.Ref.Value)
		def.Code = nil
	}
	if len(def.Policy) > 0 {
		left("policy", "the policy")
	}
	def.Mounts, def.Sandbox, def.Policy = nil, nil, nil
	return notes
}

// checkRefs refuses a manifest that refers to files that do not go with it. Storage and
// identities are not checked: no new workspace has them of its template.
func checkRefs(w *mountspec.Workspace, l bundle.List) error {
	type named struct {
		what string
		ref  mountspec.Ref
	}
	var refs []named
	policies := func(list []mountspec.Block[mountspec.Policy]) {
		for _, p := range list {
			refs = append(refs, named{"policy", p.Ref})
		}
	}
	policies(w.Policy)
	if w.Code != nil {
		refs = append(refs, named{"code", w.Code.Ref})
	}
	if s := w.Sandbox; s != nil {
		refs = append(refs, named{"sandbox", s.Ref})
		if s.Inline != nil {
			policies(s.Inline.Policy)
			for _, m := range s.Inline.Mounts {
				refs = append(refs, named{"mount of the sandbox", m.Source.Ref})
			}
		}
	}
	for _, m := range w.Mounts {
		if !m.Optional {
			refs = append(refs, named{"mount " + m.At, m.Source})
		}
	}
	for _, n := range refs {
		if n.ref.Value == "" || n.ref.Kind == mountspec.RefInline || n.ref.Kind == mountspec.RefSlug || has(l, n.ref.Clean()) {
			continue
		}
		return exit.New(exit.Manifest, "its %s is %q, which is not among the files that go with it", n.what, n.ref.Value).
			Hint("keep it in the workspace, and out of exclude")
	}
	return nil
}

func has(l bundle.List, p string) bool {
	p = path.Clean(p)
	return slices.ContainsFunc(l.Entries, func(e bundle.Entry) bool { return e.Path == p })
}
