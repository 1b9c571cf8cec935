package reconcile

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

const (
	aFile = providers.KindFile
	aDir  = providers.KindDir
)

// version is a file with another content for each etag.
func version(etag string) Entry {
	return Entry{Kind: aFile, Version: providers.Version{ETag: etag, Size: 1}}
}

// touched is version with other attributes.
func touched(etag string) Entry {
	e := version(etag)
	e.Version.Modified = 7
	return e
}

var (
	nothing  = Entry{}
	folder   = Entry{Kind: aDir}
	one, two = version("1"), version("2")
	was      = Base{Entry: touched("1")}
	wasDir   = Base{Entry: folder}
	again    = Entry{Kind: aFile, Version: providers.Version{ETag: "1", Size: 1, Modified: 9}} // the content of was
	file1    = Local{Kind: aFile}
	edited   = Local{Kind: aFile, Modified: true}
	other    = Local{Kind: aFile, Another: true}
	full     = Local{Kind: aDir, Full: true}
	empty    = Local{Kind: aDir}
	otherDir = Local{Kind: aDir, Another: true}
	keeping  = Policy{EmptyDirs: true}
	none     = Local{}
)

// with is a with some facts.
func with[T any](a T, facts ...func(*T)) T {
	for _, f := range facts {
		f(&a)
	}
	return a
}

func inFlight(l *Local)  { l.InFlight = true }
func excluded(p *Policy) { p.Excluded = true }
func decided(b *Base)    { b.Decided = true }
func busy(b *Base)       { b.Below.Busy = true }
func some(b *Base)       { b.Below.Files = true }
func (s Scope) of(l Local) Local {
	l.Scope = s
	return l
}
func (s Sent) of(l Local) Local {
	l.Sent = s
	return l
}
func (c Content) of(l Local) Local {
	l.Content = c
	return l
}
func (m Moved) of(b Base) Base {
	b.Moved = m
	return b
}
func (c Conflict) policy() Policy { return Policy{Conflict: c} }

