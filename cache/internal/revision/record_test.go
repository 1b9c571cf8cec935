package revision_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// records is a table in memory. As in the real one a value of nil is none.
type records map[string][]byte

func (r records) Get(key string) []byte { return r[key] }

func (r records) Set(key string, value []byte) {
	if delete(r, key); value != nil {
		r[key] = value
	}
}

type pattern string

func (p pattern) String() string { return string(p) }

// A synced revision holds for the rules by which its names are shown, and for no others.
func TestSynced(t *testing.T) {
	r := records{}
	ours := revision.RulesOf(".gitignore", pattern("*.o"))
	assert.Equal(t, revision.Synced(r, ours), "", "a new table")
	revision.SetSynced(r, "abc", ours)
	assert.Equal(t, revision.Synced(r, ours), "abc")
	for _, other := range []revision.Rules{
		revision.RulesOf(".gitignore", nil), revision.RulesOf("", pattern("*.o")), revision.RulesOf("", nil),
		revision.RulesOf(".gitignore", pattern("*.a")), revision.RulesOf(".gitignore", pattern("")),
	} {
		assert.Equal(t, revision.Synced(r, other), "", "by", fmt.Sprintf("%q", string(other)))
	}
	for _, damaged := range []string{"", " ", "abc", "1 x abc", "2" + string(r["pull/level"][1:])} {
		assert.Equal(t, revision.Synced(records{"pull/level": []byte(damaged)}, ours), "", damaged)
	}
	revision.SetSynced(r, "", ours)
	assert.Equal(t, len(r), 0, "it is not known")
}

// Previous heads are each there once, the last first, and not too many.
func TestPreviousHeads(t *testing.T) {
	r := records{}
	passed := func(names ...providers.Revision) {
		for _, name := range names {
			assert.OK(t, revision.PassedBy(r, name))
		}
	}
	passed("a", "", "b", "a", "c")
	assert.Slice(t, revision.PreviousHeads(r), []providers.Revision{"c", "a", "b"})
	for i := range 40 {
		passed(providers.Revision(fmt.Sprint(i)))
	}
	all := revision.PreviousHeads(r)
	assert.True(t, len(all) == 32 && all[0] == "39" && all[31] == "8", all)
	r["pull/earlier"] = []byte("damaged")
	assert.Equal(t, len(revision.PreviousHeads(r)), 0)
	passed("d")
	assert.Slice(t, revision.PreviousHeads(r), []providers.Revision{"d"})
}

// What is noted of single revisions comes back, until it is taken back.
func TestSingleRevisions(t *testing.T) {
	for what, c := range map[string]struct {
		get func(revision.Reader) providers.Revision
		set func(revision.Writer, providers.Revision)
	}{
		"upstream":  {revision.Upstream, revision.SetUpstream},
		"merging":   {revision.Merging, revision.SetMerging},
		"committed": {revision.Committed, revision.SetCommitted},
	} {
		r := records{}
		for _, want := range []providers.Revision{"", "a", "b", ""} {
			c.set(r, want)
			assert.Equal(t, c.get(r), want, what)
			assert.True(t, len(r) <= 1, what, r)
		}
	}
}

// What is listed for the first time is as old as the first revision, until another came.
func TestFirstListed(t *testing.T) {
	now, made := time.Unix(2e9, 0), time.Unix(1e9, 5)
	for _, unknown := range []time.Time{{}, now, now.Add(1), time.Unix(-1, 0)} {
		r := records{}
		revision.SetFirst(r, unknown, now)
		assert.Equal(t, len(r), 0, unknown)
		assert.Equal(t, revision.FirstListed(r, table.TimeOf(now)), table.TimeOf(now), unknown)
	}
	r := records{}
	revision.SetFirst(r, made, now)
	assert.Equal(t, revision.FirstListed(r, table.TimeOf(now)), table.TimeOf(made))
	assert.Equal(t, revision.Since(r), 0)
	revision.Comes(r, now.UnixNano())
	assert.Equal(t, revision.Since(r), now.UnixNano())
	assert.Equal(t, revision.FirstListed(r, table.TimeOf(now)), table.TimeOf(now))
}

// Commits that are not pushed are counted from the oldest on, and a push that is owed stays
// owed with its last reason.
func TestUnpushed(t *testing.T) {
	r, noon := records{}, time.Unix(1e9, 0).UTC()
	change := func(do func(u *revision.Unpushed) *revision.Unpushed) {
		t.Helper()
		assert.OK(t, revision.SetUnpushed(r, do(revision.UnpushedOf(r))))
	}
	is := func(want string) {
		t.Helper()
		text := "none"
		if u := revision.UnpushedOf(r); u != nil {
			text = fmt.Sprintf("%d %s %t %s", u.Commits, u.Since.Sub(noon), !u.Owed.IsZero(), u.Error)
		}
		assert.Equal(t, text, want)
	}
	owes := func(cause error, after time.Duration, news bool) {
		t.Helper()
		change(func(u *revision.Unpushed) *revision.Unpushed {
			assert.Equal(t, u.Owe(cause, noon.Add(after)), news)
			return u
		})
	}
	is("none")
	change(func(u *revision.Unpushed) *revision.Unpushed { return u.Committed(1, noon) })
	is("1 0s false ")
	change(func(u *revision.Unpushed) *revision.Unpushed { return u.Committed(2, noon.Add(1)) })
	is("3 0s false ")
	owes(nil, 2, true)
	owes(nil, 3, false)
	owes(errors.New("why"), 4, true)
	is("3 0s true why")
	assert.True(t, revision.UnpushedOf(r).Owed.Equal(noon.Add(2)), "since the first")
	r["engine/unpushed"] = []byte("damaged")
	assert.True(t, *revision.UnpushedOf(r) == revision.Unpushed{}, "there are some")
	change(func(*revision.Unpushed) *revision.Unpushed { return nil })
	is("none")
	assert.Equal(t, len(r), 0)
}
