package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Schema of every answer.
const Schema = "wsmount.store/v1"

// Verb is a verb as a command of its own. It takes a WORKSPACE before its locator.
type Verb struct {
	Name, Usage, Description string

	Least   int  // 1: a locator is needed
	Changes bool // it makes something
	IfMatch bool // it can ask what is there

	do func(ctx context.Context, b seam.Backend, l seam.Locator, in Input) (Answer, exit.Code, error)
}

// Input is what a verb gets beside its locator.
type Input struct {
	Content io.Reader // of write
	IfMatch string    // the ETag that is to be there, as seam.ParseETag reads it; "": whatever
}

// Answer is what a verb has found. It marshals to JSON, and prints itself for pipes.
type Answer interface{ Print(w io.Writer) }

// Verbs are all verbs but resolve, which only names.
func Verbs() []Verb {
	return []Verb{
		{Name: "read", Usage: "print a file", Least: 1, do: read,
			Description: "Prints the content as it is. It is text: what is not UTF-8 is refused. With --json there is the etag too, the SHA-256 of the content."},
		{Name: "write", Usage: "write standard input to a file", Least: 1, Changes: true, IfMatch: true, do: write,
			Description: "Replaces the file in one step once standard input has ended, and makes missing directories. With --if-match it does so only " +
				"if the file's content has that SHA-256, or with none only if nothing is there; else the exit code is 8, and nothing changed.\n\n" +
				"  echo '# Plan' | wsmount store write projects/atlas/plan.md"},
		{Name: "list", Usage: "list a directory", do: list,
			Description: "Prints the immediate children, each on a line with its whole locator, sorted. Of what is not there, and of a file, there are none. The root is `.`."},
		{Name: "exists", Usage: "tell whether something is there", Least: 1, do: exists,
			Description: "The exit code is 0 if a file or directory is there, and 4 if nothing is. Prints nothing without --json."},
		{Name: "info", Usage: "describe a file or a directory", Least: 1, do: info,
			Description: "Prints what it is, its bytes, when it changed if that is known, and its locator."},
		{Name: "mkdir", Usage: "make a directory", Least: 1, Changes: true, do: mkdir,
			Description: "Makes missing parents too. One that is there is no error."},
	}
}

// Do calls the verb. The code is how the program ends once the answer was shown.
func (v Verb) Do(ctx context.Context, b seam.Backend, key string, in Input) (Answer, exit.Code, error) {
	l, err := b.Resolve(key)
	if err != nil {
		return nil, 0, err
	}
	return v.do(ctx, b, l, in)
}

// place is what every answer tells.
type place struct {
	Schema  string `json:"schema"`
	Locator string `json:"locator"`
}

func at(l seam.Locator) place { return place{Schema, l.Key()} }

// Print prints nothing: what was asked for is done.
func (place) Print(io.Writer) {}

type content struct {
	place
	Content string    `json:"content"`
	ETag    seam.ETag `json:"etag"`
}

// Print prints the content alone.
func (c content) Print(w io.Writer) { io.WriteString(w, c.Content) }

func read(ctx context.Context, b seam.Backend, l seam.Locator, _ Input) (Answer, exit.Code, error) {
	text, err := b.Read(ctx, l)
	return content{at(l), text, seam.ETagOf(text)}, exit.Done, err
}

type written struct {
	place
	ETag seam.ETag `json:"etag"`
}

func write(ctx context.Context, b seam.Backend, l seam.Locator, in Input) (Answer, exit.Code, error) {
	text, err := io.ReadAll(in.Content)
	if err != nil {
		return nil, 0, fmt.Errorf("standard input: %w", err)
	}
	if in.IfMatch == "" {
		l, err = b.Write(ctx, l, string(text))
	} else {
		l, err = writeIf(ctx, b, l, in.IfMatch, string(text))
	}
	return written{at(l), seam.ETagOf(string(text))}, exit.Done, err
}

func writeIf(ctx context.Context, b seam.Backend, l seam.Locator, match, text string) (seam.Locator, error) {
	old, err := seam.ParseETag(match)
	if err != nil {
		return l, exit.New(exit.Usage, "--if-match: %w", err).Hint("`wsmount store read --json` tells it, and sha256sum does")
	}
	c, ok := b.(seam.Conditional)
	if !ok {
		return l, errUnguarded(l)
	}
	return c.WriteIf(ctx, l, old, text)
}

// errUnguarded is the error of a condition that could not be kept.
func errUnguarded(l seam.Locator) error {
	return refuse(providers.MethodWrite, l, providers.ErrUnsupported, "nothing keeps writers apart there")
}

type listing struct {
	place
	Children []string `json:"children"`
}

// Print prints a child on each line; one whose name would not stay on it is quoted.
func (l listing) Print(w io.Writer) {
	for _, child := range l.Children {
		if strings.ContainsFunc(child, unicode.IsControl) {
			child = strconv.Quote(child)
		}
		fmt.Fprintln(w, child)
	}
}

func list(ctx context.Context, b seam.Backend, l seam.Locator, _ Input) (Answer, exit.Code, error) {
	children, err := b.List(ctx, l)
	out := listing{at(l), []string{}}
	for _, child := range children {
		out.Children = append(out.Children, child.Key())
	}
	return out, exit.Done, err
}

type presence struct {
	place
	Exists bool `json:"exists"`
}

func exists(ctx context.Context, b seam.Backend, l seam.Locator, _ Input) (Answer, exit.Code, error) {
	there, err := b.Exists(ctx, l)
	code := exit.Done
	if !there {
		code = exit.Unresolvable
	}
	return presence{at(l), there}, code, err
}

type description struct {
	place
	IsDir bool      `json:"isDir"`
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime,omitzero"`
	ETag  seam.ETag `json:"etag,omitempty"` // of a file that is text
}

// Print prints a line of what it is, its size, its time and its locator.
func (d description) Print(w io.Writer) {
	kind, when := "file", "-"
	if d.IsDir {
		kind = "directory"
	}
	if !d.MTime.IsZero() {
		when = d.MTime.UTC().Format(time.RFC3339Nano)
	}
	fmt.Fprintf(w, "%s %d %s ", kind, d.Size, when)
	listing{Children: []string{d.Locator}}.Print(w)
}

func info(ctx context.Context, b seam.Backend, l seam.Locator, _ Input) (Answer, exit.Code, error) {
	found, err := b.Info(ctx, l)
	d := description{place: at(l), IsDir: found.IsDir, Size: found.Size, MTime: found.ModTime}
	if err != nil || found.IsDir {
		return d, exit.Done, err
	}
	text, err := b.Read(ctx, l)
	var none *seam.TextError
	if errors.As(err, &none) || errors.Is(err, providers.ErrUnsupported) {
		return d, exit.Done, nil
	}
	d.ETag = seam.ETagOf(text)
	return d, exit.Done, err
}

func mkdir(ctx context.Context, b seam.Backend, l seam.Locator, _ Input) (Answer, exit.Code, error) {
	made, err := b.Mkdir(ctx, l)
	return at(made), exit.Done, err
}
