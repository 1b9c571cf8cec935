package mountspec

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestAliasesResolve(t *testing.T) {
	for in, want := range map[Trigger]Trigger{
		"per-turn":                 "turn-end",
		"per-conversation":         "conversation-end",
		"each-write":               "write",
		"per-commit":               "storage-commit-completed",
		"turn-end":                 "turn-end",
		"idle-300":                 "idle-300",
		"agentik:scheduled-pull":   "agentik:scheduled-pull",
		"something-else":           "something-else",
		"storage-commit-completed": "storage-commit-completed",
	} {
		assert.Equal(t, in.Resolve(), want, in, "resolves to")
		assert.Equal(t, in.Resolve().Resolve(), want, in, "resolves further to")
	}
}

func TestParseTemplated(t *testing.T) {
	for name, want := range map[string]string{"idle-300": "idle 300", "conversation-idle-600": "conversation-idle 600", "idle-1": "idle 1"} {
		base, seconds, ok := ParseTemplated(name)
		assert.Equal(t, fmt.Sprint(base, " ", seconds, " ", ok), want+" true", name)
	}
	for _, name := range []string{"idle-bad", "idle-0", "idle--1", "idle-+1", "idle-007", "idle-", "idle-99999999999999999999", "idle-2147483648", "turn-end", "turn-5", "idle", ""} {
		base, seconds, ok := ParseTemplated(name)
		assert.True(t, !ok && base == "" && seconds == 0, name, "got", base, seconds)
	}
}

func TestEventNames(t *testing.T) {
	assert.Equal(t, len(StandardEvents()), 18, "standard events")
	for _, e := range append(StandardEvents(), Aliases()...) {
		assert.True(t, e.Known() && !e.IsNamespaced(), e, "known", e.Known(), "namespaced", e.IsNamespaced())
	}
	assert.True(t, IsNamespaced("agentik:scheduled-pull") && !IsNamespaced("turn-end"), "namespaced is not what has a colon")
	assert.True(t, !Trigger("turn-begin").Known() && !Trigger("Turn-end").Known() && Trigger("idle-5").Known(), "known is not what AIP-37 names")
}

func TestTemplate(t *testing.T) {
	vars := Vars{Operator: "bob", Summary: "add the report", Workspace: "@a/b", Turn: "t1", Conversation: "c1",
		Files: []string{"a", "b", "c", "d"}, Date: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	for _, c := range []struct {
		name, template string
		vars           Vars
		want           string
	}{
		{"upstream's example", "{{operator}}: {{summary}}", vars, "bob: add the report"},
		{"every token", "{{workspace}} {{turn}} {{conversation}} {{count}} {{date}} {{files}}", vars, "@a/b t1 c1 4 2026-03-04 a, b, c and 1 more"},
		{"spaces inside", "{{ operator }}", vars, "bob"},
		{"single braces", "{operator} }}", vars, "{operator} }}"},
		{"no summary", "{{summary}}", Vars{Files: []string{"x"}}, "update x"},
		{"no summary, files", "{{summary}}", Vars{Files: []string{"x", "y"}}, "update 2 files: x, y"},
		{"no summary, a count", "{{summary}}", Vars{Count: 7}, "update 7 files: 7 more"},
		{"nothing at all", "{{operator}}", Vars{}, "update"},
		{"a count beyond the list", "{{count}}", Vars{Files: []string{"x"}, Count: 9}, "9"},
		{"not expanded twice", "{{operator}}", Vars{Operator: "{{summary}}", Summary: "no"}, "{{summary}}"},
		{"a trailer in a value", "{{summary}}", Vars{Summary: "x\n\nCo-authored-by: me <me@x>"}, "x Co-authored-by: me <me@x>"},
		{"control characters", "{{summary}}", Vars{Summary: "a\x00b\x1b[31mc\td\u2028e\u202ef\u0085g"}, "a b [31mc d e f g"},
		{"a blank summary", "{{summary}}", Vars{Summary: " \n\t", Files: []string{"x"}}, "update x"},
		{"invalid UTF-8", "{{summary}}", Vars{Summary: "a\xffb"}, "ab"},
		{"long", "{{summary}}", Vars{Summary: strings.Repeat("ä", 5000)}, strings.Repeat("ä", maxMessage/2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, assert.Of(ParseTemplate(c.template)).OK(t).Expand(c.vars), c.want)
		})
	}
}

func TestTemplateRefuses(t *testing.T) {
	for _, s := range []string{"", "{{user}}", "{{}}", "{{summary", "x {{ {{summary}}", "{{Summary}}", "${{ summary }} {{x}}"} {
		_, err := ParseTemplate(s)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "message template: "), s, "is accepted")
	}
}

func TestBranchNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, id := range []string{"c-42", "Conv.1_2", strings.Repeat("y", maxID)} {
		assert.Equal(t, CleanID(id), id)
	}
	for id, want := range map[string]string{"a/b": "a-b-", "..": "id-", "-x": "x-", "x.lock": "x-lock-", "a..b": "a-b-", "x-0123456789ab": "x-0123456789ab-",
		long: strings.Repeat("x", maxID-13) + "-"} {
		if got := CleanID(id); !strings.HasPrefix(got, want) || len(got) != len(want)+12 { // and a hash
			t.Errorf("%q: got %q, want %q and a hash", id, got, want)
		}
	}
	got, err := BranchForTurn("c 1", long)
	parts := strings.Split(got, "/")
	assert.True(t, err == nil && len(parts) == 4 && parts[0] == "wsmount" && parts[1] == "t" && len(parts[3]) <= maxID && ValidBranch(got), "got", got, err)
	assert.Of(BranchForConversation("c1")).Equal(t, "wsmount/c/c1")
	for _, err := range []error{assert.ErrOf(BranchForConversation("")), assert.ErrOf(BranchForTurn("c", "")), assert.ErrOf(BranchForTurn("", "t"))} {
		assert.Is(t, err, ErrNoID, "no id")
	}
}

