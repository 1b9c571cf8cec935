package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check manifests, and say everything that is wrong",
		ArgsUsage: "FILE...",
		Description: "Reads WORKSPACE.md, STORAGE.md, SECRETS.md, SANDBOX.md, CODE.md and POLICY.md files, or " +
			"the WORKSPACE.md of a directory. Reads nothing else: references are followed by resolve and doctor.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "warnings are errors"},
		},
		Action: validateAction,
	}
}

// validation is what `wsmount validate --json` prints.
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
		name, found, err := validateFile(arg, c.Bool("strict"))
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

func validateFile(arg string, strict bool) (string, mountspec.Findings, error) {
	if strings.HasPrefix(arg, "@") {
		return "", nil, exit.New(exit.Usage, "%s is an address; validate takes files", oneLine(arg)).
			Hint("`wsmount resolve %s` checks what the address leads to", oneLine(arg))
	}
	if fi, err := os.Stat(arg); err == nil && fi.IsDir() {
		arg = filepath.Join(arg, "WORKSPACE.md")
	}
	f, err := os.OpenFile(arg, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not make us wait
	if err != nil {
		return "", nil, exit.New(exit.Unresolvable, "%w", errors.Unwrap(err)).Hint("check the name: %s", arg)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", nil, exit.New(exit.Unresolvable, "%s is not a regular file", oneLine(arg)).Hint("a manifest is a file")
	}
	src, err := mountspec.ReadSource(arg, f)
	if err != nil {
		return "", nil, exit.New(exit.Unresolvable, "%w", err)
	}
	found, err := parseByName(src, mountspec.Options{Strict: strict, Registered: knownProvider})
	if err != nil {
		return arg, nil, err
	}
	here, err := parseByName(src, mountspec.Options{Strict: strict, Registered: daemon.Mountable})
	return arg, notBuiltIn(found, here), err
}

// knownProvider reports whether a provider is AIP-35's, or one that this wsmount
// has beside them.
func knownProvider(name string) bool {
	return slices.Contains(mountspec.Providers(), name) || daemon.Mountable(name)
}

// notBuiltIn adds what only this wsmount finds wrong: a provider of AIP-35 that
// it does not have. The manifest is valid all the same; a mount refuses it.
func notBuiltIn(found, here mountspec.Findings) mountspec.Findings {
	if found.Has(ruleProvider) {
		return found
	}
	for _, f := range here {
		if f.Rule == ruleProvider {
			f.Severity = mountspec.Warning
			found = append(found, f)
		}
	}
	return found
}

const ruleProvider = "provider-unknown"

// parseByName chooses the kind of manifest by the end of the file's name, such
// as team.STORAGE.md.
func parseByName(src mountspec.Source, o mountspec.Options) (found mountspec.Findings, err error) {
	switch name := filepath.Base(src.Name); {
	case strings.HasSuffix(name, "WORKSPACE.md"):
		_, found = mountspec.ParseWorkspace(src, o)
	case strings.HasSuffix(name, "STORAGE.md"):
		_, found = mountspec.ParseStorage(src, o)
	case strings.HasSuffix(name, "SECRETS.md"):
		_, found = mountspec.ParseSecrets(src, o)
	case strings.HasSuffix(name, "SANDBOX.md"):
		_, found = mountspec.ParseSandbox(src, o)
	case strings.HasSuffix(name, "CODE.md"):
		_, found = mountspec.ParseCode(src, o)
	case strings.HasSuffix(name, "POLICY.md"):
		_, found = mountspec.ParsePolicy(src, o)
	case strings.HasSuffix(name, "IDENTITY.md"):
		_, found = mountspec.ParseIdentity(src, o)
	default:
		return nil, exit.New(exit.Usage, "the name of %s does not say what it is", src.Name).
			Hint("its name ends in WORKSPACE.md, STORAGE.md, SECRETS.md, SANDBOX.md, CODE.md, POLICY.md or IDENTITY.md")
	}
	return found, nil
}

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
		fmt.Fprintf(w, "%s: %s\n", oneLine(where.String()), f.Severity)
		for _, line := range wrap.Lines(oneLine(what)+" ["+f.Rule+"]", width-4) {
			fmt.Fprintf(w, "    %s\n", line)
		}
		if f.Hint != "" {
			for _, line := range wrap.Lines("hint: "+oneLine(f.Hint), width-4) {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
	if v.Valid {
		fmt.Fprintf(w, "valid: %d %s\n", len(v.Files), plural(len(v.Files), "file", "files"))
	}
}
