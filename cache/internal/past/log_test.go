package past

import (
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestLogFilters(t *testing.T) {
	w := newWorld(t)
	w.Keeper.SetActor(history.Actor{Name: "bob", Turn: "1", Conversation: "x"})
	w.Do("put a 1")
	w.Later(time.Hour)
	mid := w.Now()
	w.Keeper.SetActor(history.Actor{Name: "eve", Turn: "2", Conversation: "x", Event: "turn-start"})
	w.Do("put b 2")
	list := w.versions(LogFilter{Turn: "2"})
	assert.Equal(t, list[0].Name, "eve", "actor")
	w.commit("one")
	for name, test := range map[string]struct {
		f    LogFilter
		want string
	}{
		"all":            {LogFilter{}, "b a"},
		"limit":          {LogFilter{Limit: 1}, "b"},
		"turn":           {LogFilter{Turn: "1"}, "a"},
		"conversation":   {LogFilter{Conversation: "x"}, "b a"},
		"no such":        {LogFilter{Conversation: "y"}, ""},
		"event":          {LogFilter{Event: "turn-start"}, "b"},
		"since":          {LogFilter{Since: mid}, "b"},
		"since then":     {LogFilter{Since: list[0].Time}, "b"},
		"until":          {LogFilter{Until: mid}, "a"},
		"until then":     {LogFilter{Until: list[0].Time}, "b a"},
		"path":           {LogFilter{Path: "/a"}, "a"},
		"part of a name": {LogFilter{Path: "aa"}, ""},
		"commit":         {LogFilter{Commit: "one"}, "b a"},
	} {
		var got []string
		for _, ver := range w.versions(test.f) {
			got = append(got, ver.Path)
		}
		assert.Equal(t, strings.Join(got, " "), test.want, name)
	}
	assert.Is(t, assert.ErrOf(w.past.Log(t.Context(), LogFilter{Commit: "none such"})), ErrNoVersion, "a commit that is not")
}

// Of a file it is said what it was, which of its versions it is, and what is in it.
func TestLogOfOneFile(t *testing.T) {
	w := newWorld(t, "put f one", "wait", "put f two", "wait", "put f three")
	w.logs("f",
		"written written f: three",
		"written written f: two",
		"written written f: one")
	w.Do("wait")
	ver := w.versions(LogFilter{Path: "f", Limit: 1})[0]
	const sum = "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f" // sha256 of "three"
	assert.True(t, ver.Number == 3 && ver.Size == 5 && ver.SHA256 == sum && ver.Current, "got", ver)
	w.Do("put f ", "wait")
	list := w.versions(LogFilter{Path: "f", Limit: 2})
	assert.True(t, len(list) == 2 && list[0].Current && !list[1].Current, "after it was emptied: got", list)
}

// A rename of a directory is one record, and what was recorded below follows.
func TestLogFollowsDirectories(t *testing.T) {
	w := newWorld(t, "mkdir d", "put d/f one", "wait", "put d/f two", "mv d e")
	below := []string{"written written e/f was d/f: two", "written written e/f was d/f: one"}
	w.logs("e", "moved renamed e from d: -", below[0], below[1], "made made e was d: -")
	w.logs("d/f", below...)
}

// A save by rename is one file to whoever looks at the name.
func TestLogOfSavesByRename(t *testing.T) {
	w := newWorld(t)
	for _, s := range []string{"one", "two", "three"} {
		w.Do("put f.tmp "+s, "mv f.tmp f", "wait")
	}
	w.logs("f",
		"moved renamed f from f.tmp: three",
		"ended replaced f: two",
		"written written f was f.tmp: three",
		"moved renamed f from f.tmp: two",
		"ended replaced f: one",
		"moved renamed f from f.tmp: one")
	assert.Equal(t, w.versions(LogFilter{Path: "f", Limit: 1})[0].Number, 5, "the number of the name")
}

// A log says which commit a change went into.
func TestLogByCommit(t *testing.T) {
	w := newWorld(t, "mkdir d", "put a first", "put d/b b", "put d/c c")
	w.commit("one")
	w.Do("wait", "put a second", "rm d/b", "mv d/c c")
	w.commit("two")
	w.Do("put a third")
	var got []string
	for _, ver := range w.versions(LogFilter{}) {
		got = append(got, ver.Change+" "+ver.Path+" "+ver.Commit)
	}
	assert.Equal(t, strings.Join(got, ", "), "written a , moved c two, ended d/b two, written a two, written c one, written d/b one, written a one, made d one")
}
