// Package registered presents the entries of this host's registry, to programs and
// to people.
//
//	registered.PrintFiles(os.Stdout, registered.Fetched(entry))
package registered

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/linediff"
)

// An Entry is one workspace of `wsmount registry ... --json`.
type Entry struct {
	Schema   string    `json:"schema,omitempty"` // wsmount.registration/v1
	Address  string    `json:"address"`
	Damaged  bool      `json:"damaged,omitempty"` // it cannot be read; address is the text in its place
	Path     string    `json:"path"`
	From     string    `json:"from,omitempty"` // the place that it was fetched from
	OwnerID  string    `json:"ownerId,omitempty"`
	Location string    `json:"location,omitempty"`
	Source   string    `json:"source"`
	Accepted time.Time `json:"accepted,omitzero"`
	Notes    []string  `json:"notes,omitempty"` // of `registry add`
	Files    []File    `json:"files,omitempty"` // fetched by `registry add`
}

// A File is a manifest that was fetched.
type File struct {
	Path   string `json:"path"` // at the place
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// Of is an entry without its files.
func Of(e host.Entry) Entry {
	if name, err := strconv.Unquote(e.Damaged); err == nil {
		return Entry{Address: name, Damaged: true, Source: e.Source}
	}
	out := Entry{Address: e.Address.String(), Path: e.Path, OwnerID: e.OwnerID, Source: e.Source, Accepted: e.AcceptedAt, Notes: e.Notes}
	if e.Location.Provider != "" {
		out.Location = e.Location.String()
	}
	if e.From != nil {
		out.From = e.From.Place.String()
	}
	return out
}

// Fetched is an entry with the files of the place that it was fetched from.
func Fetched(e host.Entry) Entry {
	out := Of(e)
	if e.From == nil {
		return out
	}
	for _, f := range e.Files {
		name := f.Path // of a file that the configuration lists, which is not fetched
		if rel, err := filepath.Rel(filepath.Dir(e.Path), f.Path); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
		out.Files = append(out.Files, File{name, f.SHA256, f.Text})
	}
	return out
}

// PrintFiles shows a person the files that were fetched.
func PrintFiles(w io.Writer, e Entry) {
	for _, f := range e.Files {
		printFile(w, f.Path, linediff.Of("", f.Text))
	}
}

// PrintChange shows a person a change.
func PrintChange(w io.Writer, change host.Change) {
	for _, f := range change.Facts {
		fmt.Fprintf(w, "%s\n", wrap.OneLine(f))
	}
	for _, f := range change.Files {
		printFile(w, f.Path, f.Lines)
	}
}

// printFile prints lines of package linediff, which hide nothing.
func printFile(w io.Writer, name string, lines []string) {
	fmt.Fprintf(w, "%s\n", wrap.OneLine(name))
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", l)
	}
}

// Change is the output of `wsmount registry accept --json`.
type Change struct {
	Schema   string          `json:"schema"` // wsmount.registry-change/v1
	Address  string          `json:"address"`
	Facts    []string        `json:"facts"`
	Files    []host.FileDiff `json:"files"`
	Accepted bool            `json:"accepted"`
	Notes    []string        `json:"notes,omitempty"`
}

// OfChange is a change that was recorded, or not. Its Facts and Files are never nil.
func OfChange(c host.Change, recorded bool, notes []string) Change {
	return Change{"wsmount.registry-change/v1", c.Address.String(), append([]string{}, c.Facts...), append([]host.FileDiff{}, c.Files...), recorded, notes}
}

// GoOn are the notes about the mounts of a workspace, which go on with the state that was accepted
// before a change.
func GoOn(c host.Change, at []string) (notes []string) {
	for _, place := range at {
		notes = append(notes, fmt.Sprintf("%s is mounted at %s, and goes on with what was accepted before: `wsmount umount` it, and mount it again", c.Address, place))
	}
	return notes
}
