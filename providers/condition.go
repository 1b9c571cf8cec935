package providers

import "fmt"

// ConditionKind is the kind of a Condition.
type ConditionKind uint8

// The kinds of conditions. The zero kind is no condition at all, and every
// verb refuses it: a forgotten condition must not overwrite anything.
const (
	ConditionMissing ConditionKind = iota
	ConditionAbsent
	ConditionVersion
	ConditionDir
	ConditionNone
)

// Condition must hold at the moment of a change; otherwise the change fails. Make it with
// IfAbsent, IfVersion, IfDir or Unconditional.
type Condition struct {
	Kind    ConditionKind
	Version Version // for ConditionVersion
}

// IfAbsent requires that there is no entry. Otherwise the change fails with ErrExist.
func IfAbsent() Condition { return Condition{Kind: ConditionAbsent} }

// IfVersion requires a file or symbolic link in version v. Otherwise the change fails: with
// ErrConflict for another version, a directory, or (for a Write) no entry; with ErrNotExist for
// other verbs when there is no entry.
func IfVersion(v Version) Condition { return Condition{Kind: ConditionVersion, Version: v} }

// IfDir requires a directory. Otherwise the change fails with ErrNotDir, or ErrNotExist. It is
// the only condition on which a directory is deleted, so that a file which took its place is
// safe.
func IfDir() Condition { return Condition{Kind: ConditionDir} }

// Unconditional requires nothing. Overwritten content is lost.
func Unconditional() Condition { return Condition{Kind: ConditionNone} }

// Allows is for providers that check before they act: nil if c lets a verb go on, given the
// current entry (nil: none), and else the error kind that the contract demands. verb is one of
// the Method constants.
//
// It also has the rules that are no condition: Write and Copy never replace a directory
// (ErrIsDir), and only IfDir deletes one.
func (c Condition) Allows(verb Method, current *Info) error {
	creates := verb == MethodWrite || verb == MethodCopy || verb == MethodMove
	isDir := current != nil && current.Kind == KindDir
	switch c.Kind {
	case ConditionAbsent:
		return c.allowsAbsent(creates, current)
	case ConditionVersion:
		return c.allowsVersion(creates, current)
	case ConditionDir:
		return c.allowsDir(creates, current)
	case ConditionNone:
		if isDir && verb != MethodSetAttr {
			return ErrIsDir
		}
		return nil
	}
	return fmt.Errorf("no condition given: %w", ErrInvalid)
}

func (c Condition) allowsAbsent(creates bool, current *Info) error {
	switch {
	case !creates:
		return fmt.Errorf("only what creates can ask for absence: %w", ErrInvalid)
	case current != nil:
		return ErrExist
	}
	return nil
}

func (c Condition) allowsVersion(creates bool, current *Info) error {
	switch {
	case c.Version.IsZero():
		return fmt.Errorf("the version asked for is empty: %w", ErrInvalid)
	case current == nil && !creates:
		return ErrNotExist
	case current == nil || !c.Version.Matches(current.Version):
		return ErrConflict
	}
	return nil
}

func (c Condition) allowsDir(creates bool, current *Info) error {
	switch {
	case creates:
		return fmt.Errorf("a directory is never replaced: %w", ErrInvalid)
	case current == nil:
		return ErrNotExist
	case current.Kind != KindDir:
		return ErrNotDir
	}
	return nil
}
