package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/mountspec/host"
)

func resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "show where a workspace's bytes live, and why",
		ArgsUsage: "WORKSPACE",
		Description: "Follows the address through the host configuration, the manifest and its references " +
			"to the storage, as mount does, and changes nothing. With --explain prints every step.",
		Flags:  append([]cli.Flag{&cli.BoolFlag{Name: "explain", Usage: "print every step, and what is a default"}}, resolveFlags()...),
		Action: resolveAction,
	}
}

// resolution is the output of `wsmount resolve --json`.
type resolution struct {
	Schema      string     `json:"schema"` // wsmount.resolve/v1
	Workspace   string     `json:"workspace"`
	Manifest    string     `json:"manifest,omitempty"`
	Unverified  bool       `json:"unverified"`
	Principal   string     `json:"principal"`
	Fingerprint string     `json:"fingerprint"`
	Parts       []partJSON `json:"parts"`
	Notes       []string   `json:"notes,omitempty"`
	Steps       []stepJSON `json:"steps,omitempty"`
}

type partJSON struct {
	Name        string        `json:"name"`
	At          string        `json:"at"`
	Provider    string        `json:"provider"`
	Mode        string        `json:"mode"`
	Path        string        `json:"path,omitempty"`
	Code        *control.Code `json:"code,omitempty"`
	ReadOnly    string        `json:"readOnly,omitempty"`
	Governing   []string      `json:"governing,omitempty"`
	Unavailable string        `json:"unavailable,omitempty"`
}

type stepJSON struct {
	Subject string `json:"subject"`
	Result  string `json:"result"`
	Default bool   `json:"default,omitempty"`
}

func resolveAction(c *cli.Context) error {
	if _, err := wantArgs(c, 1, 1); err != nil {
		return err
	}
	req, closeRequest, err := mountRequest(c, false)
	if err != nil {
		return err
	}
	defer closeRequest()
	tree, err := daemon.Resolve(c.Context, req)
	if err != nil {
		if c.Bool("explain") && !c.Bool("json") {
			printSteps(c.App.Writer, steps(daemon.Steps(tree, err)))
		}
		return err
	}
	return show(c, newResolution(tree, c.Bool("explain")), printResolution)
}

func newResolution(t *daemon.Tree, explain bool) resolution {
	r := resolution{Schema: "wsmount.resolve/v1", Workspace: t.Name, Manifest: t.Manifest, Unverified: t.Unverified,
		Principal: t.Principal, Fingerprint: t.Fingerprint, Notes: t.Notes}
	for _, s := range t.Sources {
		r.Parts = append(r.Parts, partJSON{s.Name, "/" + s.At, s.Provider, s.Mode, s.Path, s.Code, s.ReadOnly, s.Governing, s.Unavailable})
	}
	if explain {
		r.Steps = steps(t.Explain)
	}
	return r
}

func steps(in []host.Step) []stepJSON {
	var out []stepJSON
	for _, s := range in {
		out = append(out, stepJSON{s.Subject, s.Result, s.Default})
	}
	return out
}

func printResolution(w io.Writer, r resolution) {
	printSteps(w, r.Steps)
	if len(r.Steps) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s\n", r.Workspace)
	row := rows(w, 2)
	row("manifest", r.Manifest+note(r.Unverified, "unverified: it is not registered"))
	row("principal", r.Principal)
	for _, n := range r.Notes {
		row("note", n)
	}
	for _, p := range r.Parts {
		fmt.Fprintf(w, "  %s\n", oneLine(p.At+"  "+p.Name))
		row := rows(w, 4)
		if p.Unavailable != "" {
			row("unavailable", p.Unavailable)
			continue
		}
		row("store", p.Provider+", "+p.Mode+" "+p.Path)
		row("code", p.Code.String())
		row("read-only", p.ReadOnly)
		row("governing", strings.Join(p.Governing, ", "))
	}
}

func printSteps(w io.Writer, list []stepJSON) {
	for _, s := range list {
		text := s.Result
		if s.Default {
			text += " (default)"
		}
		screen.Of(w).Wrapped("", 2, oneLine(s.Subject+": "+text))
	}
}
