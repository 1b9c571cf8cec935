package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// A Default is one key of a policy's defaults.storage, and whether it took effect.
type Default struct {
	Key, Value string
	Source     string // of the policy
	Applied    bool   // it is stricter than the manifest's value; else that stays
}

// Storage makes a storage block as strict as the policies' defaults: names that
// they exclude are excluded too, and a sync setting counts where it lets less happen than
// the block's own. One that is no stricter, and one that has no order, stays as the block
// has it. The error names a key that would have no effect, or a value that cannot be read:
// a rule that is meant to forbid something must not be passed over. The block itself is not
// changed.
func Storage(layers []Layer, given *mountspec.Storage) (*mountspec.Storage, []Default, error) {
	out := *given
	t := tightening{storage: &out}
	for _, l := range layers {
		t.source = l.Source
		block := l.Policy.Defaults["storage"]
		for _, key := range slices.Sorted(maps.Keys(block)) {
			if err := t.key(key, block[key]); err != nil {
				return nil, nil, fmt.Errorf("defaults.storage.%s of %s %w", key, l.Source, err)
			}
		}
	}
	return &out, t.told, nil
}

type tightening struct {
	storage *mountspec.Storage
	source  string
	told    []Default
}

func (t *tightening) tell(key, value string, applied bool) {
	t.told = append(t.told, Default{key, value, t.source, applied})
}

func (t *tightening) key(key string, v any) error {
	switch key {
	case "read_only": // see ReadOnly
		return nil
	case "exclude":
		return t.exclude(v)
	case "sync":
		return t.sync("", v)
	}
	return fmt.Errorf("is not applied by this wsmount")
}

func (t *tightening) exclude(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("must be a list")
	}
	patterns := slices.Clone(t.storage.Exclude)
	for _, item := range list {
		p, ok := item.(string)
		if !ok {
			return fmt.Errorf("must be a list of patterns")
		}
		isNew := !slices.Contains(patterns, p)
		if isNew {
			patterns = append(patterns, p)
		}
		t.tell("exclude", p, isNew)
	}
	if _, err := mountspec.CompileExclude(patterns); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	t.storage.Exclude = patterns
	return nil
}

// sync goes through the settings of a sync block, or of a block in it.
func (t *tightening) sync(block string, v any) error {
	settings, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("must be a block of settings")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if block == "" && slices.Contains([]string{"pull", "commit", "push", "conflict"}, key) {
			if err := t.sync(key+".", settings[key]); err != nil {
				return err
			}
			continue
		}
		setting, ok := stricter[block+key]
		if !ok {
			return fmt.Errorf("has a setting %s that is not known", block+key)
		}
		value, applied, err := setting(t.storage, settings[key])
		if err != nil {
			return fmt.Errorf("has %s, which %w", block+key, err)
		}
		t.tell("sync."+block+key, value, applied)
	}
	return nil
}

// A setting applies a value to a sync setting if it is stricter.
type setting func(st *mountspec.Storage, v any) (value string, applied bool, err error)

// stricter has every setting of a sync block. A step by hand is stricter than an automatic
// one; so is to ask sooner for changes of others, to keep off the tracked branch, and to
// leave to a person which of two versions is lost.
var stricter = map[string]setting{
	"mode":                    unordered,
	"pull.on":                 unordered,
	"pull.ttl_seconds":        sooner,
	"commit.on":               byHand(func(s *mountspec.Sync) *mountspec.Trigger { return &s.Commit.On }),
	"commit.batch_window_ms":  unordered,
	"commit.message_template": unordered,
	"push.on":                 byHand(func(s *mountspec.Sync) *mountspec.Trigger { return &s.Push.On }),
	"push.branch_policy":      furtherOff,
	"push.pr_policy":          unordered,
	"conflict.policy":         lessLost,
}

func unordered(_ *mountspec.Storage, v any) (string, bool, error) {
	return fmt.Sprint(v), false, nil
}

func byHand(at func(*mountspec.Sync) *mountspec.Trigger) setting {
	return func(st *mountspec.Storage, v any) (string, bool, error) {
		text, ok := v.(string)
		if !ok {
			return "", false, fmt.Errorf("is not the name of an event")
		}
		on := at(&st.Sync)
		if mountspec.Trigger(text).Resolve() != mountspec.EventManual || *on == "" || on.Resolve() == mountspec.EventManual {
			return text, false, nil
		}
		*on = mountspec.EventManual
		return text, true, nil
	}
}

func sooner(st *mountspec.Storage, v any) (string, bool, error) {
	n, ok := params{"": v}.count("")
	if !ok {
		return "", false, fmt.Errorf("is not a number of seconds")
	}
	ttl := time.Duration(min(n, 1<<32)) * time.Second // which is 136 years
	if st.Sync.Mode != mountspec.ModePullPush || ttl >= st.Sync.Pull.TTL {
		return strconv.FormatInt(n, 10), false, nil
	}
	st.Sync.Pull.TTL = ttl
	return strconv.FormatInt(n, 10), true, nil
}

// branches are the branch policies from the least strict on.
var branches = []mountspec.BranchPolicy{mountspec.BranchMain, mountspec.BranchPerConversation, mountspec.BranchPerTurn}

func furtherOff(st *mountspec.Storage, v any) (string, bool, error) {
	text, _ := v.(string)
	want := slices.Index(branches, mountspec.BranchPolicy(text))
	if want < 0 {
		return "", false, fmt.Errorf("is not a branch policy")
	}
	if st.Sync.Push.Branch == "" || want <= slices.Index(branches, st.Sync.Push.Branch) {
		return text, false, nil
	}
	st.Sync.Push.Branch = branches[want]
	return text, true, nil
}

// losses ranks the conflict policies by their loss without a person, the least strict
// first: a version, nothing, and nothing without a person who decides.
var losses = map[mountspec.ConflictPolicy]int{
	mountspec.ConflictLastWriterWins: 0,
	mountspec.ConflictRebase:         1, mountspec.ConflictMerge: 1, mountspec.ConflictSplit: 1,
	mountspec.ConflictAbort: 2, mountspec.ConflictManual: 2,
}

func lessLost(st *mountspec.Storage, v any) (string, bool, error) {
	text, _ := v.(string)
	want := mountspec.ConflictPolicy(text)
	rank, known := losses[want]
	switch able := mountspec.RulesFor(st.Provider).Conflicts; {
	case !known:
		return "", false, fmt.Errorf("is not a conflict policy")
	case st.Sync.Conflict == "" || rank <= losses[st.Sync.Conflict]: // nothing can conflict, or it is strict enough
		return text, false, nil
	case !slices.Contains(able, want):
		return "", false, fmt.Errorf("%s cannot do: it has %s", st.Provider, strings.Join(words(able), ", "))
	}
	st.Sync.Conflict = want
	return text, true, nil
}

func words(list []mountspec.ConflictPolicy) (out []string) {
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}
