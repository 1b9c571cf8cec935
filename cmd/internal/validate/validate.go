// Package validate finds all errors in a manifest, a host configuration or its
// facts, each of which it knows by its name. It reads that one file: references of the file, and
// grants of the host, are for resolve and doctor.
//
//	name, findings, err := validate.File("~/notes", validate.Options{})
package validate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/facts"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// Options of File. The zero value works.
type Options struct {
	Strict bool   // warnings are errors
	Home   string // the directory of ~ in a host configuration
}

// File reads a file, or the WORKSPACE.md of a directory, and returns its name.
func File(arg string, o Options) (string, mountspec.Findings, error) {
	if strings.HasPrefix(arg, "@") {
		return "", nil, exit.New(exit.Usage, "%s is an address; validate takes files", wrap.OneLine(arg)).
			Hint("`wsmount resolve %s` checks what the address leads to", wrap.OneLine(arg))
	}
	if fi, err := os.Stat(arg); err == nil && fi.IsDir() {
		arg = filepath.Join(arg, "WORKSPACE.md")
	}
	f, err := os.OpenFile(arg, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not make us wait
	if err != nil {
		return "", nil, exit.New(exit.Unresolvable, "%s: %w", wrap.OneLine(arg), errors.Unwrap(err)).Hint("check the name")
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", nil, exit.New(exit.Unresolvable, "%s is not a regular file", wrap.OneLine(arg)).Hint("a manifest is a file")
	}
	src, err := mountspec.ReadSource(arg, f)
	if err != nil {
		return "", nil, exit.New(exit.Unresolvable, "%w", err)
	}
	if strings.HasSuffix(arg, "facts.yaml") {
		return arg, facts.Check(arg, src.Data), nil
	}
	if isConfig(arg) {
		found, err := config(src, o)
		return arg, found, err
	}
	found, err := manifest(src, mountspec.Options{Strict: o.Strict, Registered: knownProvider})
	if err != nil {
		return arg, nil, err
	}
	here, err := manifest(src, mountspec.Options{Strict: o.Strict, Registered: daemon.Mountable})
	return arg, notBuiltIn(found, here), err
}

// isConfig reports whether a file is a host configuration: manifests are Markdown.
func isConfig(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

func config(src mountspec.Source, o Options) (mountspec.Findings, error) {
	if len(src.Data) > mountspec.MaxFrontmatter {
		return nil, exit.New(exit.Manifest, "%s has more than %d bytes", wrap.OneLine(src.Name), mountspec.MaxFrontmatter).
			Hint("leave most workspaces to `wsmount registry add`, or to search_path")
	}
	abs, err := filepath.Abs(src.Name)
	if err != nil {
		return nil, exit.New(exit.Failed, "%w", err)
	}
	_, found := host.ParseConfig(src.Data, host.ParseOptions{Name: abs, Home: o.Home})
	for i := range found {
		found[i].File = src.Name
	}
	return found, nil
}

// knownProvider reports whether a provider is AIP-35's, or one that this wsmount
// has beside them.
func knownProvider(name string) bool {
	return slices.Contains(mountspec.Providers(), name) || daemon.Mountable(name)
}

// notBuiltIn adds the finding that is this wsmount's alone: a provider of AIP-35 that
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

// manifest chooses the kind of manifest by the end of the file's name, such
// as team.STORAGE.md.
func manifest(src mountspec.Source, o mountspec.Options) (found mountspec.Findings, err error) {
	switch mountspec.KindOf(src.Name) {
	case "workspace":
		var w *mountspec.Workspace
		w, found = mountspec.ParseWorkspace(src, o)
		found = append(append(found, unheeded(w)...), unauthored(w, o.Strict)...)
	case "storage":
		_, found = mountspec.ParseStorage(src, o)
	case "secrets":
		_, found = mountspec.ParseSecrets(src, o)
	case "sandbox":
		_, found = mountspec.ParseSandbox(src, o)
	case "code":
		_, found = mountspec.ParseCode(src, o)
	case "policy":
		_, found = mountspec.ParsePolicy(src, o)
	case "identity":
		_, found = mountspec.ParseIdentity(src, o)
	default:
		return nil, exit.New(exit.Usage, "the name of %s does not say what it is", src.Name).
			Hint("it ends in WORKSPACE.md, STORAGE.md, SECRETS.md, SANDBOX.md, CODE.md, POLICY.md or IDENTITY.md; a host configuration in .yaml, its facts in facts.yaml")
	}
	return found, nil
}

// unheeded finds a limit of an inline policy for which no act would ever be
// counted in the manifest's inline storage: a mount refuses it.
func unheeded(w *mountspec.Workspace) mountspec.Findings {
	if w == nil || w.Storage.Inline == nil || w.Storage.Inline.Sync.Mode == mountspec.ModePullPush {
		return nil
	}
	var layers []policy.Layer
	for _, b := range slices.Concat(w.Policy, w.Storage.Inline.Policy) {
		if b.Inline != nil {
			layers = append(layers, policy.Layer{Policy: b.Inline, Source: b.Pos.File})
		}
	}
	in, limit, found := policy.Unheeded(layers)
	if !found {
		return nil
	}
	at := in.Policy.Pos
	return mountspec.Findings{{Severity: mountspec.Error, File: at.File, Line: at.Line, Column: at.Column, Path: "policy.limits", Rule: "limit-without-commits",
		Message: fmt.Sprintf("the limit %q counts %s, of which %s has none in this mode: each write is its own", limit.Kind, strings.Join(limit.AppliesTo, " and "), w.Storage.Inline.Provider),
		Hint:    "take it out of the policy, or keep the files in a repository"}}
}

// unauthored finds a repository in a manifest whose commits would have no author: a mount
// refuses it, unless the host has it read-only.
func unauthored(w *mountspec.Workspace, strict bool) mountspec.Findings {
	if w == nil || w.Storage.Inline == nil || w.Defaults.ReadOnly || w.Storage.Inline.ReadOnly || len(w.Identity)+len(w.Storage.Inline.Identity) > 0 {
		return nil
	}
	config, ok := w.Storage.Inline.Config.(mountspec.GitHubConfig)
	if !ok || config.DefaultCommitEmail != "" {
		return nil
	}
	at, severity := w.Storage.Inline.Pos, mountspec.Warning
	if strict {
		severity = mountspec.Error
	}
	return mountspec.Findings{{Severity: severity, File: at.File, Line: at.Line, Column: at.Column, Path: "identity", Rule: "no-author",
		Message: "commits have no author, so that a mount which may write is refused",
		Hint:    "add identity: [ { ref: operator://current } ], or a name and an email, or default_commit_email"}}
}
