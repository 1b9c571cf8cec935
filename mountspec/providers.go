package mountspec

import (
	"slices"
	"time"
)

// Rules are the modes and policies of one provider in a sync block. The first of each list
// is its default; no conflict policy at all means that nothing can conflict.
type Rules struct {
	Modes     []Mode
	Conflicts []ConflictPolicy
}

var gitConflicts = []ConflictPolicy{ConflictRebase, ConflictMerge, ConflictAbort,
	ConflictManual, ConflictLastWriterWins, ConflictSplit}

var bucketConflicts = []ConflictPolicy{ConflictSplit, ConflictAbort,
	ConflictLastWriterWins, ConflictManual}

// builtin holds one row per provider of AIP-35's enumerated set, and one for the vault:
// its rules, and how its config is read. The default mode is the provider's own,
// since AIP-35's general default (canonical) contradicts its rule for github.
var builtin = map[string]struct {
	Rules
	decode func(*object) Config
}{
	ProviderCloudBucket: {Rules{[]Mode{ModeCanonical}, bucketConflicts}, decodeCloudBucket},
	ProviderSelfBucket:  {Rules{[]Mode{ModeCanonical}, bucketConflicts}, decodeSelfBucket},
	ProviderGitHub:      {Rules{[]Mode{ModePullPush}, gitConflicts}, decodeGitHub},
	ProviderLocalFS:     {Rules{[]Mode{ModeWatch, ModeCanonical}, nil}, decodeLocalFS},
	ProviderDevLocal:    {Rules{[]Mode{ModeCanonical}, nil}, decodeDevLocal},
	ProviderMastraS3:    {Rules{[]Mode{ModeCanonical}, bucketConflicts}, decodeMastraS3},
	ProviderMastraAzure: {Rules{[]Mode{ModeCanonical}, bucketConflicts}, decodeMastraAzure},
	ProviderVault:       {Rules{[]Mode{ModeCanonical}, bucketConflicts}, decodeVault},
}

// Providers lists the enumerated set of AIP-35, in its order.
func Providers() []string {
	return []string{ProviderCloudBucket, ProviderSelfBucket, ProviderGitHub,
		ProviderLocalFS, ProviderDevLocal, ProviderMastraS3, ProviderMastraAzure}
}

// RulesFor returns the rules of a provider. One that only the host knows may
// do everything; its own Capabilities decide at mount time.
func RulesFor(provider string) Rules {
	if row, ok := builtin[provider]; ok {
		return Rules{slices.Clone(row.Modes), slices.Clone(row.Conflicts)}
	}
	return Rules{
		Modes:     []Mode{ModeCanonical, ModePullPush, ModeWatch},
		Conflicts: append(slices.Clone(bucketConflicts), ConflictRebase, ConflictMerge),
	}
}

// Direct reports whether the directory itself is the store: there is one copy,
// so nothing conflicts and nothing is mirrored.
func Direct(provider string) bool {
	return provider == ProviderLocalFS || provider == ProviderDevLocal
}

// DefaultTemplate is the commit message when a manifest names none.
const DefaultTemplate = "{{summary}}"

// DefaultSync returns the defaults of a provider in a mode; an empty mode
// means the provider's own. present says whether the manifest has a sync block
// that says anything: without one a git workspace keeps its commits local and
// pushes only on request. Triggers that a mode ignores stay empty; in canonical
// mode each write is its own commit.
func DefaultSync(provider string, mode Mode, present bool) Sync {
	rules := RulesFor(provider)
	if mode == "" {
		mode = rules.Modes[0]
	}
	s := Sync{Mode: mode}
	if len(rules.Conflicts) > 0 {
		s.Conflict = rules.Conflicts[0]
	}
	switch mode {
	case ModeCanonical:
		s.Commit = Commit{On: AliasEachWrite, Template: DefaultTemplate}
	case ModePullPush:
		s.Pull = Pull{On: EventWorkspaceOpen, TTL: 60 * time.Second}
		s.Commit = Commit{On: AliasPerTurn, Batch: 5 * time.Second, Template: DefaultTemplate}
		s.Push = Push{On: AliasPerCommit, Branch: BranchMain, PR: PRNone}
		if !present {
			s.Push.On = EventManual
		}
	}
	return s
}

// A Setting is one effective value of a storage, for showing.
type Setting struct {
	Key      string // sync.pull.on
	Value    string // empty: the mode has no use for it
	Explicit bool   // the manifest says so; else it is the default
}

// Effective lists the sync settings of a validated storage, in the order of
// AIP-35, with where each comes from.
func (s *Storage) Effective() []Setting {
	var out []Setting
	for _, f := range syncFields {
		out = append(out, Setting{"sync." + f.key, f.show(&s.Sync), s.Sync.Explicit(f.key)})
	}
	return append(out, Setting{"read_only", showBool(s.ReadOnly), s.ReadOnly})
}

func showBool(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
