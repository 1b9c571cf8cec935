package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// has wants these records, the newest first.
func has(c *historytest.Copy, want ...string) {
	c.Helper()
	assert.Equal(c, strings.Join(c.Records(), "\n"), strings.Join(want, "\n"), "the records are")
}

// newest is the last record.
func newest(c *historytest.Copy) (r *history.Record) {
	c.Helper()
	assert.OK(c, c.Tree.View(func(v *tree.View) error {
		v.Scan(history.Prefix, "", func(_ string, value []byte) bool { r = history.Decode(value); return true })
		return nil
	}))
	return r
}

// What is kept of content that a program replaces or removes.
func TestKeepsContent(t *testing.T) {
	const large = "larger than is copied at once"
	for name, test := range map[string]struct {
		script, want []string
	}{
		"one version in two seconds, and the last": {
			[]string{"put f 1", "put f 2", "put f 3", "put f 4", "wait", "put f 5"},
			[]string{"written written f: =", "written written f: 4", "written written f: -", "written written f: -", "written written f: 1"},
		},
		"what the remote had": {
			[]string{"theirs f theirs", "read f", "put f ours"},
			[]string{"written written f: =", "ended changed f: theirs"},
		},
		"what was removed": {
			[]string{"mkdir d", "put d/f precious", "rm d/f"},
			[]string{"ended removed d/f: precious", "written written d/f: precious", "made made d: -"},
		},
		"what was replaced": {
			[]string{"put f one", "wait", "put g two", "mv g f"},
			[]string{"moved renamed f from g: =", "ended replaced f: one", "written written f: =", "written written f: one"},
		},
		"what was replaced by a name that was just replaced": {
			[]string{"put f 1", "put g 2", "mv g f", "put g 3", "mv g f"},
			[]string{"moved renamed f from g: =", "ended replaced f: -", "written written f: =", "moved renamed f from g: -",
				"ended replaced f: 1", "written written g: -", "written written f: 1"},
		},
		"an empty file":                {[]string{"put f ", "rm f"}, []string{"ended removed f: -", "written written f: -"}},
		"large content, left alone":    {[]string{"put f " + large, "wait", "put f small"}, []string{"written written f: =", "written written f: " + large}},
		"large content, changed again": {[]string{"put f " + large, "put f small"}, []string{"written written f: =", "written written f: -"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := historytest.New(t, history.Options{Small: int64(len(large)) - 1})
			c.Do(test.script...)
			has(c, test.want...) // whoever reads first has it moved
			c.Settle()
			has(c, test.want...)
		})
	}
}

// What was written after the name was gone is not what was removed.
func TestKeepsNotWhatWasWrittenAfterwards(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.Do("put f first", "put f closed") // too soon after the first to be copied before a change
	h := c.Open("f")
	c.Do("rm f")
	h.Write("AFTER")
	h.Close()
	c.Settle()
	has(c, "ended removed f: -", "written written f: -", "written written f: first")
}

// Content of what was removed goes where it belongs at the next start, when the last run did
// not come to that.
func TestFinishMoves(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.Do("put f kept", "put g gone")
	h := c.Open("g")
	c.Do("rm f", "rm g")
	h.Write("away")
	h.Close()
	c.Keeper.FinishMoves()
	assert.OK(t, c.Store.Each(func(ino uint64, _ string, _ int64, _ bool) { t.Error("there is content still of", ino) }))
	c.Change(func(tx history.Tx) {
		tx.Scan(history.QueuePrefix, "", func(key string, _ []byte) bool { t.Error("still queued:", key); return true })
	})
	kept := 0
	assert.OK(t, c.Store.EachKept(func(string) { kept++ }))
	assert.Equal(t, kept, 1, "what is kept")
	has(c, "ended removed g: -", "ended removed f: kept", "written written g: -", "written written f: kept")
}

// Who writes all the time does not keep the worker from looking.
func TestLooksAtBusyFiles(t *testing.T) {
	c := historytest.New(t, history.Options{})
	for i := range 3 {
		c.Do(fmt.Sprint("put f ", i))
		c.Later(900 * time.Millisecond)
	}
	assert.False(t, newest(c).SHA == "", "not looked at")
	h := c.Open("f")
	h.Write("now")
	next, some := c.Keeper.Work()
	assert.True(t, next > 0 && !some, "more to do:", some)
	h.Close()
	h = c.Open("f")
	h.Write("and then")
	c.Later(3 * time.Second)
	next, some = c.Keeper.Work()
	assert.True(t, next > time.Second && some, "it comes again for what is being written:", next, some)
}

// What the remote has said of content is not computed.
func TestTakesTheDigestOfTheRemote(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.Do("put f x")
	l, ino := c.At("f")
	c.Change(func(tx history.Tx) {
		info := providers.Info{Locator: providers.MustLocator("f"), Kind: providers.KindFile, Digest: "sha256:said", Version: providers.Version{ETag: "e"}}
		tx.SetRemote(l, tree.RemoteOf(info, ino, tx.Inode(ino)))
	})
	c.Do("wait")
	assert.Equal(t, newest(c).SHA, "said")
}

// Each version that somebody asked to be committed is kept, however soon the next followed.
func TestKeepsWhatWasAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := historytest.New(t, history.Options{Asked: asked})
		c.Do("put f 0", "sent", "put f 1", "sent", "put f 2", "sent", "put f 3")
		want := []string{"written written f: =", "written written f: 2", "written written f: 1", "written written f: 0"}
		if !asked {
			want = []string{want[0], "written written f: -", "written written f: -", want[3]}
		}
		has(c, want...)
	}
}

