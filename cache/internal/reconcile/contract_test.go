package reconcile

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// question is what Decide is asked.
type question struct {
	base   Base
	local  Local
	remote Entry
	policy Policy
}

// ofKind are the words about the kind of a side, with more words about it.
func ofKind(kind func(*question) providers.Kind, more map[string]func(*question) bool) map[string]func(*question) bool {
	more["any"] = func(*question) bool { return true }
	more["nothing"] = func(q *question) bool { return kind(q) == None }
	more["there"] = func(q *question) bool { return kind(q) != None }
	more["file"] = func(q *question) bool { return kind(q) != None && kind(q) != aDir }
	more["directory"] = func(q *question) bool { return kind(q) == aDir }
	more["not directory"] = func(q *question) bool { return kind(q) != aDir }
	return more
}

// vocabulary is what stands in the columns of the contract.
var vocabulary = [4]map[string]func(*question) bool{
	ofKind(func(q *question) providers.Kind { return q.base.Kind }, map[string]func(*question) bool{
		"undecided": func(q *question) bool { return q.base.Kind == aDir && !q.base.Decided },
		"held":      func(q *question) bool { return q.base.Held != nil },
		"not held":  func(q *question) bool { return q.base.Held == nil || q.base.Kind == None },
	}),
	ofKind(func(q *question) providers.Kind { return q.local.Kind }, map[string]func(*question) bool{
		"clean":         func(q *question) bool { return q.local.Kind != None && q.local.clean(q.base) },
		"new":           func(q *question) bool { return q.local.Kind != None && !q.local.clean(q.base) },
		"another":       func(q *question) bool { return q.local.Another },
		"renamed":       func(q *question) bool { return q.base.Moved != NotMoved },
		"modified":      func(q *question) bool { return q.isModified() },
		"full":          func(q *question) bool { return q.local.Full },
		"empty":         func(q *question) bool { return !q.local.Full },
		"only here":     func(q *question) bool { return !q.local.Elsewhere },
		"in flight":     func(q *question) bool { return q.local.InFlight },
		"ignored":       func(q *question) bool { return q.local.Scope == Ignored },
		"private":       func(q *question) bool { return q.local.Scope != Shared },
		"maybe sent":    func(q *question) bool { return q.local.Sent == MaybeSent },
		"late write":    func(q *question) bool { return q.local.Sent == LateWrite },
		"unseen":        func(q *question) bool { return q.local.Unseen },
		"being written": func(q *question) bool { return q.local.Writing },
		"partial":       func(q *question) bool { return q.local.Partial },

		"version of another": func(q *question) bool { return q.local.Origin },
	}),
	ofKind(func(q *question) providers.Kind { return q.remote.Kind }, map[string]func(*question) bool{
		"as base": func(q *question) bool { return q.base.Same(q.remote) },
		"as held": func(q *question) bool {
			return q.remote.Kind != None && q.base.Held.Version.Matches(q.remote.Version) && q.base.Held.Kind == q.remote.Kind
		},
		"same content": func(q *question) bool { return q.base.SameContent(q.remote) },
	}),
	{ // and
		"excluded":           func(q *question) bool { return q.policy.Excluded },
		"some below":         func(q *question) bool { return q.base.Below.Files },
		"none below":         func(q *question) bool { return !q.base.Below.Files },
		"busy":               func(q *question) bool { return q.base.Below.Busy },
		"within":             func(q *question) bool { return q.policy.Within },
		"no empty dirs":      func(q *question) bool { return !q.policy.EmptyDirs },
		"implied dirs":       func(q *question) bool { return q.policy.ImpliedDirs },
		"attrs told":         func(q *question) bool { return q.policy.DirAttrs },
		"attrs not modified": func(q *question) bool { return !q.base.AttrsModified },
		"same kind":          func(q *question) bool { return q.base.Kind == q.remote.Kind },
		"not compared":       func(q *question) bool { return q.local.Content == Uncompared },
		"equal":              func(q *question) bool { return q.local.Content == Equal },
		"gone":               func(q *question) bool { return q.local.Content == Gone },
		"text not tried":     func(q *question) bool { return q.local.Text == Untried },
		"text merged":        func(q *question) bool { return q.local.Text == Merged },
		"texts combine":      func(q *question) bool { return q.policy.Conflict.Combines() },
		"split":              func(q *question) bool { return q.policy.Conflict.Splits() },
		"last writer wins":   func(q *question) bool { return q.policy.Conflict == LastWriterWins },
		"not kept":           func(q *question) bool { return q.policy.Kept == NotKept },
		"too large":          func(q *question) bool { return q.policy.Kept == TooLarge },
		"abort or manual": func(q *question) bool {
			return q.policy.Conflict == Abort || q.policy.Conflict == Manual || q.policy.Conflict == Combine
		},
	},
}

// isModified is of what had the name, where that is elsewhere now.
func (q *question) isModified() bool {
	if q.local.Kind == None {
		return q.base.Moved == RenamedAndModified
	}
	return q.local.Modified
}

// fits reports whether a line of the contract, in its columns, is of a question.
func (q *question) fits(t *testing.T, line string) bool {
	columns := strings.Split(line, "|")
	for i, known := range vocabulary {
		for word := range strings.SplitSeq(columns[i], ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			is, ok := known[word]
			assert.Must(t, ok, "a word of the contract that says nothing:", word, "in", line)
			if !is(q) {
				return false
			}
		}
	}
	return true
}

// Of any question the first line of the contract that fits is the answer.
func TestFirstLineThatFits(t *testing.T) {
	byWords := map[string]string{}
	for _, c := range contract {
		byWords[spelled(c.line)] = c.line
	}
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(.* [A-Z]\w+)$`).FindAllStringSubmatch(string(assert.Of(os.ReadFile("decide.go")).OK(t)), -1) {
		lines = append(lines, byWords[spelled(m[1])])
	}
	used, seed := map[string]bool{}, tier.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range tier.Pick(50_000, 1_000_000) {
		var q question
		q.base, q.local, q.remote, q.policy = someSides(r)
		q.local.Content, q.local.Text, q.local.Sent = Content(r.IntN(4)), Text(r.IntN(3)), Sent(r.IntN(3))
		q.policy.Kept = InHistory(r.IntN(3))
		if r.IntN(8) == 0 && q.remote.Kind == aFile {
			q.remote.Kind = providers.KindSymlink
		}
		for i, line := range lines {
			if q.fits(t, line) {
				used[line] = true
				assert.Must(t, Decide(q.base, q.local, q.remote, q.policy).Do == doOf(t, line), "seed", seed, "line", i, line, "for", q)
				break
			}
			assert.Must(t, i < len(lines)-1, "seed", seed, "no line is of", q)
		}
	}
	for _, line := range lines {
		assert.True(t, used[line], "a line that comes after one which is always of it:", line)
	}
}