// contract has a case for each line of that, by its words.
var contract = []struct {
	line   string
	base   Base
	local  Local
	remote Entry
	policy Policy
	note   string
}{
	{"any | any, in flight | any | excluded | Wait", was, with(other, inFlight), one, with(keeping, excluded), ""},
	{"nothing | nothing | any | excluded | Nothing", Base{}, none, one, with(keeping, excluded), ""},
	{"nothing | there | any | excluded | Detach", Base{}, other, one, with(keeping, excluded), ""},
	{"undecided | any | any | excluded | Descend", wasDir, full, folder, with(keeping, excluded), ""},
	{"there | new | any | excluded | Detach", was, edited, one, with(keeping, excluded), ""},
	{"there | new | any | excluded | Detach", was, other, one, with(keeping, excluded), ""},
	{"there | directory, full | any | excluded | Detach", with(wasDir, decided), full, folder, with(keeping, excluded), ""},
	{"there | clean | any | excluded | Delete", was, file1, one, with(keeping, excluded), ""},
	{"there | clean | any | excluded | Delete", with(wasDir, decided), empty, folder, with(keeping, excluded), ""},
	{"there | nothing | any | excluded | Forget", was, none, one, with(keeping, excluded), ""},

	{"any | any, ignored | there | | Track", Base{}, Ignored.of(with(other, inFlight)), one, Policy{}, ""},
	{"any | any, in flight | any | | Wait", was, with(edited, inFlight), two, Policy{}, ""},
	{"any | any, private | any | | Nothing", was, Private.of(other), two, Policy{}, ""},
	{"any | any, private | any | | Nothing", was, Ignored.of(other), nothing, Policy{}, ""},
	{"any, not held | any | as base | | Nothing", was, edited, one, Policy{}, ""},
	{"any, not held | any | as base | | Nothing", Base{}, other, nothing, Policy{}, ""},
	{"there, held | any | as held | | Nothing", Base{Entry: one, Held: &two}, edited, two, Policy{}, ""},
	{"any | any, maybe sent | file | | AskSent", was, MaybeSent.of(edited), two, Policy{}, ""},
	{"any | any, late write | file | | Confirm", was, LateWrite.of(edited), two, Policy{}, ""},

	{"undecided | any | nothing | some below, busy, no empty dirs | Clear", with(wasDir, some, busy), full, nothing, Policy{}, ""},
	{"undecided | any | nothing | none below, busy, no empty dirs | Nothing", with(wasDir, busy), full, nothing, Policy{}, ""},
	{"undecided | any | nothing | none below, within, no empty dirs | Release", wasDir, full, nothing, Policy{Within: true}, ""},
	{"undecided | any | nothing | none below, no empty dirs | Nothing", wasDir, empty, nothing, Policy{}, ""},
	{"undecided | any | nothing | busy, implied dirs | Nothing", with(wasDir, some, busy), full, nothing, Policy{EmptyDirs: true, ImpliedDirs: true}, ""},
	{"undecided | any | nothing | | Descend", wasDir, full, nothing, keeping, ""},
	{"undecided | any | nothing | | Descend", with(wasDir, some), full, nothing, Policy{}, ""},
	{"there | nothing | nothing | | Forget", was, none, nothing, Policy{}, ""},
	{"there | another | nothing | | Forget", was, other, nothing, Policy{}, ""},
	{"there | directory, full | nothing | | Keep", with(wasDir, decided), full, nothing, Policy{}, NoteKeptDir},
	{"there | directory, empty | nothing | | Delete", with(wasDir, decided), empty, nothing, Policy{}, ""},
	{"there | modified | nothing | | Keep", was, edited, nothing, Policy{}, NoteKept},
	{"there | clean | nothing | | Delete", was, file1, nothing, Policy{}, ""},

	{"directory | any | directory | attrs told, attrs not modified | TakeAttrs", wasDir, full, folder, Policy{DirAttrs: true}, ""},
	{"directory | any | directory | | Nothing", wasDir, full, folder, Policy{}, ""},
	{"directory | any | directory | | Nothing", Base{Entry: folder, AttrsModified: true}, full, folder, Policy{DirAttrs: true}, ""},
	{"not directory | nothing | directory | | Arrive", was, none, folder, Policy{}, ""},
	{"not directory | directory | directory | | Join", Base{}, otherDir, folder, Policy{}, ""},
	{"not directory | clean | directory | | Supplant", was, file1, folder, Policy{}, ""},
	{"not directory | new | directory | | Aside", was, edited, folder, Policy{}, ""},

	{"directory | any | file | | Vacate", wasDir, full, one, Policy{}, ""},
	{"nothing | nothing | file | | Arrive", Base{}, none, one, Policy{}, ""},
	{"file | nothing | same content | | Refresh", was, none, again, Policy{}, ""},
	{"file | nothing, renamed | file | | Follow", Renamed.of(was), none, two, Policy{}, ""},
	{"file | nothing, renamed, modified | file | | Arrive", RenamedAndModified.of(was), none, two, Policy{}, NoteKeptBoth},
	{"file | nothing | file | | Arrive", was, none, two, Policy{}, NoteRestored},
	{"nothing | directory, empty, only here | file | | Supplant", Base{}, otherDir, one, Policy{}, ""},
	{"any | directory | file | | Aside", was, otherDir, two, Policy{}, ""},
	{"any | directory | file | | Aside", Base{}, with(otherDir, func(l *Local) { l.Elsewhere = true }), two, Policy{}, ""},
	{"file | there | same content | | Refresh", was, edited, again, Policy{}, ""},
	{"file | clean, unseen | file | same kind, attrs not modified | Renew", was, with(file1, func(l *Local) { l.Unseen = true }), two, Policy{}, ""},
	{"file | clean | file | | Replace", was, file1, two, Policy{}, ""},
	{"file | clean | file | | Replace", Base{Entry: one, AttrsModified: true}, with(file1, func(l *Local) { l.Unseen = true }), two, Policy{}, ""},
	{"any | new, being written | file | | Nothing", was, with(edited, func(l *Local) { l.Writing = true }), two, Policy{}, ""},
	{"any | new | file | not compared | Compare", Base{}, other, two, Policy{}, ""},
	{"any | new | file | equal | Adopt", was, Equal.of(edited), two, Policy{}, ""},
	{"any | new, version of another | file | gone | Nothing", Base{}, Gone.of(with(other, func(l *Local) { l.Origin = true })), two, Policy{}, ""},
	{"any | new, partial | file | gone | Salvage", was, Gone.of(with(edited, func(l *Local) { l.Partial = true })), two, Policy{}, ""},
	{"any | new | file | gone | Hold", was, Gone.of(edited), two, Policy{}, NoteBaseGone},
	{"any | new | file | text not tried, texts combine | MergeText", was, Differs.of(edited), two, Combine.policy(), ""},
	{"any | new | file | text merged, texts combine | Unite", was, Differs.of(with(edited, merged)), two, Markers.policy(), ""},
	{"any | new | file | split | SplitUp", was, Differs.of(edited), two, Split.policy(), ""},
	{"any | new | file | split | SplitUp", was, Differs.of(with(edited, apart)), two, Markers.policy(), ""},
	{"any | new | file | last writer wins, not kept | KeepRemote", was, Differs.of(edited), two, LastWriterWins.policy(), ""},
	{"any | new | file | last writer wins, too large | Hold", was, Differs.of(edited), two, Policy{Conflict: LastWriterWins, Kept: TooLarge}, NoteTooLarge},
	{"any | new | file | last writer wins | Overwrite", was, Differs.of(edited), two, Policy{Conflict: LastWriterWins, Kept: Kept}, NoteOverwritten},
	{"any | new | file | abort or manual | Hold", was, Differs.of(edited), two, Manual.policy(), NoteConflict},
	{"any | new | file | abort or manual | Hold", was, Differs.of(with(edited, apart)), two, Combine.policy(), NoteConflict},
	{"any | new | file | abort or manual | Hold", was, Differs.of(edited), two, Abort.policy(), "modified locally and on the remote (storage_conflict)"},
}

