package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/validate"
	"github.com/wsmount/wsmount/mountspec"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check manifests and configurations: say all that is wrong",
		ArgsUsage: "FILE...",
		Description: "Reads WORKSPACE.md, STORAGE.md, SECRETS.md, SANDBOX.md, CODE.md, POLICY.md and IDENTITY.md files, " +
			"the WORKSPACE.md of a directory, a host configuration, whose name ends in .yaml, or its facts.yaml. Reads nothing else: references " +
			"are followed by resolve and doctor. `wsmount help manifest` and `wsmount help config` tell of each key.\n\n" +
			"  wsmount validate ~/.config/wsmount/config.yaml",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "warnings are errors"},
		},
		Action: validateAction,
	}
}

// validation is the output of `wsmount validate --json`.
type validation struct {
	Schema   string        `json:"schema"` // wsmount.validate/v1
	Valid    bool          `json:"valid"`
	Files    []string      `json:"files"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Path     string `json:"path,omitempty"`
	Rule     string `json:"rule"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func validateAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1000)
	if err != nil {
		return err
	}
	out := validation{Schema: "wsmount.validate/v1", Valid: true, Findings: []findingJSON{}}
	for _, arg := range args {
		name, found, err := validate.File(arg, validate.Options{Strict: c.Bool("strict"), Home: os.Getenv("HOME")})
		if err != nil {
			return err
		}
		out.Files = append(out.Files, name)
		out.Valid = out.Valid && found.Err() == nil
		for _, f := range found {
			out.Findings = append(out.Findings, findingJSON{f.Severity.String(), f.File, f.Line, f.Column, f.Path, f.Rule, f.Code, f.Message, f.Hint})
		}
	}
	if err := show(c, out, printFindings); err != nil {
		return err
	}
	if !out.Valid {
		return silent(exit.Manifest)
	}
	return nil
}

var severities = map[string]screen.Colour{mountspec.Error.String(): screen.Bad, mountspec.Warning.String(): screen.Warn}

func printFindings(w io.Writer, v validation) {
	for _, f := range v.Findings {
		where := mountspec.Pos{File: f.File, Line: f.Line, Column: f.Column}
		what := f.Message
		if f.Path != "" {
			what = f.Path + ": " + what
		}
		if f.Code != "" {
			what = f.Code + ": " + what
		}
		s := screen.Of(w)
		fmt.Fprintf(w, "%s: %s\n", oneLine(where.String()), s.Paint(severities[f.Severity], f.Severity))
		s.Wrapped("    ", 4, oneLine(what)+" ["+f.Rule+"]")
		if f.Hint != "" {
			s.Wrapped("    ", 4, "hint: "+oneLine(f.Hint))
		}
	}
	if v.Valid {
		fmt.Fprintf(w, "valid: %s\n", count(len(v.Files), "file"))
	}
}