// Whatever the ids, the branch is one that git takes, bounded, and not another id's.
func TestCleanIDIsInjective(t *testing.T) {
	id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c./ -]{1,5}`), rapid.StringMatching(`[a-z-]{50,80}`))
	tier.Check(t, func(t *rapid.T) {
		a, b := id.Filter(notEmpty).Draw(t, "a"), id.Filter(notEmpty).Draw(t, "b")
		x, y := CleanID(a), CleanID(b)
		branch, _ := BranchForConversation(a)
		assert.Must(t, ValidBranch(branch) && len(x) <= maxID && !strings.Contains(x, "/") && utf8.ValidString(x), a, "gives the branch", branch)
		assert.Must(t, a == b || x != y, a, "and", b, "share", x)
		assert.Must(t, a == x || CleanID(x) != x, "the id", x, "takes the name", x, "of", a)
	})
}

func notEmpty(s string) bool { return s != "" }

func TestValidBranch(t *testing.T) {
	for _, s := range []string{"main", "release/1.x", "feature/ä", "a.b", "a@b", "x-"} {
		assert.True(t, ValidBranch(s), s, "is refused")
	}
	for _, s := range []string{"", "@", "HEAD", "-x", "--help", ".x", "a/.b", "x.", "x.lock", "a.lock/b", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "a@{1}", "/a", "a/", "a//b", "a\x00", "a\x7f", strings.Repeat("x", 245)} {
		assert.False(t, ValidBranch(s), s, "is accepted")
	}
}

func TestAddress(t *testing.T) {
	for _, s := range []string{"@acme/marketing-ops", "@a/b", "@0/9-", "@a-b/c--d"} {
		assert.Equal(t, assert.Of(ParseAddress(s)).OK(t).String(), s)
	}
	for _, s := range []string{"", "@", "acme/x", "@acme", "@acme/", "@/x", "@acme/x/y", "@Acme/x", "@acme/-x", "@-a/x", "@acme/x y", "@acme/..", "@acme/x\n", "@@a/b", "@acme/" + strings.Repeat("x", maxSegment+1)} {
		a, err := ParseAddress(s)
		assert.True(t, err != nil && a == (Address{}) && strings.HasPrefix(err.Error(), "address "), s, "is accepted as", a, err)
	}
	assert.Equal(t, (Address{}).String(), "", "the zero address prints as something")
}

func TestResolveAddress(t *testing.T) {
	found := &Workspace{ID: Address{"acme", "ops"}, Pos: Pos{"W.md", 2, 1}}
	resolve := func(asked string, w *Workspace, err error) (*Workspace, error) {
		return ResolveAddress(asked, func(Address) (*Workspace, error) { return w, err })
	}
	got, err := resolve("@acme/ops", found, nil)
	assert.Is(t, err, nil)
	assert.Equal(t, got, found, "found")
	got, err = resolve("@acme/other", nil, nil)
	assert.Is(t, err, nil)
	assert.Equal(t, got, nil, "not found")
	assert.True(t, assert.ErrOf(resolve("acme/ops", found, nil)) != nil, "no address is refused")
	broken := errors.New("broken")
	assert.Is(t, assert.ErrOf(resolve("@acme/ops", found, broken)), broken, "the lookup fails")
	got, err = resolve("@acme/bank", found, nil)
	var e *IdentityError
	assert.True(t, got == nil && errors.As(err, &e) && e.Found == found.ID && strings.Contains(err.Error(), "W.md:2:1"), "another's manifest: got", got, err)
}

func TestRefs(t *testing.T) {
	for _, c := range []struct {
		value string
		kind  RefKind
		clean string
	}{
		{"./storage/main.STORAGE.md", RefPath, "storage/main.STORAGE.md"},
		{"storage/main.STORAGE.md", RefPath, "storage/main.STORAGE.md"},
		{"a/../b", RefPath, "b"},
		{"..b", RefPath, "..b"},
		{"./a:b", RefPath, "a:b"},
		{"../shared/team.STORAGE.md", RefCrossWorkspace, "../shared/team.STORAGE.md"},
		{"./a/../../b", RefCrossWorkspace, "../b"},
		{"..", RefCrossWorkspace, ".."},
		{"@acme/x", RefSlug, "@acme/x"},
		{"@acme/policies/team-baseline", RefSlug, "@acme/policies/team-baseline"},
	} {
		r := assert.Of(ParseRef(c.value)).OK(t)
		assert.True(t, r.Kind == c.kind && r.Clean() == c.clean, c.value, r.Kind, r.Clean(), c.kind, c.clean)
	}
	assert.Equal(t, (Ref{}).Clean(), "", "an inline block has the path")
	var refError *RefError
	_, err := ParseRef("/x")
	assert.True(t, errors.As(err, &refError) && strings.Contains(err.Error(), "absolute"), "got", err)
}

// The first is the author, the others are co-authors.
func TestAuthors(t *testing.T) {
	author, others, ok := Authors([]IdentityEntry{{Ref: "user://a"}, {Ref: "user://b"}})
	assert.True(t, ok && author.Ref == "user://a" && len(others) == 1 && others[0].Ref == "user://b", author, others)
	_, _, ok = Authors(nil)
	assert.False(t, ok, "there is an author of nothing")
}