func merged(l *Local) { l.Text = Merged }
func apart(l *Local)  { l.Text = Apart }

func TestDecide(t *testing.T) {
	var words []string
	for _, c := range contract {
		words = append(words, spelled(c.line))
		a := Decide(c.base, c.local, c.remote, c.policy)
		assert.Equal(t, a, Action{doOf(t, c.line), c.note}, c.line)
	}
	sameLines(t, "decide.go", words)
}

func TestDecideOrphan(t *testing.T) {
	var words []string
	for _, c := range []struct {
		line   string
		orphan Orphan
		policy Policy
		note   string
	}{
		{"nothing | | Keep", Orphan{}, Policy{}, NoteKept},
		{"changed | | SplitUp", Orphan{Rival: Changed}, Manual.policy(), ""},
		{"pulled | not compared | Compare", Orphan{Rival: Pulled}, Policy{}, ""},
		{"pulled | equal | Adopt", Orphan{Pulled, Equal, Untried}, Manual.policy(), ""},
		{"pulled | text not tried, texts combine | MergeText", Orphan{Pulled, Differs, Untried}, Markers.policy(), ""},
		{"pulled | text merged, texts combine | Unite", Orphan{Pulled, Differs, Merged}, Combine.policy(), ""},
		{"pulled | split | SplitUp", Orphan{Pulled, Gone, Untried}, Split.policy(), ""},
		{"pulled | last writer wins, not kept | KeepRemote", Orphan{Pulled, Differs, Untried}, LastWriterWins.policy(), ""},
		{"pulled | last writer wins, too large | Hold", Orphan{Pulled, Differs, Untried}, Policy{Conflict: LastWriterWins, Kept: TooLarge}, NoteTooLarge},
		{"pulled | last writer wins | Overwrite", Orphan{Pulled, Differs, Untried}, Policy{Conflict: LastWriterWins, Kept: Kept}, NoteOverwritten},
		{"pulled | abort or manual | Hold", Orphan{Pulled, Differs, Apart}, Combine.policy(), NoteConflict},
	} {
		words = append(words, spelled(c.line))
		assert.Equal(t, DecideOrphan(c.orphan, c.policy), Action{doOf(t, c.line), c.note}, c.line)
	}
	for _, c := range []struct {
		line    string
		remains Remains
		note    string
	}{
		{"some | any | any | Nothing", Remains{Remote: true}, ""},
		{"none | none | any | Forget", Remains{Complete: true}, ""},
		{"none | some | complete | Keep", Remains{Local: true, Complete: true}, NoteKeptRenamed},
		{"none | some | modified, not complete | Nothing", Remains{Local: true, Modified: true}, ""},
		{"none | some | not complete | Delete", Remains{Local: true}, NoteNotFetched},
	} {
		words = append(words, spelled(c.line))
		assert.Equal(t, DecideRemains(c.remains), Action{doOf(t, c.line), c.note}, c.line)
	}
	sameLines(t, "unnamed.go", words)
}

// spelled is a line without its columns.
func spelled(line string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(line, "|", "")), " ")
}

// doOf is the action at the end of a line.
func doOf(t *testing.T, line string) Do {
	t.Helper()
	word := line[strings.LastIndexByte(line, ' ')+1:]
	for d, name := range names {
		if name == word {
			return d
		}
	}
	t.Fatalf("there is no action %q", word)
	return 0
}

// sameLines checks that a contract has a line for each case, and a case for each line.
func sameLines(t *testing.T, file string, cases []string) {
	t.Helper()
	text := assert.Of(os.ReadFile(file)).OK(t)
	var wanted []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(.* ([A-Z]\w+))$`).FindAllStringSubmatch(string(text), -1) {
		wanted = append(wanted, spelled(m[1]))
	}
	slices.Sort(wanted)
	slices.Sort(cases)
	assert.Slice(t, slices.Compact(cases), slices.Compact(wanted), "the lines of", file)
}

// Without a hash nothing is known of two contents, whatever else is the same.
func TestSameContent(t *testing.T) {
	etag, digest := version("1"), Entry{Kind: aFile, Digest: "sha256:1", Version: providers.Version{Size: 1}}
	bare := Entry{Kind: aFile, Version: providers.Version{Size: 1}}
	longer := version("1")
	longer.Version.Size = 2
	for _, c := range []struct {
		a, b Entry
		same bool
	}{{etag, etag, true}, {digest, digest, true}, {etag, digest, false}, {bare, bare, false}, {etag, longer, false}, {nothing, nothing, false}, {folder, folder, false}} {
		assert.Equal(t, c.a.SameContent(c.b), c.same, c.a, c.b)
	}
}
