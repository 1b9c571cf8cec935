package store

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wsmount/wsmount/providers/seam"
)

// place is the common part of all answers.
type place struct {
	Schema  string `json:"schema"`
	Locator string `json:"locator"`
}

func at(l seam.Locator) place { return place{Schema, l.Key()} }

// Print prints nothing: success needs no output.
func (place) Print(io.Writer) error { return nil }

type content struct {
	place
	Content string    `json:"content"`
	ETag    seam.ETag `json:"etag"`
}

// Print prints the content alone.
func (c content) Print(w io.Writer) error {
	_, err := io.WriteString(w, c.Content)
	return err
}

type written struct {
	place
	ETag seam.ETag `json:"etag"`
}

type listing struct {
	place
	Children []string `json:"children"`
	Unnamed  []string `json:"unnamed,omitempty"` // names in the directory that no locator has
}

// Notes names the files that are not listed.
func (l listing) Notes() (notes []string) {
	for _, name := range l.Unnamed {
		notes = append(notes, fmt.Sprintf("%q in %q is not listed: no locator has that name, so rename it there", name, l.Locator))
	}
	return notes
}

// Print prints a child on each line.
func (l listing) Print(w io.Writer) error {
	var lines strings.Builder
	for _, child := range l.Children {
		fmt.Fprintln(&lines, onLine(child))
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

// onLine is a name, quoted if it would not stay on its line.
func onLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

type presence struct {
	place
	Exists bool `json:"exists"`
}

type description struct {
	place
	IsDir bool      `json:"isDir"`
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime,omitzero"`
}

// Print prints a line of its kind, its size, its time and its locator.
func (d description) Print(w io.Writer) error {
	kind, when := "file", "-"
	if d.IsDir {
		kind = "directory"
	}
	if !d.MTime.IsZero() {
		when = d.MTime.UTC().Format(time.RFC3339Nano)
	}
	_, err := fmt.Fprintf(w, "%s %d %s %s\n", kind, d.Size, when, onLine(d.Locator))
	return err
}
