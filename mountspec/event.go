package mountspec

import (
	"slices"
	"strconv"
	"strings"
)

// A Trigger is the name of an AIP-37 lifecycle event, or an alias of one, as a
// manifest writes it. Compare resolved triggers only.
type Trigger string

// Events of AIP-37 and, for storage, of its ADAPTER.
const (
	EventWorkspaceOpen     Trigger = "workspace-open"
	EventWorkspaceClose    Trigger = "workspace-close"
	EventConversationStart Trigger = "conversation-start"
	EventConversationEnd   Trigger = "conversation-end"
	EventTurnStart         Trigger = "turn-start"
	EventTurnEnd           Trigger = "turn-end"
	EventTurnError         Trigger = "turn-error"
	EventToolCall          Trigger = "tool-call"
	EventToolResult        Trigger = "tool-result"
	EventToolError         Trigger = "tool-error"
	EventWrite             Trigger = "write"
	EventDelete            Trigger = "delete"
	EventManual            Trigger = "manual" // explicit only, never automatic

	EventPullStarted     Trigger = "storage-pull-started"
	EventPullCompleted   Trigger = "storage-pull-completed"
	EventPullFailed      Trigger = "storage-pull-failed"
	EventCommitCompleted Trigger = "storage-commit-completed"
	EventPushCompleted   Trigger = "storage-push-completed"
)

// Aliases that AIP-37 resolves; per-commit is its ADAPTER's.
const (
	AliasEachWrite       Trigger = "each-write"
	AliasPerTurn         Trigger = "per-turn"
	AliasPerConversation Trigger = "per-conversation"
	AliasPerCommit       Trigger = "per-commit"
)

// Bases of the templated events, idle-<seconds> and conversation-idle-<seconds>.
const (
	BaseIdle             = "idle"
	BaseConversationIdle = "conversation-idle"
)

// StandardEvents lists the events that do not depend on a number, in AIP-37's order.
func StandardEvents() []Trigger {
	return []Trigger{
		EventWorkspaceOpen, EventWorkspaceClose, EventConversationStart, EventConversationEnd,
		EventTurnStart, EventTurnEnd, EventTurnError, EventToolCall, EventToolResult, EventToolError,
		EventWrite, EventDelete, EventManual,
		EventPullStarted, EventPullCompleted, EventPullFailed, EventCommitCompleted, EventPushCompleted,
	}
}

// Aliases lists the names that Resolve replaces.
func Aliases() []Trigger {
	return []Trigger{AliasEachWrite, AliasPerTurn, AliasPerConversation, AliasPerCommit}
}

// Resolve replaces an alias by its event; every other name stays as it is (AIP-37, "Aliases").
func (t Trigger) Resolve() Trigger {
	switch t {
	case AliasEachWrite:
		return EventWrite
	case AliasPerTurn:
		return EventTurnEnd
	case AliasPerConversation:
		return EventConversationEnd
	case AliasPerCommit:
		return EventCommitCompleted
	}
	return t
}

// Templated splits an idle event into its base and its threshold in seconds:
// "idle-300" is (idle, 300, true). Zero, signs, leading zeros and numbers that do
// not fit 31 bits are not thresholds.
func (t Trigger) Templated() (base string, seconds int, ok bool) {
	i := strings.LastIndexByte(string(t), '-')
	if i < 0 {
		return "", 0, false
	}
	base, digits := string(t[:i]), string(t[i+1:])
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != digits {
		return "", 0, false
	}
	if base != BaseIdle && base != BaseConversationIdle {
		return "", 0, false
	}
	return base, int(n), true
}

// IsNamespaced reports whether the name belongs to a host: <host>:<event>.
// Such a name is not portable.
func (t Trigger) IsNamespaced() bool { return strings.Contains(string(t), ":") }

// Known reports whether the name, resolved, is one that AIP-37 defines. Any
// other is tolerated and never fires by itself.
func (t Trigger) Known() bool {
	r := t.Resolve()
	_, _, idle := r.Templated()
	return idle || slices.Contains(StandardEvents(), r)
}

// ParseTemplated splits a templated event name; see Trigger.Templated.
func ParseTemplated(name string) (base string, seconds int, ok bool) {
	return Trigger(name).Templated()
}

// IsNamespaced reports whether an event name belongs to a host; see Trigger.IsNamespaced.
func IsNamespaced(name string) bool { return Trigger(name).IsNamespaced() }
