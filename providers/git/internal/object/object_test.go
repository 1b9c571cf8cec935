package object_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// What this package writes is what git writes of the same: the ids that git
// gives are the same.
func TestAsGitWrites(t *testing.T) {
	repo := gitserver.Start(t).Create(t, "r")
	work := repo.Clone(t.TempDir() + "/w")
	work.Write(map[string]string{"a": "1", "a.b": "2", "a-b": "3", "a0": "4", "dir/x": "5", "dir.z": "6", "dir-y": "7", "ümlaut": "8"})
	work.Commit("main", "a message\n\nwith more\n\nName: value")
	raw := repo.Git("cat-file", "tree", "main^{tree}")
	entries, err := object.Entries([]byte(raw))
	assert.Must(t, err == nil && len(entries) == 8, entries, err)
	slices.Reverse(entries)
	assert.Equal(t, string(object.EncodeTree(entries)), raw, "the tree")
	for _, e := range entries {
		found, ok, err := object.Find([]byte(raw), e.Name)
		assert.True(t, ok && err == nil && found == e, e.Name, "found", found, ok, err)
	}
	raw = repo.Git("cat-file", "commit", "main")
	c, err := object.ParseCommit([]byte(raw))
	got := string(c.Encode())
	assert.True(t, err == nil && got == raw, "the commit is", got, raw, err)
}

func TestMalformed(t *testing.T) {
	for _, raw := range []string{"1", "100644", "100644 a", "100644 a\x00short", "10x644 a\x0012345678901234567890", "123456789 a\x0012345678901234567890"} {
		entries, err := object.Entries([]byte(raw))
		assert.True(t, err != nil, raw, "is a tree of", entries)
	}
	for _, raw := range []string{"", "\n", "tree 123\n", "tree " + strings.Repeat("x", 40) + "\n", "parent " + strings.Repeat("1", 40) + "\n\n"} {
		c, err := object.ParseCommit([]byte(raw))
		assert.True(t, err != nil, raw, "is the commit", c)
	}
}

// A name or an address cannot end its line, or begin another.
func TestSignature(t *testing.T) {
	when := time.Unix(1_000_000_000, 0).In(time.FixedZone("", -7*3600))
	for in, want := range map[object.Signature]string{
		{Name: "Ann", Email: "ann@acme.test", When: when}:                            "Ann <ann@acme.test> 1000000000 -0700",
		{Name: "A <b> c\nparent x", Email: "x>\ncommitter y", When: when}:            "A b cparent x <xcommitter y> 1000000000 -0700",
		{Name: " . 'Ann' , ", Email: "<ann@acme.test>", When: time.Unix(5, 0).UTC()}: "Ann <ann@acme.test> 5 +0000",
	} {
		assert.Equal(t, in.String(), want)
	}
}

// The time of a commit can be told, whatever the commit says.
func TestCommitTime(t *testing.T) {
	for in, want := range map[string]string{
		"16725225600": "2500-01-01T00:00:00Z", "-11676096000": "1600-01-01T00:00:00Z",
		"253402300800": "1970-01-01T00:00:00Z", "-9000000000000000000": "1970-01-01T00:00:00Z", "x": "1970-01-01T00:00:00Z",
	} {
		c := assert.Of(object.ParseCommit([]byte("tree " + strings.Repeat("1", 40) + "\ncommitter Ann <ann@acme.test> " + in + " +0000\n\n"))).OK(t)
		assert.Of(c.Committer.When.MarshalText()).Equal(t, []byte(want), in)
	}
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := object.Entries(raw)
		if err != nil {
			return
		}
		assert.Equal(t, len(assert.Of(object.Entries(object.EncodeTree(entries))).OK(t)), len(entries), len(entries), "entries, then")
	})
}

// A commit that is moved says all that it said, but who signed it.
func TestMoved(t *testing.T) {
	tree, parent := object.ID{1}, object.ID{2}
	who := "author A <a@b> 1 +0200\ncommitter B <b@c> 2 -0300\n"
	old := "tree " + strings.Repeat("a", 40) + "\nparent " + strings.Repeat("b", 40) + "\nparent " + strings.Repeat("c", 40) + "\n" + who
	for _, c := range []struct{ more, want string }{
		{"", ""},
		{"encoding latin1\n", "encoding latin1\n"},
		{"gpgsig -----BEGIN\n line\n \n -----END\nencoding x\n", "encoding x\n"},
		{"mergetag object x\n type commit\n", "mergetag object x\n type commit\n"},
	} {
		message := "\nsubject\n\n tree no header\n"
		want := fmt.Sprintf("tree %s\nparent %s\n%s%s%s", tree, parent, who, c.want, message)
		assert.Equal(t, string(object.Moved([]byte(old+c.more+message), tree, parent)), want)
	}
}
