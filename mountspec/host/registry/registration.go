package registry

import (
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/origin"
)

// A Registration is the record that `registry add` made of a workspace.
type Registration struct {
	// Path is the real path of the WORKSPACE.md, or of the directory of a
	// workspace without one.
	Path        string            `json:"path"`
	OwnerID     string            `json:"owner_id"`
	Fingerprint string            `json:"fingerprint"`
	Location    location.Location `json:"location"`
	Files       []Accepted        `json:"files,omitempty"` // the manifest first, then files it refers to
	// From is where the files were fetched from; copies of them are kept in the directory
	// of Path. nil: the files lie in that directory.
	From       *origin.Origin `json:"from,omitempty"`
	AddedAt    time.Time      `json:"added_at"`
	AcceptedAt time.Time      `json:"accepted_at"`
}

// Accepted is one governing file as it was accepted.
type Accepted struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// Root is the directory of a registered workspace.
func (r *Registration) Root() string {
	if !r.HasManifest() {
		return r.Path
	}
	return filepath.Dir(r.Path)
}

// HasManifest reports whether the first of the files is a WORKSPACE.md. A directory of
// which the configuration says more has none, and may have other files.
func (r *Registration) HasManifest() bool { return len(r.Files) > 0 && r.Files[0].Path == r.Path }

// Version is that of the manifest that was accepted; "": there is none.
func (r *Registration) Version() string {
	if !r.HasManifest() {
		return ""
	}
	ws, _ := mountspec.ParseWorkspace(mountspec.Source{Name: r.Path, Data: []byte(r.Files[0].Text)}, mountspec.Options{})
	if ws == nil {
		return ""
	}
	return ws.Version
}

// Differs says which governing file is not the accepted one, or "".
func (r *Registration) Differs(files []Accepted) string {
	accepted := map[string]string{}
	for _, a := range r.Files {
		accepted[a.Path] = a.SHA256
	}
	for _, f := range files {
		if accepted[f.Path] != f.SHA256 {
			return f.Path
		}
		delete(accepted, f.Path)
	}
	for p := range accepted {
		return p // it was accepted, and is not consulted any more
	}
	return ""
}

// Texts are the files of a workspace that lies elsewhere, by their paths in it.
func (r *Registration) Texts() origin.Recorded {
	out := origin.Recorded{}
	for _, f := range r.Files {
		if name, err := filepath.Rel(filepath.Dir(r.Path), f.Path); err == nil && filepath.IsLocal(name) { // else it is listed by the configuration
			out[name] = f.Text
		}
	}
	return out
}
