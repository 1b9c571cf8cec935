package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// A name is its bytes: a command acts on the file that it was given, also where another
// differs only in what is not UTF-8, and says which it was.
func TestNamesKeepTheirBytes(t *testing.T) {
	w, _ := mountRepository(t, byHand)
	names := map[string]string{"w\xff": `w\xff`, "w\xfe": `w\xfe`, "w\ufffd": "w\ufffd", `w\xff`: `w\xff`}
	text := func(what, name string) string { return what + " of " + strconv.QuoteToASCII(name) + "\n" }
	all := func(but, has string) {
		t.Helper()
		for name := range names {
			want := text("two", name)
			if name == but {
				want = has
			}
			assert.Equal(t, w.read("mnt/"+name), want, name)
		}
		assert.Equal(t, len(assert.Of(os.ReadDir(w.path("mnt"))).OK(t)), len(names), "names")
	}
	for _, n := range []string{"one", "two"} {
		for name := range names {
			w.write("mnt/"+name, text(n, name))
		}
		w.event(exit.Done, "commit", "mnt")
	}
	var log control.LogResult
	of := func(name string) (id, commit string) {
		t.Helper()
		log = control.LogResult{}
		assert.OK(t, exactjson.Unmarshal([]byte(w.ok("log", "mnt", name, "--json")), &log))
		for _, v := range log.Versions {
			assert.Equal(t, v.Path, name)
			id, commit = v.ID, v.Commit
		}
		return id, commit
	}
	for name, shown := range names {
		first, commit := of(name)
		assert.Contains(t, w.ok("log", "mnt", name), "  "+shown+"  (", name)
		said := w.ok("diff", "mnt", name, first)
		assert.True(t, strings.HasPrefix(said, "--- "+shown+"@"+first+"\n+++ "+shown+"\n") && strings.HasSuffix(said, "-"+text("one", name)+"+"+text("two", name)), said)
		for _, to := range [][]string{{"--to", first}, {"--commit", commit}} {
			assert.Equal(t, w.ok(append([]string{"restore", "mnt", name}, to...)...), "restored "+shown+"\n")
			all(name, text("one", name))
			w.write("mnt/"+name, text("two", name))
		}
		assert.Contains(t, w.ok("cache", "pin", "mnt", name), "1 file", name)
		var res control.CacheResult
		assert.OK(t, exactjson.Unmarshal([]byte(w.ok("cache", "show", "mnt", "--json")), &res))
		assert.Slice(t, res.Copies[0].Pins, []string{name})
		assert.Contains(t, w.ok("cache", "show", "mnt"), "pinned      /"+shown+"\n")
		w.ok("cache", "unpin", "mnt", name)
	}
	all("", "")
	w.event(exit.Done, "commit", "mnt")
}
