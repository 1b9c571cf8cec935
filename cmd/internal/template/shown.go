package template

import (
	"fmt"
	"io"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/mountspec/host/linediff"
)

// Shown is a Plan as it is shown, and its result.
type Shown struct {
	Schema     string           `json:"schema"` // wsmount.publish/v1
	Address    string           `json:"address"`
	Version    string           `json:"version"`
	Visibility string           `json:"visibility"`
	Template   bool             `json:"template"` // others may begin from it
	Entries    []bundle.Entry   `json:"entries"`
	Bytes      int64            `json:"bytes"`
	LeftOut    []bundle.LeftOut `json:"leftOut,omitempty"`
	Notes      []string         `json:"notes,omitempty"`
	Bundle     string           `json:"bundle,omitempty"` // its path; empty: nothing was written
	SHA256     string           `json:"sha256,omitempty"`
}

// Shown presents the plan for a person's decision.
func (p *Plan) Shown() Shown {
	w, c := p.Workspace.Workspace, p.Content
	return Shown{Schema: "wsmount.publish/v1", Address: c.ID, Version: c.Version, Visibility: w.Publish.Visibility, Template: w.Publish.Template,
		Entries: c.Entries, Bytes: c.Bytes(), LeftOut: c.Left, Notes: p.Notes}
}

// Print writes every path that will go out, and every one that stays.
func (s Shown) Print(w io.Writer) {
	files := 0
	for _, e := range s.Entries {
		end := ""
		switch e.Type {
		case bundle.Dir:
			end = "/"
		case bundle.Link:
			end = " -> " + linediff.Visible(e.Target)
		default:
			files++
		}
		fmt.Fprintf(w, "  %s%s\n", linediff.Visible(e.Path), end)
	}
	for _, l := range s.LeftOut {
		fmt.Fprintf(w, "stays: %s: %s\n", linediff.Visible(l.Path), l.Reason)
	}
	fmt.Fprintf(w, "%s %s, %s: %d %s, %s\n", s.Address, s.Version, s.Visibility, files, map[bool]string{true: "file", false: "files"}[files == 1], bytesize.Text(s.Bytes))
}