// The last version of each actor is kept, however soon the next followed.
func TestKeepsTheLastOfEachActor(t *testing.T) {
	for name, put := range map[string][]string{"changed": {"put f "}, "replaced": {"put f.tmp ", "mv f.tmp f"}} {
		c := historytest.New(t, history.Options{})
		puts := func(content string) {
			c.Do(append([]string{put[0] + content}, put[1:]...)...)
		}
		for _, turn := range []string{"1", "2", "3"} {
			c.Keeper.SetActor(history.Actor{Turn: turn})
			puts(turn + " first")
			puts(turn + " last")
		}
		c.Keeper.SetActor(history.Actor{Event: "tool-call", Turn: "3"})
		c.Keeper.SetActor(history.Actor{Turn: "3"})
		puts("3 again")
		all := strings.Join(c.Records(), "\n")
		for _, content := range []string{": 1 last\n", ": 2 last\n", ": 3 last\n"} {
			assert.Contains(t, all, content, name)
		}
		assert.False(t, strings.Contains(all, "2 first"), name, "keeps all:", all)
	}
}

// A record says who it was.
func TestSaysWho(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.By = files.Caller{Known: true, UID: 1234, PID: uint32(os.Getpid())}
	c.Do("put f x")
	r := newest(c)
	assert.True(t, r.UID == 1234 && r.Cmd != "" && strings.HasPrefix("history.test", r.Cmd), "who made it", r)
	c.By = files.Caller{Known: true, UID: 5}
	c.Do("rm f")
	r = newest(c)
	assert.True(t, r.UID == 5 && r.Cmd == "", "who removed it", r)
}

// A file that gets its first name later was not there before; one that is sent while its
// writer has it open was made locally.
func TestNotesWhatIsNew(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.Do("put f late", "mkdir d")
	f, ino := c.At("f")
	first := newest(c).Birth
	c.Change(func(tx history.Tx) { tx.SetLocal(f, 0, false, false) })
	to := table.Link{Dir: table.Root, Name: "linked"}
	c.Change(func(tx history.Tx) {
		tx.SetLocal(to, ino, false, false)
		tx.Named(to, ino, history.WhyLinked)
	})
	r := newest(c)
	assert.True(t, r.Name == "linked" && r.Why == history.WhyLinked && r.New && r.Birth > first, "named", r)

	made := c.MakeFile("open", "x")
	c.Change(func(tx history.Tx) { tx.Edit(made).Writing = true })
	c.Change(func(tx history.Tx) { tx.Sent(made, 9) })
	assert.Equal(t, newest(c).Name, "linked", "of another version")
	c.Change(func(tx history.Tx) { tx.Sent(made, 1) })
	r = newest(c)
	assert.True(t, r.Name == "open" && r.New && r.Change == history.Written, "sent", r)
}

// What a pull brings is a version, once; what it replaced unread is with the remote.
func TestNotesAPull(t *testing.T) {
	c := historytest.New(t, history.Options{})
	c.Head = "one"
	c.Do("theirs f old")
	l, ino := c.At("f")
	c.Change(func(tx history.Tx) { tx.Came(l) })
	c.Change(func(tx history.Tx) { tx.Came(l) })
	has(c, "made pulled f: =")
	var before *history.Past
	c.Change(func(tx history.Tx) {
		before = c.Keeper.PastOf(tx.View, ino, tx.Inode(ino))
		tx.ContentChanged(ino, 3, table.Time{})
		tx.Renewed(l, ino, before)
	})
	r := newest(c)
	assert.True(t, r.Change == history.Written && r.Why == history.WhyPulled && *r.Before == history.Past{Revision: "one", Path: "f", Version: fmt.Sprint("theirs ", ino), Size: 3}, r, r.Before)
	assert.Must(t, r.Prev != 0, "what was there before is not told")
	c.Head = ""
	c.Change(func(tx history.Tx) {
		assert.True(t, c.Keeper.PastOf(tx.View, ino, tx.Inode(ino)) == nil, "the remote has other content")
	})
}

// What another wrote, and is about to be replaced at the remote, is kept if its content was
// fetched, and goes from where that was put.
func TestOverwritten(t *testing.T) {
	for content, want := range map[string]string{"theirs": ": theirs", "": ": -"} {
		c := historytest.New(t, history.Options{})
		c.Do("put f ours")
		l, _ := c.At("f")
		var ino table.Ino
		if content != "" {
			ino = assert.Of(files.Make(t.Context(), c.Tree, c.Store, "f", strings.NewReader(content))).OK(t).Ino
		}
		was, _ := filepath.Glob(filepath.Join(c.Dir, "data", "*", fmt.Sprint(ino)))
		info := providers.Info{Locator: providers.MustLocator("f"), Kind: providers.KindFile, Size: 6, Version: providers.Version{ETag: "e", Size: 6}}
		assert.OK(t, c.Keeper.Overwritten(l, info, ino, ""))
		has(c, "ended overwritten f"+want, "written written f: =")
		r := newest(c)
		assert.True(t, r.Stays && *r.Past == history.Past{Path: "f", Version: "e", Size: 6} && r.Base == "e", r)
		if ino == 0 {
			continue
		}
		assert.True(t, assert.ErrOf(c.Store.Open(ino)) != nil, "it is where it was put")
		moved := assert.Of(filepath.Glob(filepath.Join(c.Dir, "history", "*", "*"))).OK(t)
		assert.Must(t, len(moved) == 1 && len(was) == 1, "content before and after", was, moved)
		assert.OK(t, os.Rename(moved[0], was[0])) // a loss of power, before the disk has the move
		c.Keeper.FinishMoves()
		has(c, "ended overwritten f"+want, "written written f: =")
	}
}
