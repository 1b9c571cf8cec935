package mountspec

import (
	"slices"
	"strings"
	"time"
)

// syncField is one scalar of the sync block: how it is read, shown and copied.
// Everything that walks the block walks this table, so no field is forgotten.
type syncField struct {
	key  string
	read func(*Sync, value)
	show func(*Sync) string // as the manifest writes it
	copy func(dst, src *Sync)
}

func wordField[T ~string](key string, at func(*Sync) *T, read func(value) string) syncField {
	return syncField{
		key:  key,
		read: func(s *Sync, v value) { *at(s) = T(read(v)) },
		show: func(s *Sync) string { return string(*at(s)) },
		copy: func(dst, src *Sync) { *at(dst) = *at(src) },
	}
}

func durationField(key string, at func(*Sync) *time.Duration, unit time.Duration, least int64) syncField {
	return syncField{
		key: key,
		read: func(s *Sync, v value) {
			n, _ := v.integer(least, maxSeconds)
			*at(s) = time.Duration(n) * unit
		},
		show: func(s *Sync) string {
			if *at(s) == 0 && !s.Set[key] {
				return ""
			}
			return itoa(int(*at(s) / unit))
		},
		copy: func(dst, src *Sync) { *at(dst) = *at(src) },
	}
}

var syncFields = []syncField{
	wordField("mode", func(s *Sync) *Mode { return &s.Mode },
		oneOfWords(ModeCanonical, ModePullPush, ModeWatch)),
	wordField("pull.on", func(s *Sync) *Trigger { return &s.Pull.On }, decodeTrigger),
	durationField("pull.ttl_seconds", func(s *Sync) *time.Duration { return &s.Pull.TTL }, time.Second, 1),
	wordField("commit.on", func(s *Sync) *Trigger { return &s.Commit.On }, decodeTrigger),
	durationField("commit.batch_window_ms", func(s *Sync) *time.Duration { return &s.Commit.Batch }, time.Millisecond, 0),
	wordField("commit.message_template", func(s *Sync) *string { return &s.Commit.Template }, decodeTemplate),
	wordField("push.on", func(s *Sync) *Trigger { return &s.Push.On }, decodeTrigger),
	wordField("push.branch_policy", func(s *Sync) *BranchPolicy { return &s.Push.Branch },
		oneOfWords(BranchMain, BranchPerConversation, BranchPerTurn)),
	wordField("push.pr_policy", func(s *Sync) *PRPolicy { return &s.Push.PR },
		oneOfWords(PRNone, PRAuto, PRManual)),
	wordField("conflict.policy", func(s *Sync) *ConflictPolicy { return &s.Conflict },
		oneOfWords(gitConflicts...)),
}

func oneOfWords[T ~string](allowed ...T) func(value) string {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return func(v value) string { return v.word(words...) }
}

// decodeSync reads the sync block of a provider and applies the defaults.
func decodeSync(v value, provider string) Sync {
	given := Sync{Set: map[string]bool{}, Pos: v.pos()}
	o, ok := v.object()
	if ok {
		if flat := o.keys["conflict_policy"]; flat.n != nil {
			flat.fail("unknown-key", "write conflict: { policy: ... }", "sync.conflict_policy is the prose's name of it")
			o.known = append(o.known, "conflict_policy")
		}
	}
	at := readSyncFields(o, &given)
	o.closed()
	s := DefaultSync(provider, allowedMode(given.Mode, provider), given.Present())
	s.Set, s.Pos = given.Set, given.Pos
	for _, f := range syncFields {
		if given.Set[f.key] {
			f.copy(&s, &given)
		}
	}
	checkSync(s, at, provider)
	return s
}

// allowedMode keeps a mode that the provider cannot do from choosing defaults.
func allowedMode(m Mode, provider string) Mode {
	if slices.Contains(RulesFor(provider).Modes, m) {
		return m
	}
	return ""
}

// readSyncFields fills s and returns where each value that is right stands.
func readSyncFields(o *object, s *Sync) map[string]value {
	at := map[string]value{}
	blocks := map[string]*object{"": o}
	for _, f := range syncFields {
		block, key, nested := strings.Cut(f.key, ".")
		if !nested {
			block, key = "", f.key
		}
		if blocks[block] == nil {
			blocks[block], _ = o.get(block).object()
		}
		v := blocks[block].get(key)
		if !v.present() {
			continue
		}
		before := len(v.d.findings)
		f.read(s, v)
		if s.Set[f.key] = true; len(v.d.findings) == before {
			at[f.key] = v
		}
	}
	for name, block := range blocks {
		if name != "" {
			block.closed()
		}
	}
	return at
}

// checkSync compares the block of the manifest with the abilities of the provider
// (AIP-35, conformance rule 3).
func checkSync(s Sync, at map[string]value, provider string) {
	rules := RulesFor(provider)
	if v, ok := at["mode"]; ok && !slices.Contains(rules.Modes, s.Mode) {
		v.fail("sync-mode", "write "+alternatives(words(rules.Modes))+", or leave it out", "%s cannot be mounted in mode %s", provider, s.Mode)
	}
	if v, ok := at["conflict.policy"]; ok {
		checkConflict(v, s.Conflict, rules, provider)
	}
	for _, f := range syncFields {
		if v, ok := at[f.key]; ok && ignoredIn(f.key, s.Mode) {
			v.warn("sync-ignored", "", "mode %s does not use it (AIP-35)", s.Mode)
		}
	}
}

func checkConflict(v value, c ConflictPolicy, rules Rules, provider string) {
	gitOnly := c == ConflictRebase || c == ConflictMerge
	switch {
	case len(rules.Conflicts) == 0 && !gitOnly:
		v.warn("sync-ignored", "", "%s has one copy of the bytes: nothing can conflict", provider)
	case len(rules.Conflicts) == 0:
		v.fail("conflict-policy", "leave it out", "%s has no commits to %s", provider, c)
	case !slices.Contains(rules.Conflicts, c):
		v.fail("conflict-policy", "write "+alternatives(words(rules.Conflicts)), "%s cannot resolve a conflict by %s", provider, c)
	}
}

// ignoredIn reports whether a mode ignores a field: AIP-35 says so of pull,
// commit and push in canonical mode, and watch has one copy too. A commit
// block still counts when the host mounts a canonical store with write-back.
func ignoredIn(key string, m Mode) bool {
	return m != ModePullPush && (strings.HasPrefix(key, "pull.") || strings.HasPrefix(key, "push.") ||
		strings.HasPrefix(key, "commit.") && m == ModeWatch)
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// decodeTrigger reads the name of an event. AIP-37 makes hosts tolerate names
// that they do not know: such a trigger never fires, and we say so.
func decodeTrigger(v value) string {
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return ""
	}
	t := Trigger(s)
	switch {
	case strings.ContainsAny(s, " \t") || len(s) > 128:
		v.fail("event-name", "", "%s is not the name of an event", show(s))
		return ""
	case !t.Known() && !t.IsNamespaced():
		hint := "it never fires by itself; a host may send it"
		if near := nearest(s, words(append(StandardEvents(), Aliases()...))); near != "" {
			hint = "did you mean " + near + "?"
		}
		v.warn("unknown-event", hint, "%s is no event of AIP-37", show(s))
	}
	return s
}

func decodeTemplate(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	if _, err := ParseTemplate(s); err != nil {
		v.fail("message-template", "the tokens are "+strings.Join(templateTokens, ", "), "%v", err)
		return ""
	}
	return s
}
