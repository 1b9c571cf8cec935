// Package manifestfile makes a workspace of a directory, and writes its first WORKSPACE.md. It promises that the
// manifest validates, and that nothing is overwritten.
//
//	w, err := manifestfile.New("/srv/notes", address, ownerID, manifestfile.Options{})
//	undo, err := manifestfile.WriteNew("/srv/notes/WORKSPACE.md", w)
package manifestfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/mountspec"
)

// Options of New.
type Options struct {
	Name     string             // empty: that of the directory
	Provider string             // one of Providers; empty: local-fs
	Storage  *mountspec.Storage // where its files are to lie instead; nil: in the directory
}

// Providers are those that need only a directory.
var Providers = []string{mountspec.ProviderLocalFS, mountspec.ProviderDevLocal}

// New is a workspace whose manifest lies in a directory, of the owner with an id. Commits
// of it are made as the operator.
func New(dir string, id mountspec.Address, owner string, o Options) (*mountspec.Workspace, error) {
	provider := cmp.Or(o.Provider, mountspec.ProviderLocalFS)
	if !slices.Contains(Providers, provider) {
		return nil, exit.New(exit.Usage, "a manifest for provider %.60q cannot be written", provider).
			Hint("%s", cmp.Or(suggest.Phrase(provider, Providers), "one of "+strings.Join(Providers, ", ")))
	}
	var config mountspec.Config = mountspec.LocalFSConfig{MountPath: dir} // AIP-35 wants absolute paths
	if provider == mountspec.ProviderDevLocal {
		config = mountspec.DevLocalConfig{Root: dir}
	}
	storage := &mountspec.Storage{Provider: provider, Config: config}
	var identity []mountspec.IdentityEntry
	if o.Storage != nil {
		storage = o.Storage
	}
	if storage.Provider == mountspec.ProviderGitHub {
		identity = []mountspec.IdentityEntry{{Ref: mountspec.CurrentOperator}}
	}
	def := mountspec.Workspace{ID: id, Version: "0.1.0", Name: cmp.Or(o.Name, filepath.Base(dir)),
		Owner:   mountspec.Owner{Type: "user", ID: owner, Slug: strings.TrimRight(id.Owner, "-")},
		Storage: mountspec.Block[mountspec.Storage]{Inline: storage}, Identity: identity}
	w, found := mountspec.DefineWorkspace(def, mountspec.Options{Registered: daemon.Mountable})
	if err := found.Err(); err != nil {
		return nil, exit.New(exit.Usage, "%s", found.Filter(mountspec.Error)[0].Message).Hint("give other values for --id, --name or --owner-id")
	}
	return w, nil
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Address is one for a directory, made of its name and the login.
func Address(dir string) string {
	login := "me"
	if u, err := user.Current(); err == nil {
		login = u.Username
	}
	return "@" + slug(login, "me") + "/" + slug(filepath.Base(dir), "workspace")
}

func slug(s, other string) string {
	return cmp.Or(strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(s), "-"), "-"), other)
}

// WriteNew declares a workspace in a file that does not exist yet, and makes its
// directory. undo removes the file and the directories that it made.
func WriteNew(name string, w *mountspec.Workspace) (undo func(), err error) {
	text, err := Text(w, "")
	if err != nil {
		return nil, err
	}
	return WriteText(name, text)
}

// WriteText is WriteNew for the text of a manifest.
func WriteText(name string, text []byte) (undo func(), err error) {
	made := Missing(filepath.Dir(name))
	remove := func() {
		for _, name := range made {
			os.Remove(name) // a directory, unless it is not empty any more
		}
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("choose a directory that you may write")
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.New(exit.Failed, "%s exists already", name).Hint("edit it, or remove it first; a manifest is never overwritten")
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("choose a directory that you may write")
	}
	made = append([]string{name}, made...)
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("make room on its disk, and run it again")
	}
	return remove, nil
}

// Missing lists a directory and those above it that do not exist, the deepest first.
func Missing(dir string) (out []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return out
		}
		out = append(out, dir)
	}
}

// Body is the text below a new manifest when its author gave none.
func Body(w *mountspec.Workspace) string {
	return "\n# " + w.Name + "\n\nMount it with `wsmount " + w.ID.String() + " MOUNTPOINT`.\n"
}

// Text prints a workspace, with a text for people below it or Body, and makes sure that it
// reads back.
func Text(w *mountspec.Workspace, body string) ([]byte, error) {
	text, err := w.Marshal()
	if err != nil {
		return nil, notValid(err)
	}
	text = append(text, cmp.Or(body, Body(w))...)
	if _, found := mountspec.ParseWorkspace(mountspec.Source{Name: "WORKSPACE.md", Data: text}, mountspec.Options{Registered: daemon.Mountable}); found.Err() != nil {
		return nil, notValid(found.Err())
	}
	return text, nil
}

func notValid(err error) error {
	return exit.New(exit.Failed, "the new manifest would not be valid: %w", err).Hint("give other values: `wsmount help manifest` has each key")
}
