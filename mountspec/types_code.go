package mountspec

import (
	"cmp"
	"strings"
)

// Code is a CODE.md or the same block inline (AIP-26): the bare form
// {sources}, the rich one (kind: code-workspace) or the lean one (schema:
// code/v2). wsmount reads it to know that a workspace is a codespace, and runs
// nothing of it.
type Code struct {
	Kind        string // "code-workspace" in the rich form, else empty
	Schema      string // "code/v2" in the lean form, else empty
	ID          string // lean: a registry slug of two or more segments
	Version     string
	Name        string
	Description string
	Sources     []CodeSource
	Run         *CodeRun
	Extra       map[string]any // runner, driver, network, ...: carried, not used
	Pos         Pos
}

// Title names the code: by its name, its id, or the one after the other; "": it has neither.
func (c *Code) Title() string {
	if c.Name == "" || c.ID == "" {
		return c.Name + c.ID
	}
	return c.Name + " (" + c.ID + ")"
}

// Entry is the command of a runner, as a person would type it; "" when the block does not
// say. Nothing of wsmount runs it.
func (c *Code) Entry() string {
	if c.Run == nil {
		return ""
	}
	return cmp.Or(c.Run.Line, c.Run.File, strings.Join(c.Run.Exec, " "), c.Run.Shell)
}

// CodeSource is one source of a bundle. Kind says which of the other fields count.
type CodeSource struct {
	Kind    string // inline, local, github or ref
	Path    string
	Content string // inline
	As      string // local, github
	Glob    string // local
	Repo    string // github, owner/name
	GitRef  string // github: SHA, tag or branch
	Pos     Pos
}

// CodeRun is the command of a runner: File, Exec or Shell. Line is the
// string form: AIP-26 lets the runner decide which of them it is.
type CodeRun struct {
	Line  string
	File  string
	Exec  []string
	Shell string
}
