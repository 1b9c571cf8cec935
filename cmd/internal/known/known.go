// Package known describes the workspaces that a host can find.
//
//	w := known.Of(found)
//	fmt.Println(w.Address, w.Marks(), w.Problem)
package known

import (
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/host"
)

// A Workspace is one that this host can find, as it is described to programs.
type Workspace struct {
	Address     string        `json:"address,omitempty"`
	Name        string        `json:"name,omitempty"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version,omitempty"`
	Path        string        `json:"path"`
	Source      string        `json:"source,omitempty"` // how it was found: a configuration, a registry, a directory of the search path
	Trust       string        `json:"trust"`            // registered or unverified
	OwnerType   string        `json:"ownerType,omitempty"`
	Provider    string        `json:"provider,omitempty"`
	Location    string        `json:"location,omitempty"`
	Tags        []string      `json:"tags,omitempty"`
	Code        *control.Code `json:"code,omitempty"`       // of a code project
	Template    bool          `json:"template,omitempty"`   // others may begin from it
	Visibility  string        `json:"visibility,omitempty"` // private, unlisted or public
	Mountpoints []string      `json:"mountpoints,omitempty"`
	Problem     string        `json:"problem,omitempty"` // why it cannot be mounted as it stands
	Hint        string        `json:"hint,omitempty"`
}

// Of describes a workspace that the host found, and whether it can be mounted as it stands.
func Of(k host.Known) Workspace {
	out := Workspace{Path: k.Path, Source: k.Source, Trust: k.Trust.String(), Provider: k.Provider}
	if k.Address.Owner != "" {
		out.Address = k.Address.String()
	}
	if k.Location.Provider != "" {
		out.Location = k.Location.String()
	}
	if w := k.Workspace; w != nil {
		out.Name, out.Description, out.Version, out.OwnerType, out.Tags = w.Name, w.Description, w.Version, w.Owner.Type, w.Tags
		out.Code, out.Template, out.Visibility = control.CodeOf(k.Code), w.Publish.Template, w.Publish.Visibility
	}
	if k.Err == nil && k.Resolved != nil {
		k.Err = daemon.Refuses(k.Resolved)
	}
	if k.Err != nil {
		e := exit.From(daemon.Refusal(k.Err))
		out.Problem, out.Hint = e.Error(), e.Advice
	}
	return out
}

// Marks are the few words of a line that name its special properties.
func (w Workspace) Marks() string {
	var out []string
	for _, m := range []struct {
		is   bool
		word string
	}{{w.Trust != host.Registered.String(), w.Trust}, {w.Code != nil, "code"}, {w.Template, "template"},
		{w.Visibility != "" && w.Visibility != "private", w.Visibility}} {
		if m.is {
			out = append(out, m.word)
		}
	}
	return strings.Join(out, ", ")
}
